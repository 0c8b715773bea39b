// SPDX-License-Identifier: Apache-2.0
// Attempts to get samples of other users' programs: of programs with more rights, by descriptors from before an exec,
// and of ended processes. As root, in a guest.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <thread>

#include "kmod_process.h"

using namespace kmod_test;

namespace {

constexpr const char* kSetUserId = "/tmp/kmod_hostile_suid";  // this program, as root whoever executes it
alignas(64) std::uint64_t the_word = 0;

[[noreturn]] void store_for_ever() {
  for (;;) {
    store_often(&the_word, 10'000);
  }
}

/// A child that stores until a byte tells it to execute this program anew, which then stores for ever.
class Executing {
 public:
  Executing() {
    CHECK_EQUAL(error_of(pipe2(gate_.data(), O_NONBLOCK)), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char byte = 0;
      while (read(gate_[0], &byte, 1) != 1) {
        store_often(&the_word, 10'000);
      }
      execl("/proc/self/exe", "kmod_hostile", "--store-for-ever", nullptr);
      _exit(99);
    }
  }
  Executing(const Executing&) = delete;
  Executing& operator=(const Executing&) = delete;
  ~Executing() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(gate_[0]);
    close(gate_[1]);
  }
  pid_t pid() const { return pid_; }
  /// Returns when it is the other program.
  void execute() {
    const std::string before = command_line();
    CHECK_EQUAL(write(gate_[1], "x", 1), 1);
    while (command_line() == before) {
      usleep(1'000);
    }
  }

 private:
  std::string command_line() const {
    std::array<char, 256> text{};
    const int fd = open(("/proc/" + std::to_string(pid_) + "/cmdline").c_str(), O_RDONLY);
    const ssize_t bytes = read(fd, text.data(), text.size());
    close(fd);
    // While it is being replaced there is none.
    return bytes > 0 ? std::string(text.data(), static_cast<std::size_t>(bytes)) : std::string("kmod_hostile");
  }
  std::array<int, 2> gate_{};
  pid_t pid_ = -1;
};

// ---- another program in the thread ----

/// A context that was opened, not yet set up, when the thread became another program.
void set_up_after_exec() {
  Executing child;
  const int memory = open_memory(child.pid());
  Context context;
  CHECK_EQUAL(follow(context, child.pid(), memory), 0);
  child.execute();
  CHECK_EQUAL(context.setup(usual_setup()), ESRCH);
  CHECK_EQUAL(context.status().state, CROSSTALK_IBS_ENDED);
  close(memory);
}

/// A reader that waits for samples learns that none will come.
void waiting_at_exec() {
  Executing child;
  const int memory = open_memory(child.pid());
  Context context;
  crosstalk_ibs_setup setup = usual_setup();
  setup.watermark = setup.records;
  CHECK_EQUAL(follow(context, child.pid(), memory), 0);
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK_EQUAL(context.enable(), 0);
  while (context.status().samples < 5) {
    usleep(1'000);
  }
  std::thread executing([&child] { child.execute(); });
  pollfd poll_fd{context.fd(), POLLIN, 0};
  CHECK_EQUAL(poll(&poll_fd, 1, 20'000), 1);
  CHECK_EQUAL(poll_fd.revents, POLLIN | POLLHUP);
  executing.join();
  const crosstalk_ibs_status status = context.status();
  CHECK_EQUAL(status.state, CROSSTALK_IBS_SET_UP | CROSSTALK_IBS_ENABLED | CROSSTALK_IBS_ENDED);
  std::array<crosstalk_ibs_sample, 64> records{};
  while (read(context.fd(), records.data(), sizeof(records)) > 0) {
  }
  usleep(200'000);  // not even how long it runs is told
  CHECK_EQUAL(context.status().running_ns, status.running_ns);
  CHECK_EQUAL(context.status().filtered, status.filtered);
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.enable(), ESRCH);
  close(memory);
}

std::atomic<int> shared_fd{-1};
std::atomic<bool> may_execute{false};

int open_and_execute(void* /*unused*/) {
  shared_fd = open(kDevice, O_RDWR);
  while (!may_execute) {
    usleep(1'000);
  }
  execl(kSetUserId, "kmod_hostile", "--store", nullptr);
  return 99;
}

/// Two processes in one address space: one opens a context of itself and executes a set-user-ID program, the other,
/// whose address space is the opener's still, sets it up.
void shared_memory_and_set_user_id() {
  as_nobody([] {
    static std::array<char, 1 << 16> stack;
    const pid_t child = clone(open_and_execute, stack.data() + stack.size(), CLONE_VM | CLONE_FILES | SIGCHLD, nullptr);
    while (shared_fd < 0) {
      usleep(1'000);
    }
    may_execute = true;
    struct stat of_process {};
    const std::string folder = "/proc/" + std::to_string(child);
    while (stat((folder + "/mem").c_str(), &of_process) == 0 && of_process.st_uid != 0) {
      usleep(1'000);
    }
    const crosstalk_ibs_setup setup = usual_setup();
    crosstalk_ibs_status status{};
    CHECK_EQUAL(error_of(ioctl(shared_fd, CROSSTALK_IBS_IOC_SETUP, &setup)), ESRCH);
    CHECK_EQUAL(error_of(ioctl(shared_fd, CROSSTALK_IBS_IOC_ENABLE, 0)), ENXIO);
    CHECK_EQUAL(error_of(ioctl(shared_fd, CROSSTALK_IBS_IOC_STATUS, &status)), 0);
    CHECK_EQUAL(status.running_ns, 0U);
    close(shared_fd);
    const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    pollfd ended{pid_fd, POLLIN, 0};
    CHECK_EQUAL(poll(&ended, 1, 20'000), 1);  // it ends by itself: nobody may kill it
    waitpid(child, nullptr, 0);
  });
}

// ---- the right to follow ----

/// A descriptor of the memory that a process had before it executed a set-user-ID program is of no use for that.
void memory_from_before_set_user_id() {
  as_nobody([] {
    const pid_t child = fork();
    if (child == 0) {
      usleep(200'000);
      execl(kSetUserId, "kmod_hostile", "--store", nullptr);
      _exit(99);
    }
    const int memory = open_memory(child, O_RDWR);
    CHECK(memory >= 0);
    Context early;
    CHECK_EQUAL(follow(early, child, memory), 0);
    usleep(800'000);
    CHECK_EQUAL(error_of(open_memory(child)), EACCES);
    Context late;
    CHECK_EQUAL(follow(late, child, memory), EPERM);
    CHECK_EQUAL(early.setup(usual_setup()), ESRCH);
    waitpid(child, nullptr, 0);
  });
}

/// The own memory, kept open while the process itself becomes a set-user-ID program, which is made to use it.
void own_memory_across_set_user_id() {
  as_nobody([] {
    const pid_t child = fork();
    if (child == 0) {
      const int memory = open("/proc/self/mem", O_RDONLY);
      execl(kSetUserId, "kmod_hostile", "--follow-self", std::to_string(memory).c_str(), nullptr);
      _exit(99);
    }
    CHECK_EQUAL(exit_status_of(child), EPERM);
  });
}

/// The right to attach is checked when the memory is opened. A process that is closed to others is closed to FOLLOW,
/// too.
void not_dumpable() {
  as_nobody([] {
    std::array<int, 2> gate{};
    CHECK_EQUAL(error_of(pipe(gate.data())), 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_DUMPABLE, 0);
      CHECK_EQUAL(write(gate[1], "x", 1), 1);
      store_for_ever();
    }
    char byte = 0;
    CHECK_EQUAL(read(gate[0], &byte, 1), 1);
    CHECK_EQUAL(error_of(open_memory(child)), EACCES);
    const int own = open_memory(getpid());
    Context context;
    CHECK_EQUAL(follow(context, child, own), EPERM);
    close(own);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  });
}

/// Root in a user namespace of its own has no rights here.
void user_namespace() {
  as_nobody([] {
    if (unshare(CLONE_NEWUSER) != 0) {
      std::printf("no user namespaces for users (%s)\n", std::strerror(errno));
      return;
    }
    for (const unsigned flags : {CROSSTALK_IBS_KERNEL, CROSSTALK_IBS_PHYSICAL}) {
      Context context;
      crosstalk_ibs_setup setup = usual_setup();
      setup.flags = flags;
      CHECK_EQUAL(context.setup(setup), flags == CROSSTALK_IBS_KERNEL ? EACCES : EPERM);
    }
    const Context context;
    CHECK_EQUAL(context.setup(usual_setup()), 0);
  });
}

/// An ended process that has not been waited for.
void ended_process() {
  const pid_t child = fork();
  if (child == 0) {
    store_for_ever();
  }
  const int memory = open_memory(child);
  Context set_up;
  CHECK_EQUAL(follow(set_up, child, memory), 0);
  CHECK_EQUAL(set_up.setup(usual_setup()), 0);
  kill(child, SIGKILL);
  siginfo_t info{};
  CHECK_EQUAL(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  Context context;
  CHECK_EQUAL(follow(context, child, memory), ESRCH);
  waitpid(child, nullptr, 0);
  CHECK_EQUAL(follow(context, child, memory), ESRCH);
  // A context that was never enabled: every call has an answer.
  const crosstalk_ibs_period period{1'000'000, 0};
  const crosstalk_ibs_setup setup = usual_setup();
  std::array<crosstalk_ibs_sample, 4> records{};
  CHECK_EQUAL(set_up.status().state, CROSSTALK_IBS_SET_UP | CROSSTALK_IBS_ENDED);
  CHECK_EQUAL(set_up.enable(), ESRCH);
  CHECK_EQUAL(set_up.disable(), 0);
  CHECK_EQUAL(set_up.call(CROSSTALK_IBS_IOC_PERIOD, &period), 0);
  CHECK_EQUAL(set_up.call(CROSSTALK_IBS_IOC_RESET), 0);
  CHECK_EQUAL(set_up.setup(setup), EBUSY);
  CHECK_EQUAL(follow(set_up, getpid(), memory), EPERM);
  CHECK_EQUAL(read(set_up.fd(), records.data(), sizeof(records)), 0);
  CHECK(set_up.map() != nullptr);
  close(memory);
}

/// A copy of this program that is executed as root.
void make_set_user_id() {
  const std::string copy = std::string("cp /proc/") + std::to_string(getpid()) + "/exe " + kSetUserId;
  CHECK_EQUAL(std::system(copy.c_str()), 0);  // NOLINT(cert-env33-c): the guest's own shell
  CHECK_EQUAL(error_of(chown(kSetUserId, 0, 0)) + error_of(chmod(kSetUserId, 04755)), 0);
}

/// As the set-user-ID program: errno of FOLLOW of itself by a descriptor that it was left.
int follow_self(int memory) {
  if (geteuid() != 0) {
    return 98;
  }
  const Context context;
  return follow(context, getpid(), memory);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--store-for-ever") == 0) {
    store_for_ever();
  }
  if (argc == 2 && std::strcmp(argv[1], "--store") == 0) {
    const double end = seconds_of(CLOCK_MONOTONIC) + 2;
    while (seconds_of(CLOCK_MONOTONIC) < end) {
      store_often(&the_word, 10'000);
    }
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "--follow-self") == 0) {
    return follow_self(std::atoi(argv[2]));
  }
  make_set_user_id();
  open_to_nobody();
  return run_checks({{"set_up_after_exec", set_up_after_exec},
                     {"waiting_at_exec", waiting_at_exec},
                     {"shared_memory_and_set_user_id", shared_memory_and_set_user_id},
                     {"memory_from_before_set_user_id", memory_from_before_set_user_id},
                     {"own_memory_across_set_user_id", own_memory_across_set_user_id},
                     {"not_dumpable", not_dumpable},
                     {"user_namespace", user_namespace},
                     {"ended_process", ended_process}},
                    argc, argv);
}
