// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/tracee.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/number.h"
#include "base/proc_fields.h"
#include "collectors/ptrace_scope.h"

namespace crosstalk::injector {
namespace {

// Without a time limit, or with one that is a point in time, these begin again after a stop (ERESTARTSYS and the like,
// signal(7)). Calls with a duration are detected by the kernel's answer: resumed().
constexpr std::array<std::uint64_t, 13> quiet = {
    SYS_poll,          SYS_select, SYS_pause,           SYS_nanosleep,       SYS_wait4,
    SYS_rt_sigsuspend, SYS_futex,  SYS_restart_syscall, SYS_clock_nanosleep, SYS_waitid,
    SYS_pselect6,      SYS_ppoll,  SYS_sched_yield};

constexpr std::uint64_t bit(int number) { return std::uint64_t{1} << static_cast<unsigned>(number - 1); }

long trace(long request, pid_t tid, std::uint64_t address, const void* data) {
  return ::syscall(SYS_ptrace, request, tid, address, data);
}

/// Returns the next status of a traced thread, as waitpid(2) has it; nothing: there is none by this number any more.
/// Polls: a first thread that is traced, and ends because another one executes a program (which takes its number over),
/// wakes no sleeper in waitpid(2) (seen with Linux 6.18).
std::optional<int> next_status(pid_t tid) {
  constexpr long shortest_ns = 10'000, longest_ns = 1'000'000;
  for (timespec pause{0, shortest_ns};; pause.tv_nsec = std::min(2 * pause.tv_nsec, longest_ns)) {
    int status = 0;
    const pid_t found = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (found == tid) {
      return status;
    }
    if (found < 0 && errno != EINTR) {
      return std::nullopt;
    }
    ::nanosleep(&pause, nullptr);
  }
}

/// Waits until PTRACE_INTERRUPT has stopped the thread. Passes on signals that come before.
bool wait_for_stop(pid_t tid) {
  while (const auto status = next_status(tid)) {
    if (!WIFSTOPPED(*status)) {
      return false;  // it has ended
    }
    const int event = *status >> 16;
    if (event == PTRACE_EVENT_STOP) {
      return WSTOPSIG(*status) == SIGTRAP;  // else all of the process is stopped, by a signal
    }
    const std::uint64_t signal = event == 0 ? static_cast<std::uint64_t>(WSTOPSIG(*status)) : 0;
    trace(PTRACE_CONT, tid, 0, reinterpret_cast<const void*>(signal));  // NOLINT: ptrace takes it as an address
  }
  return false;
}

}  // namespace

Doing doing_by(const std::string& text) {
  if (text.starts_with("running")) {
    return Doing::runs;
  }
  const std::int64_t number = leading_number<std::int64_t>(text).value_or(-1);
  const bool waits =
      number >= 0 && std::find(quiet.begin(), quiet.end(), static_cast<std::uint64_t>(number)) != quiet.end();
  return waits ? Doing::waits_quietly : Doing::other;
}

Doing doing(pid_t pid, pid_t tid) {
  return doing_by(file_text("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/syscall"));
}

Result<std::optional<Tracee>> Tracee::stop(pid_t pid, pid_t tid) {
  if (trace(PTRACE_SEIZE, tid, 0, nullptr) != 0) {
    if (errno == ESRCH) {
      return std::optional<Tracee>();
    }
    const std::string error = std::strerror(errno);
    const std::string advice = collectors::scope_advice(collectors::ptrace_scope());
    return fail(ErrorCode::permission, "it may not be traced: " + error + (advice.empty() ? "" : "; " + advice));
  }
  Tracee tracee(pid, tid);
  if (trace(PTRACE_INTERRUPT, tid, 0, nullptr) != 0 || !wait_for_stop(tid) || !tracee.read()) {
    return std::optional<Tracee>();
  }
  return std::optional<Tracee>(std::move(tracee));
}

Tracee::Tracee(Tracee&& other) noexcept
    : pid_(other.pid_), tid_(std::exchange(other.tid_, 0)), sent_(other.sent_), thread_(std::move(other.thread_)) {}

Tracee::~Tracee() {
  if (tid_ != 0) {
    if (!sent_) {
      repeat_call();
    }
    trace(PTRACE_DETACH, tid_, 0, nullptr);
  }
}

bool Tracee::read() {
  constexpr std::size_t most_vector_bytes = 16384;
  thread_.vector_state.resize(most_vector_bytes);
  iovec area{thread_.vector_state.data(), thread_.vector_state.size()};
  if (trace(PTRACE_GETREGS, tid_, 0, &thread_.registers) != 0 ||
      trace(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, &area) != 0 ||
      trace(PTRACE_GETSIGMASK, tid_, sizeof thread_.mask, &thread_.mask) != 0) {
    return false;
  }
  thread_.vector_state.resize(area.iov_len);
  return true;
}

Registers Tracee::registers() const {
  const user_regs_struct& from = thread_.registers;
  Registers to;
  to.value = {from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp, from.r8,
              from.r9,  from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip};
  return to;
}

// A system call that ends with EINTR at any stop: the thread had begun it when it was stopped while it ran.
void Tracee::repeat_call() {
  const user_regs_struct& stopped = thread_.registers;
  const auto goes_on = resumed(stopped);
  if (static_cast<std::int64_t>(stopped.rax) == -EINTR && goes_on && goes_on->rip != stopped.rip) {
    trace(PTRACE_SETREGS, tid_, 0, &*goes_on);
  }
}

bool Tracee::send(const CallFrame& call) {
  constexpr std::uint64_t urgent = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS);
  const std::uint64_t mask = ~urgent | thread_.mask;
  iovec here{const_cast<std::byte*>(call.bytes.data()), call.bytes.size()};  // NOLINT: it is read
  iovec there{reinterpret_cast<void*>(call.begin), call.bytes.size()};       // NOLINT: an address of the target
  if (::process_vm_writev(pid_, &here, 1, &there, 1, 0) != static_cast<ssize_t>(call.bytes.size()) ||
      trace(PTRACE_SETSIGMASK, tid_, sizeof mask, &mask) != 0) {
    return false;
  }
  if (trace(PTRACE_SETREGS, tid_, 0, &call.registers) != 0) {
    trace(PTRACE_SETSIGMASK, tid_, sizeof thread_.mask, &thread_.mask);
    return false;
  }
  sent_ = true;
  return true;
}

}  // namespace crosstalk::injector
