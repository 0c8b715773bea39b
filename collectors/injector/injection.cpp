// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/injection.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collectors/injection_answer.h"
#include "collectors/injector/preconditions.h"
#include "collectors/injector/refusal.h"
#include "collectors/injector/safe_point.h"
#include "collectors/injector/stack_room.h"
#include "collectors/injector/target_code.h"
#include "collectors/injector/tracee.h"
#include "collectors/observer/target_process.h"

namespace crosstalk::injector {
namespace {

using collectors::InjectionAnswer;
using collectors::InjectionState;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t start_patience_ns = 1000 * ms;  // to find a thread that can make a call
constexpr std::uint64_t stop_patience_ns = 3000 * ms;
constexpr std::uint64_t leave_patience_ns = 3000 * ms;   // for threads that are about to leave the library
constexpr std::uint64_t longest_leave_ns = 30000 * ms;   // if there are always more of them to look at
constexpr std::uint64_t meet_patience_ns = 3000 * ms;    // for all threads; the library looks for more by itself
constexpr std::uint64_t call_patience_ns = 20'000 * ms;  // for the called function; processors may be busy
constexpr std::uint64_t load_patience_ns = 5000 * ms;
constexpr timespec between_rounds{0, 3'000'000};
constexpr timespec pause_between_looks{0, 200'000};

struct Call {
  std::uint64_t function = 0;
  std::string text;        // its first argument
  std::uint64_t more = 0;  // its second
  std::uint64_t restorer = 0;
};

/// The result of an attempt with one thread.
struct Attempt {
  bool sent = false;
  std::uint64_t stood_ns = 0;  // since when it stood; 0: it did not
  std::string why_not;         // empty: nothing can be said
  std::uint64_t stop_ns = 0;   // for how long
};

/// While it lives the recorder gets a processor at once, if it has the right to: a thread stands still until it is let
/// go.
class Urgent {
 public:
  Urgent() {
    const sched_param first{1};
    raised_ = ::pthread_getschedparam(::pthread_self(), &policy_, &usual_) == 0 && policy_ == SCHED_OTHER &&
              ::pthread_setschedparam(::pthread_self(), SCHED_RR, &first) == 0;
  }
  ~Urgent() {
    if (raised_) {
      ::pthread_setschedparam(::pthread_self(), policy_, &usual_);
    }
  }
  Urgent(const Urgent&) = delete;
  Urgent& operator=(const Urgent&) = delete;

 private:
  int policy_ = SCHED_OTHER;
  sched_param usual_{};
  bool raised_ = false;
};

/// True if the thread pointer points to libc's control block, which every call needs. Programs may let the thread
/// pointer point elsewhere for a while (guests, other runtimes); glibc's block points to itself, twice (`tcb` and
/// `self` of tcbhead_t).
bool has_control_block(pid_t pid, std::uint64_t thread_pointer) {
  std::array<std::uint64_t, 3> head{};
  return observer::TargetMemory(pid).read(thread_pointer, head.data(), sizeof head) && head[0] == thread_pointer &&
         head[2] == thread_pointer;
}

Result<Attempt> stop_and_send(pid_t pid, pid_t tid, TargetCode& code, const Call& call) {
  auto stopped = Tracee::stop(pid, tid);
  if (!stopped) {
    return tl::unexpected<Error>(stopped.error());
  }
  if (!*stopped) {
    return Attempt{false, 0, "it cannot be stopped"};
  }
  Tracee& tracee = **stopped;
  const std::uint64_t stood_ns = monotonic_ns();
  const auto goes_on = resumed(tracee.thread().registers);
  if (!goes_on) {
    return Attempt{false, stood_ns, "it waits with a time limit"};
  }
  if (!has_control_block(pid, goes_on->fs_base)) {
    return Attempt{false, stood_ns, "its thread pointer is not the C library's"};
  }
  if (!code.has_stack(goes_on->rsp)) {
    return Attempt{false, stood_ns, "its stack has too little room"};
  }
  if (std::string why = why_no_call(code.stack_of(tracee.registers())); !why.empty()) {
    return Attempt{false, stood_ns, std::move(why)};
  }
  auto frame = lay_out_call(tracee.thread(), *goes_on, call.function, call.text, call.more, call.restorer);
  if (!frame) {
    return Attempt{false, stood_ns, frame.error().message};
  }
  return Attempt{tracee.send(*frame), stood_ns, "its stack cannot be written"};
}

Result<Attempt> attempt(pid_t pid, pid_t tid, TargetCode& code, const Call& call) {
  const Urgent urgent;
  Result<Attempt> tried = stop_and_send(pid, tid, code, call);
  if (tried && tried->stood_ns != 0) {  // looked up before others may take the processor
    tried->stop_ns = monotonic_ns() - tried->stood_ns;
  }
  return tried;
}

/// Notes how long the calling thread was away, by the target's note of the call's end.
void note_call(const InjectionAnswer& answer, std::uint64_t sent_ns, Pauses& pauses) {
  const std::uint64_t now_ns = monotonic_ns();
  const bool possible = answer.done_ns >= sent_ns && answer.done_ns <= now_ns;  // else its clock is another one
  pauses.longest_call_ns = std::max(pauses.longest_call_ns, (possible ? answer.done_ns : now_ns) - sent_ns);
}

/// Has one of the threads make the call: the first that is found to hold nothing that the call might wait for.
/// When that was (CLOCK_MONOTONIC, ns).
Result<std::uint64_t> send_call(pid_t pid, TargetCode& code, const Call& call, std::uint64_t patience_ns,
                                Pauses& pauses) {
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  std::string why = "none of its threads runs, or waits where it can be interrupted";
  do {
    for (const pid_t tid : observer::threads_of_program(pid)) {
      if (doing(pid, tid) == Doing::other) {
        continue;
      }
      if (const std::string no_calls = why_no_calls_by(pid, tid); !no_calls.empty()) {
        why = "a thread " + no_calls;
        continue;
      }
      auto tried = attempt(pid, tid, code, call);
      if (!tried) {
        return refuse(pid, tried.error().message);
      }
      if (tried->stood_ns != 0) {
        ++pauses.stops;
        pauses.longest_stop_ns = std::max(pauses.longest_stop_ns, tried->stop_ns);
      }
      if (tried->sent) {
        return tried->stood_ns;
      }
      why = tried->why_not.empty() ? why : "of the last thread that was tried: " + tried->why_not;
    }
    ::nanosleep(&between_rounds, nullptr);
  } while (monotonic_ns() < until_ns && !observer::has_ended(pid));
  return observer::has_ended(pid) ? refuse(pid, "it has ended")
                                  : refuse(pid, "no thread was found within " + std::to_string(patience_ns / ms) +
                                                    " ms at a point where a library can be loaded (" + why +
                                                    "); try again, or record from outside, without --inject");
}

std::optional<InjectionAnswer> answer_of(pid_t pid, const TargetCode& code) {
  const auto address = code.find(CodeOwner::collector, collectors::injection_answer_symbol);
  InjectionAnswer answer;
  if (!address || !observer::TargetMemory(pid).read(*address, &answer, sizeof answer) ||
      answer.magic != collectors::injection_magic) {
    return std::nullopt;
  }
  answer.reason[sizeof answer.reason - 1] = 0;
  return answer;
}

/// Finds the process's dlopen(): in libc since glibc 2.34, in a library of its own before, else libc's own name for it.
Result<Call> loading(pid_t pid, const TargetCode& code, const std::string& library) {
  constexpr std::uint64_t for_libc = 0x80000000;  // __RTLD_DLOPEN
  const auto restorer = code.restorer();
  if (!restorer) {
    return refuse(pid, "its C library is not one that is known here: it has no end of signal handlers");
  }
  const std::uint64_t mode = RTLD_NOW | RTLD_LOCAL;
  for (const CodeOwner owner : {CodeOwner::libc, CodeOwner::loader}) {
    if (const auto address = code.find(owner, "dlopen")) {
      return Call{*address, library, mode, *restorer};
    }
  }
  if (const auto address = code.find(CodeOwner::libc, "__libc_dlopen_mode")) {
    return Call{*address, library, mode | for_libc, *restorer};
  }
  return refuse(pid, "no dlopen() is found in its C library");
}

}  // namespace

Result<void> Injection::load() {
  TargetCode code(pid_, library_);
  if (const observer::TargetModule* const there = code.library()) {
    return there->path == library_
               ? Result<void>()
               : refuse(pid_, "it has the library of another crosstalk in it, " + there->path + "; use that one");
  }
  const auto call = loading(pid_, code, library_);
  if (!call) {
    return tl::unexpected<Error>(call.error());
  }
  const auto sent_ns = send_call(pid_, code, *call, start_patience_ns, pauses_);
  if (!sent_ns) {
    return tl::unexpected<Error>(sent_ns.error());
  }
  const std::uint64_t until_ns = monotonic_ns() + load_patience_ns;
  while (monotonic_ns() < until_ns && !observer::has_ended(pid_)) {
    const auto maps = observer::maps_of(pid_);
    const bool mapped = std::any_of(maps.begin(), maps.end(), [&](const auto& m) { return m.path == library_; });
    if (mapped) {
      const TargetCode loaded(pid_, library_);
      const auto answer = answer_of(pid_, loaded);
      if (answer && answer->loaded != 0) {
        note_call(*answer, *sent_ns, pauses_);
        return {};
      }
    }
    ::nanosleep(&pause_between_looks, nullptr);
  }
  return refuse(pid_, observer::has_ended(pid_) ? "it has ended"
                                                : "its dynamic loader did not load " + library_ +
                                                      " (are the libraries that it needs there?)");
}

Result<void> Injection::call_library(const char* function, const std::string& argument, std::uint64_t patience_ns) {
  TargetCode code(pid_, library_);
  const auto before = answer_of(pid_, code);
  const auto address = code.find(CodeOwner::collector, function);
  const auto restorer = code.restorer();
  if (!before || !address || !restorer) {
    return refuse(pid_, "the library in it is not the one of this version of crosstalk");
  }
  const auto sent_ns = send_call(pid_, code, {*address, argument, 0, *restorer}, patience_ns, pauses_);
  if (!sent_ns) {
    return tl::unexpected<Error>(sent_ns.error());
  }
  const std::uint64_t until_ns = monotonic_ns() + call_patience_ns;
  while (monotonic_ns() < until_ns && !observer::has_ended(pid_)) {
    const auto now = answer_of(pid_, code);
    if (now && now->done != before->done) {
      note_call(*now, *sent_ns, pauses_);
      const std::string reason = now->reason;
      return reason.empty() ? Result<void>() : refuse(pid_, reason);
    }
    ::nanosleep(&pause_between_looks, nullptr);
  }
  return refuse(pid_, observer::has_ended(pid_) ? "it has ended" : "the library in it does not answer");
}

Result<void> Injection::begin(const std::string& arena) {
  const auto no_room = why_no_room_for_signals(pid_);
  if (!no_room) {
    return refuse(pid_, no_room.error().message);
  }
  if (!no_room->empty()) {
    return refuse(pid_, *no_room + "; record from outside, without --inject");
  }
  auto done = load();
  if (done) {
    done = call_library(collectors::injection_start_symbol, arena, start_patience_ns);
  }
  const auto answer = done ? std::nullopt : answer_of(pid_, TargetCode(pid_, library_));
  if (answer && answer->state == static_cast<std::uint32_t>(InjectionState::leaving)) {
    done = leave();  // left by a recorder that was killed
    if (done) {
      done = call_library(collectors::injection_start_symbol, arena, start_patience_ns);
    }
  }
  if (done) {
    meet_threads();
  }
  return done;
}

/// A thread that cannot be asked for that now does not prevent observing: the library looks for threads by itself, too.
void Injection::meet_threads() {
  const TargetCode code(pid_, library_);
  const auto more = [&] {
    const auto answer = answer_of(pid_, code);
    return answer && answer->more != 0;
  };
  const std::uint64_t until_ns = monotonic_ns() + meet_patience_ns;
  while (more() && monotonic_ns() < until_ns &&
         call_library(collectors::injection_go_on_symbol, "", start_patience_ns)) {
  }
}

Result<std::unique_ptr<Injection>> Injection::start(pid_t pid, const std::string& library, const std::string& arena) {
  std::unique_ptr<Injection> injection(new Injection(pid, library));
  if (auto begun = injection->begin(arena); !begun) {
    const std::string instead = injection->program_.what_became_of_it();
    return instead.empty() ? tl::unexpected<Error>(begun.error()) : refuse(pid, instead);
  }
  return injection;
}

// A process that has ended, or executes another program, has nothing left of ours.
Result<void> Injection::stop() {
  auto left = leave();
  return left || !program_.what_became_of_it().empty() ? Result<void>() : std::move(left);
}

Result<void> Injection::leave() {
  const TargetCode code(pid_, library_);
  const auto has_left = [&] {
    const auto answer = answer_of(pid_, code);  // nothing: it executes another program by now
    return !answer || answer->state == static_cast<std::uint32_t>(InjectionState::dormant) ||
           answer->state == static_cast<std::uint32_t>(InjectionState::preloaded);
  };
  const std::uint64_t at_most_ns = monotonic_ns() + longest_leave_ns;
  std::uint64_t until_ns = monotonic_ns() + leave_patience_ns;
  while (!has_left() && monotonic_ns() < until_ns) {
    if (auto called = call_library(collectors::injection_stop_symbol, "", stop_patience_ns); !called) {
      return called;
    }
    if (const auto answer = answer_of(pid_, code); answer && answer->more != 0) {
      until_ns = std::min(monotonic_ns() + leave_patience_ns, at_most_ns);  // it has not looked at all threads yet
    } else {
      ::nanosleep(&between_rounds, nullptr);
    }
  }
  return has_left() ? Result<void>()
                    : refuse(pid_, "one of its threads did not leave the collector within " +
                                       std::to_string(leave_patience_ns / ms) +
                                       " ms (is it stopped?): two signal handlers are left, which do nothing");
}

}  // namespace crosstalk::injector
