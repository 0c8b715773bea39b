// SPDX-License-Identifier: Apache-2.0
// Contexts of threads of other processes: the permitted ones, their samples, and their ends; and periods that change
// while they run.
#include <algorithm>
#include <csignal>
#include <thread>

#include "kmod_process.h"

using namespace kmod_test;

namespace {

alignas(64) std::uint64_t the_word = 0;

/// The memory of a process, opened for reading.
class Memory {
 public:
  explicit Memory(pid_t pid) : fd_(open_memory(pid)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Stores to the word until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) {
        store_often(&the_word, 10'000);
      }
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_;
};

bool wait_for_samples(const Context& context, std::uint64_t samples) {
  const double end = seconds_of(CLOCK_MONOTONIC) + 60;
  while (context.status().samples < samples) {
    if (!CHECK(seconds_of(CLOCK_MONOTONIC) < end)) {
      return false;
    }
    usleep(1'000);
  }
  return true;
}

void another_process() {
  Child child;
  const Memory memory(child.pid());
  Context context;
  CHECK_EQUAL(follow(context, child.pid(), memory.fd()), 0);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  wait_for_samples(context, 300);
  const std::vector<crosstalk_ibs_sample> samples = context.drain();
  std::size_t stores = 0;
  for (const crosstalk_ibs_sample& sample : samples) {
    CHECK_EQUAL(sample.pid, static_cast<unsigned>(child.pid()));
    CHECK_EQUAL(sample.tid, static_cast<unsigned>(child.pid()));
    stores += sample.address == reinterpret_cast<std::uint64_t>(&the_word) && sample.width == 8 ? 1 : 0;
  }
  CHECK_FOUND(stores > samples.size() / 2, std::to_string(stores) + " of " + std::to_string(samples.size()));
  const crosstalk_ibs_status status = context.status();
  CHECK(status.running_ns > 0);
  std::uint64_t sampled = 0;
  for (const crosstalk_ibs_sample& sample : samples) {
    sampled += sample.period;
  }
  CHECK(status.counted >= sampled);
  child.end();
  pollfd poll_fd{context.fd(), POLLIN, 0};
  CHECK_EQUAL(poll(&poll_fd, 1, 10'000), 1);
  CHECK((poll_fd.revents & POLLHUP) != 0);
  CHECK((context.status().state & CROSSTALK_IBS_ENDED) != 0);
  CHECK_EQUAL(context.enable(), ESRCH);
}

/// A thread of this process, by another one.
void own_thread() {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> over{false};
  std::thread worker([&] {
    tid = thread_id();
    while (!over) {
      store_often(&the_word, 10'000);
    }
  });
  while (tid == 0) {
    usleep(1'000);
  }
  const Memory memory(getpid());
  Context context;
  CHECK_EQUAL(follow(context, tid, memory.fd()), 0);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  wait_for_samples(context, 50);
  for (const crosstalk_ibs_sample& sample : context.drain()) {
    CHECK_EQUAL(sample.tid, static_cast<unsigned>(tid));
  }
  over = true;
  worker.join();
}

void refusals() {
  Child child;
  const Memory own(getpid());
  const Memory memory(child.pid());
  const int other_file = open("/proc/self/maps", O_RDONLY);
  const int path_only = open("/proc/self/mem", O_PATH);
  Context context;
  CHECK_EQUAL(follow(context, child.pid(), own.fd()), EPERM);
  CHECK_EQUAL(follow(context, getpid(), memory.fd()), EPERM);
  CHECK_EQUAL(follow(context, 1, memory.fd()), EPERM);
  CHECK_EQUAL(follow(context, 2, memory.fd()), EPERM);  // a kernel thread
  CHECK_EQUAL(follow(context, child.pid(), other_file), EINVAL);
  CHECK_EQUAL(follow(context, child.pid(), context.fd()), EINVAL);
  CHECK_EQUAL(follow(context, child.pid(), -1), EBADF);
  CHECK_EQUAL(follow(context, child.pid(), path_only), EBADF);
  CHECK_EQUAL(follow(context, 0, memory.fd()), EINVAL);
  CHECK_EQUAL(follow(context, -1, memory.fd()), EINVAL);
  CHECK_EQUAL(follow(context, 4'000'000, memory.fd()), ESRCH);
  for (const crosstalk_ibs_follow& wrong :
       {crosstalk_ibs_follow{0, child.pid(), memory.fd(), 0, 0},
        crosstalk_ibs_follow{sizeof(crosstalk_ibs_follow), child.pid(), memory.fd(), 1, 0},
        crosstalk_ibs_follow{sizeof(crosstalk_ibs_follow), child.pid(), memory.fd(), 0, 1}}) {
    CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_FOLLOW, &wrong), EINVAL);
  }
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_FOLLOW, nullptr), EFAULT);
  CHECK_EQUAL(follow(context, child.pid(), memory.fd()), 0);
  CHECK_EQUAL(follow(context, child.pid(), memory.fd()), EBUSY);
  crosstalk_ibs_setup setup = usual_setup();
  setup.signal = SIGUSR1;
  CHECK_EQUAL(context.setup(setup), EINVAL);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  Context second;
  CHECK_EQUAL(follow(second, child.pid(), memory.fd()), 0);
  CHECK_EQUAL(second.setup(usual_setup()), EBUSY);  // the thread has one
  Context third;
  CHECK_EQUAL(third.setup(usual_setup()), 0);
  CHECK_EQUAL(follow(third, child.pid(), memory.fd()), EBUSY);
  child.end();
  Context late;
  CHECK_EQUAL(follow(late, getpid(), memory.fd()), EPERM);
  close(other_file);
  close(path_only);
}

/// After execve() the thread has memory that was not granted.
void executed() {
  int gate[2];
  CHECK_EQUAL(error_of(pipe(gate)), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    char byte = 0;
    for (;;) {
      store_often(&the_word, 10'000);
      fcntl(gate[0], F_SETFL, O_NONBLOCK);
      if (read(gate[0], &byte, 1) == 1) {
        execl("/proc/self/exe", "kmod_follow", "--store", nullptr);
        _exit(99);
      }
    }
  }
  const Memory memory(pid);
  Context context;
  CHECK_EQUAL(follow(context, pid, memory.fd()), 0);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  wait_for_samples(context, 20);
  CHECK_EQUAL(write(gate[1], "x", 1), 1);
  usleep(1'500'000);  // it has become the other program, and stores
  context.drain();
  const std::uint64_t before = context.status().samples;
  usleep(500'000);
  CHECK_EQUAL(context.status().samples, before);
  Context again;
  CHECK_EQUAL(follow(again, pid, memory.fd()), EPERM);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(gate[0]);
  close(gate[1]);
}

/// As a user: threads that he may follow, and others. `granted` was opened by root.
void follow_as_user(pid_t roots, int granted) {
  CHECK_EQUAL(error_of(setgid(65534)), 0);
  CHECK_EQUAL(error_of(setuid(65534)), 0);
  {
    const Child hidden;  // a process that gives up rights is not dumpable, nor is its child
    CHECK_EQUAL(Memory(hidden.pid()).fd(), -1);
  }
  CHECK_EQUAL(error_of(prctl(PR_SET_DUMPABLE, 1)), 0);
  const Child own;
  const Memory memory(own.pid());
  CHECK(memory.fd() >= 0);
  CHECK_EQUAL(Memory(roots).fd(), -1);
  CHECK_EQUAL(Memory(1).fd(), -1);
  Context refused;
  CHECK_EQUAL(follow(refused, roots, memory.fd()), EPERM);
  Context context;
  CHECK_EQUAL(follow(context, own.pid(), memory.fd()), 0);
  crosstalk_ibs_setup setup = usual_setup();
  setup.flags = CROSSTALK_IBS_KERNEL;
  CHECK_EQUAL(context.setup(setup), EACCES);
  setup.flags = CROSSTALK_IBS_PHYSICAL;
  CHECK_EQUAL(context.setup(setup), EPERM);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK_EQUAL(context.enable(), 0);
  wait_for_samples(context, 20);
  Context handed;  // as the descriptor itself, which reads and writes that memory
  CHECK_EQUAL(follow(handed, roots, granted), 0);
}

void unprivileged() {
  open_to_nobody();
  Child roots;
  const Memory granted(roots.pid());
  const pid_t user = fork();
  if (user == 0) {
    follow_as_user(roots.pid(), granted.fd());
    _exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK_EQUAL(waitpid(user, &status, 0), user);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(error_of(chmod(kDevice, 0600)), 0);
}

/// The followed process executes programs all the time and is asked for in the middle of an exec: granted or refused.
void executed_while_asked() {
  int granted = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t pid = fork();
    if (pid == 0) {
      execl("/proc/self/exe", "kmod_follow", "--store", nullptr);
      _exit(99);
    }
    const Memory memory(pid);
    usleep(static_cast<useconds_t>(round * 500));
    Context context;
    const int error = follow(context, pid, memory.fd());
    CHECK(error == 0 || error == EPERM);
    if (error == 0) {
      ++granted;
      const int set_up = context.setup(usual_setup());
      CHECK(set_up == 0 || set_up == ESRCH);  // by now it is the other program
      const int enabled = context.enable();
      CHECK(enabled == (set_up == 0 ? 0 : ENXIO) || enabled == ESRCH);
    }
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  std::printf("executed_while_asked: %d of 40 granted\n", granted);
}

void periods() {
  Context context;
  crosstalk_ibs_period period{2'000'000, 500'000};
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_PERIOD, &period), ENXIO);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  store_until_sampled(&the_word, context, 50);
  for (const crosstalk_ibs_period wrong :
       {crosstalk_ibs_period{0, 0}, crosstalk_ibs_period{19'999, 0}, crosstalk_ibs_period{100'000'001, 0},
        crosstalk_ibs_period{100'000, 80'001}, crosstalk_ibs_period{~0ULL, ~0ULL}}) {
    CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_PERIOD, &wrong), ERANGE);
  }
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_PERIOD, nullptr), EFAULT);
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_PERIOD, &period), 0);
  CHECK_EQUAL(context.status().state, CROSSTALK_IBS_SET_UP | CROSSTALK_IBS_ENABLED);
  context.drain();
  store_until_sampled(&the_word, context, context.status().samples + 50);
  CHECK_EQUAL(context.disable(), 0);
  std::vector<crosstalk_ibs_sample> samples = context.drain();
  CHECK(samples.size() >= 40);
  // The first interval had begun before, and the last one of the old period may still have been in the ring.
  samples.erase(samples.begin(), samples.begin() + std::min<std::ptrdiff_t>(3, std::ssize(samples)));
  for (const crosstalk_ibs_sample& sample : samples) {
    CHECK(sample.period >= 1'500'000);
  }
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_PERIOD, &period), 0);
  CHECK_EQUAL(context.status().state, CROSSTALK_IBS_SET_UP);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--store") {
    for (;;) {
      store_often(&the_word, 10'000);
    }
  }
  return run_checks({{"another_process", another_process},
                     {"own_thread", own_thread},
                     {"refusals", refusals},
                     {"executed", executed},
                     {"unprivileged", unprivileged},
                     {"executed_while_asked", executed_while_asked},
                     {"periods", periods}},
                    argc, argv);
}
