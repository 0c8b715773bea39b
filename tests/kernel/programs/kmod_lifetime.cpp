// SPDX-License-Identifier: Apache-2.0
// A context's end: with its file, its thread, its program, its process; and what others can do with its descriptor.
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <thread>

#include "kmod_process.h"

using namespace kmod_test;

namespace {

alignas(64) std::uint64_t the_word = 0;

/// A stranger to the opener's address space gets EPERM from everything.
void check_stranger(int fd) {
  char record[128];
  crosstalk_ibs_info info{};
  crosstalk_ibs_setup setup = usual_setup();
  crosstalk_ibs_status status{};
  CHECK_EQUAL(error_of(ioctl(fd, CROSSTALK_IBS_IOC_INFO, &info)), EPERM);
  CHECK_EQUAL(error_of(ioctl(fd, CROSSTALK_IBS_IOC_SETUP, &setup)), EPERM);
  CHECK_EQUAL(error_of(ioctl(fd, CROSSTALK_IBS_IOC_STATUS, &status)), EPERM);
  for (const unsigned long command : {CROSSTALK_IBS_IOC_ENABLE, CROSSTALK_IBS_IOC_DISABLE, CROSSTALK_IBS_IOC_RESET}) {
    CHECK_EQUAL(error_of(ioctl(fd, command, 0)), EPERM);
  }
  CHECK_EQUAL(error_of(read(fd, record, sizeof(record))), EPERM);
  CHECK(mmap(nullptr, 4096 + 4096 * 128, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
  pollfd poll_fd{fd, POLLIN, 0};
  CHECK_EQUAL(poll(&poll_fd, 1, 0), 1);
  CHECK_EQUAL(poll_fd.revents, POLLERR);
}

bool is_mapped(const void* place) {
  unsigned char resident = 0;
  return mincore(const_cast<void*>(place), 4096, &resident) == 0;
}

void forked() {
  Context context(O_RDWR);
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  const pid_t child = fork();
  if (child == 0) {
    check_stranger(context.fd());
    CHECK(!is_mapped(context.ring()));
    store_often(&the_word, 5'000'000);
    _exit(failures == 0 ? 0 : 1);
  }
  store_until_sampled(&the_word, context, 100);
  CHECK_EQUAL(exit_status_of(child), 0);
  const auto samples = context.drain();
  CHECK(samples.size() >= 100);
  for (const crosstalk_ibs_sample& sample : samples) {
    CHECK_EQUAL(sample.pid, static_cast<unsigned>(getpid()));
  }
}

/// The child keeps the descriptor and outlives the thread, the process, and the opener's close.
void inherited_beyond_the_end() {
  const pid_t middle = fork();
  if (middle == 0) {
    Context context(O_RDWR);
    CHECK_EQUAL(context.setup(usual_setup()), 0);
    CHECK_EQUAL(context.enable(), 0);
    const pid_t child = fork();
    if (child == 0) {
      usleep(300'000);
      check_stranger(context.fd());
      _exit(failures == 0 ? 0 : 1);
    }
    store_until_sampled(&the_word, context, 10);
    _exit(failures == 0 ? 0 : 1);  // the descriptor lives on in the child
  }
  CHECK_EQUAL(exit_status_of(middle), 0);
  usleep(600'000);
}

/// Executes this program again, which finds the descriptor in its arguments (see main).
void executed() {
  for (const bool from_thread : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      const auto replace = [] {
        Context context(O_RDWR);
        crosstalk_ibs_setup setup = usual_setup();
        setup.signal = SIGUSR1;  // would kill the new program
        std::signal(SIGUSR1, [](int) {});
        CHECK_EQUAL(context.setup(setup), 0);
        CHECK_EQUAL(context.enable(), 0);
        store_until_sampled(&the_word, context, 10);
        execl("/proc/self/exe", "kmod_lifetime", "--executed", std::to_string(context.fd()).c_str(), nullptr);
        _exit(99);
      };
      if (from_thread) {
        std::thread(replace).join();
      }
      replace();
    }
    CHECK_EQUAL(exit_status_of(child), 0);
  }
}

int executed_with(int fd) {
  check_stranger(fd);
  store_often(&the_word, 10'000'000);
  Context again;  // the thread's place is taken by the old context until that is closed
  CHECK_EQUAL(again.setup(usual_setup()), EBUSY);
  close(fd);
  CHECK_EQUAL(again.setup(usual_setup()), 0);
  return failures == 0 ? 0 : 1;
}

void sent_to_another() {
  int sockets[2];
  CHECK_EQUAL(error_of(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)), 0);
  const pid_t child = fork();
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (child == 0) {
    CHECK_EQUAL(recvmsg(sockets[1], &message, 0), 1);
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    check_stranger(fd);
    _exit(failures == 0 ? 0 : 1);
  }
  Context context;
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = context.fd();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  CHECK_EQUAL(sendmsg(sockets[0], &message, 0), 1);
  CHECK_EQUAL(exit_status_of(child), 0);
  close(sockets[0]);
  close(sockets[1]);
}

void thread_ended() {
  Context* context = nullptr;
  Context* never_set_up = nullptr;
  std::thread([&] {
    context = new Context;
    never_set_up = new Context;
    CHECK_EQUAL(context->setup(usual_setup()), 0);
    CHECK_EQUAL(context->enable(), 0);
    store_until_sampled(&the_word, *context, 30);
  }).join();
  // join returns before the kernel is done with the thread
  store_until(&the_word, [&] { return (context->status().state & CROSSTALK_IBS_ENDED) != 0; });
  const crosstalk_ibs_status status = context->status();
  CHECK_EQUAL(status.state & CROSSTALK_IBS_ENDED, CROSSTALK_IBS_ENDED);
  pollfd poll_fd{context->fd(), POLLIN, 0};
  CHECK_EQUAL(poll(&poll_fd, 1, 0), 1);
  CHECK_EQUAL(poll_fd.revents, POLLIN | POLLHUP);
  std::uint64_t records = 0;
  std::array<crosstalk_ibs_sample, 7> buffer{};
  for (ssize_t bytes = 1; bytes > 0; records += static_cast<std::uint64_t>(bytes) / sizeof(buffer[0])) {
    bytes = read(context->fd(), buffer.data(), sizeof(buffer));
    CHECK(bytes >= 0);
  }
  CHECK_EQUAL(records, status.samples);
  CHECK(records >= 30);
  CHECK_EQUAL(context->disable(), 0);
  CHECK_EQUAL(context->enable(), ESRCH);
  CHECK_EQUAL(never_set_up->setup(usual_setup()), ESRCH);
  delete context;
  delete never_set_up;
}

/// A reader that sleeps for samples wakes when the thread ends without giving it any.
void reader_of_a_dying_thread() {
  std::atomic<Context*> shared{nullptr};
  std::atomic<bool> end{false};
  std::thread worker([&] {
    auto* context = new Context;
    crosstalk_ibs_setup setup = usual_setup();
    setup.period = 100'000'000;
    setup.random = 0;
    setup.watermark = 4096;
    CHECK_EQUAL(context->setup(setup), 0);
    CHECK_EQUAL(context->enable(), 0);
    shared = context;
    while (!end) {
      usleep(10'000);
    }
  });
  while (shared == nullptr) {
    usleep(1000);
  }
  std::thread killer([&] {
    usleep(200'000);
    end = true;
  });
  std::array<crosstalk_ibs_sample, 7> buffer{};
  while (read(shared.load()->fd(), buffer.data(), sizeof(buffer)) > 0) {
  }
  killer.join();
  worker.join();
  delete shared.load();
}

void storm_thread(std::atomic<int>* sampled, bool leave_open) {
  auto* context = new Context;
  crosstalk_ibs_setup setup = usual_setup();
  setup.records = 32;
  setup.period = 1'000'000;
  setup.random = 900'000;
  if (CHECK_EQUAL(context->setup(setup), 0) && CHECK(context->map() != nullptr)) {
    CHECK_EQUAL(context->enable(), 0);
    std::uint64_t word = 0;
    store_until_sampled(&word, *context, 3);
    const auto samples = context->drain();
    for (const crosstalk_ibs_sample& sample : samples) {
      CHECK_EQUAL(sample.tid, static_cast<unsigned>(thread_id()));
      const bool in_loop = sample.ip - reinterpret_cast<std::uint64_t>(&store_often) < 32;
      CHECK(!in_loop || (sample.flags & CROSSTALK_IBS_S_STORE) == 0 ||
            sample.address == reinterpret_cast<std::uint64_t>(&word));
    }
    *sampled += samples.empty() ? 0 : 1;
  }
  if (!leave_open) {
    delete context;
  }
}

/// 1000 threads at once, of which a third leave their context to the process's end.
void storm() {
  constexpr int kThreads = 1000;
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> sampled{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back(storm_thread, &sampled, i % 3 == 0);
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    CHECK_EQUAL(sampled.load(), kThreads);
    _exit(failures == 0 ? 0 : 1);
  }
  CHECK_EQUAL(exit_status_of(child), 0);
}

void two_processes() {
  std::array<pid_t, 2> children{};
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      Context context;
      CHECK_EQUAL(context.setup(usual_setup()), 0);
      CHECK(context.map() != nullptr);
      CHECK_EQUAL(context.enable(), 0);
      store_until_sampled(&the_word, context, 200);
      const auto samples = context.drain();
      CHECK(samples.size() >= 200);
      for (const crosstalk_ibs_sample& sample : samples) {
        CHECK_EQUAL(sample.pid, static_cast<unsigned>(getpid()));
      }
      _exit(failures == 0 ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    CHECK_EQUAL(exit_status_of(child), 0);
  }
}

/// Processes with sampled, signalled threads, killed at any moment.
void killed() {
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGUSR1, [](int) {});
      for (int i = 0; i < 4; ++i) {
        std::thread([] {
          for (;;) {
            Context context;
            crosstalk_ibs_setup setup = usual_setup();
            setup.period = 50'000;
            setup.random = 0;
            setup.signal = SIGUSR1;
            context.setup(setup);
            context.enable();
            store_often(&the_word, 1'000'000);
          }
        }).detach();
      }
      for (;;) {
        pause();
      }
    }
    usleep(static_cast<useconds_t>(5'000 + round * 3'000));
    kill(child, SIGKILL);
    CHECK_EQUAL(exit_status_of(child), 1000 + SIGKILL);
  }
}

/// "VmPin:  516 kB"
long pinned_kb() {
  long kb = -1;
  std::array<char, 256> line{};
  FILE* file = std::fopen("/proc/self/status", "r");
  while (file != nullptr && std::fgets(line.data(), line.size(), file) != nullptr) {
    std::sscanf(line.data(), "VmPin: %ld", &kb);
  }
  std::fclose(file);
  return kb;
}

void accounted() {
  const long before = pinned_kb();
  {
    Context context;
    CHECK_EQUAL(context.setup(usual_setup()), 0);
    CHECK_EQUAL(pinned_kb() - before, 4 + 4096 * 128 / 1024);
  }
  CHECK_EQUAL(pinned_kb(), before);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--executed") == 0) {
    return executed_with(std::atoi(argv[2]));
  }
  return run_checks({{"forked", forked},
                     {"inherited_beyond_the_end", inherited_beyond_the_end},
                     {"executed", executed},
                     {"sent_to_another", sent_to_another},
                     {"thread_ended", thread_ended},
                     {"reader_of_a_dying_thread", reader_of_a_dying_thread},
                     {"storm", storm},
                     {"two_processes", two_processes},
                     {"killed", killed},
                     {"accounted", accounted}},
                    argc, argv);
}
