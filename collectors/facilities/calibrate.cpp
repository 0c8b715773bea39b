// SPDX-License-Identifier: Apache-2.0
// Measures the costs of observing on this machine. All of it happens in a forked child, so that the recorder's own
// signal dispositions, timers and processor affinity do not change; the child sends the figures over a pipe and is
// killed when it takes too long.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "collectors/facilities/probe.h"
#include "collectors/facilities/probe_perf.h"

namespace crosstalk::collectors {

namespace {

/// The child's results.
struct Findings {
  ObservingCosts costs;
  // Accesses to a watched word, and the signals that reported them.
  std::uint32_t watched_accesses = 0, signals_of_them = 0;
};

constexpr int give_up_ms = 300;

volatile std::uint64_t watched_variable = 0;
volatile std::sig_atomic_t signals_seen = 0;

void count_signal(int) { signals_seen = signals_seen + 1; }

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = count_signal;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

/// The least time of one call of `work`, over `batches` batches of `calls`: interference only ever adds.
template <class Work>
double least_ns(int batches, int calls, Work work) {
  double least = std::numeric_limits<double>::max();
  for (int batch = 0; batch < batches; ++batch) {
    const std::uint64_t begin = monotonic_ns();
    for (int call = 0; call < calls; ++call) {
      work();
    }
    least = std::min(least, static_cast<double>(monotonic_ns() - begin) / calls);
  }
  return least;
}

/// A measured difference as a cost; 0 (unknown) when it is not above zero, or absurd.
std::uint32_t as_cost(double ns) { return ns > 0 && ns < absurd_cost ? static_cast<std::uint32_t>(ns) + 1 : 0; }

/// Delivery of a signal and return from it: tgkill of a handled signal less tgkill of the null signal.
std::uint32_t measure_signal() {
  const int signal = SIGRTMIN + 3;
  handle(signal);
  const pid_t pid = ::getpid();
  const auto send = [pid](int number) { ::syscall(SYS_tgkill, pid, pid, number); };
  const double delivered = least_ns(6, 30, [&] { send(signal); });
  const double empty = least_ns(6, 30, [&] { send(0); });
  return as_cost(delivered - empty);
}

/// One watchpoint trap with an empty handler.
std::uint32_t measure_trap(Findings& findings) {
  handle(SIGTRAP);
  const auto store = [] { watched_variable = watched_variable + 1; };
  const double plain = least_ns(4, 50, store);
  const OpenedEvent watch = open_event(watchpoint_attributes(reinterpret_cast<std::uint64_t>(&watched_variable), 8));
  if (!watch.fd.valid() || ::ioctl(watch.fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return 0;
  }
  signals_seen = 0;
  constexpr int batches = 5;
  constexpr int calls = 10;
  const double trapped = least_ns(batches, calls, store);
  ::ioctl(watch.fd.get(), PERF_EVENT_IOC_DISABLE, 0);
  // The increment may be one instruction or two (load, store): count the traps that really came.
  findings.watched_accesses = batches * calls;
  findings.signals_of_them = static_cast<std::uint32_t>(signals_seen);
  const double traps_per_store = static_cast<double>(signals_seen) / (batches * calls);
  return traps_per_store < 0.5 ? 0 : as_cost((trapped - plain) / traps_per_store);
}

/// Measures one task-clock sample with an empty handler, from the time that samples add to a fixed piece of work: the
/// median of some batches, since neither the least nor the mean is robust for a difference. In CPU time: a piece lasts
/// so long that on a busy machine others run in between, and samples come by CPU time, too.
std::uint32_t measure_perf_sample() {
  constexpr int rounds = 500'000;
  volatile int sink = 0;
  const auto work = [&sink] {
    for (int i = 0; i < rounds; ++i) {
      sink = i;
    }
  };
  const auto took_ns = [&work] {
    const std::uint64_t begin = thread_cpu_ns();
    work();
    return static_cast<double>(thread_cpu_ns() - begin);
  };
  const double plain = std::min(took_ns(), took_ns());
  constexpr std::uint64_t period_ns = 30'000;
  const OpenedEvent event = open_event(task_clock_attributes(period_ns));
  if (!event.fd.valid() || ::ioctl(event.fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return 0;
  }
  constexpr int batches = 5;
  std::vector<double> costs;
  for (int batch = 0; batch < batches; ++batch) {
    signals_seen = 0;
    const double sampled = took_ns();
    if (signals_seen > 0) {
      costs.push_back((sampled - plain) / signals_seen);
    }
  }
  ::ioctl(event.fd.get(), PERF_EVENT_IOC_DISABLE, 0);
  if (costs.empty()) {
    return 0;
  }
  std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2), costs.end());
  return as_cost(costs[costs.size() / 2]);
}

/// The observation while two threads on one processor hand a byte to and fro.
struct Observed {
  bool clock = false;
  std::uint32_t watchpoints = 0;
  bool armed = true;  // the watchpoints; else they are open and no more
};

/// Two threads on one processor hand a byte to and fro, so that every hand-over is a context switch.
class PingPong {
 public:
  /// Mean CPU time per context switch of a thread, ns, over about `duration_ns`; negative: not measurable.
  /// The mean, because a clock's cost lies in the switches at which it is the next timer to expire and the
  /// hardware timer has to be set anew, and those come and go within a period.
  static double measure(Observed observed, std::uint64_t duration_ns) {
    PingPong game(observed);
    if (!game.open_pipes()) {
      return -1;
    }
    pthread_t partner{};
    if (::pthread_create(&partner, nullptr, &PingPong::partner_main, &game) != 0) {
      return -1;
    }
    std::vector<OpenedEvent> events;
    const bool observing = game.observe(events);
    game.hand();  // the partner is set up after this one
    const double mean = game.play(duration_ns);
    game.to_partner_[1].reset();  // ends the partner
    ::pthread_join(partner, nullptr);
    return observing && game.partner_observed_ ? mean : -1;
  }

 private:
  explicit PingPong(Observed observed) : observed_(observed) {}

  bool open_pipes() {
    for (auto* const ends : {&to_partner_, &from_partner_}) {
      std::array<int, 2> fds{};
      if (::pipe2(fds.data(), O_CLOEXEC) != 0) {
        return false;
      }
      (*ends)[0].reset(fds[0]);
      (*ends)[1].reset(fds[1]);
    }
    return true;
  }

  void hand() {
    char byte = 0;
    if (::write(to_partner_[1].get(), &byte, 1) == 1) {
      (void)!::read(from_partner_[0].get(), &byte, 1);
    }
  }

  double play(std::uint64_t duration_ns) {
    constexpr int hands = 50;
    double switches = 0;
    const std::uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    std::uint64_t spent = 0;
    do {
      for (int i = 0; i < hands; ++i) {
        hand();
      }
      switches += 2.0 * hands;
      spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
    } while (spent < duration_ns);
    return static_cast<double>(spent) / switches;
  }

  bool observe(std::vector<OpenedEvent>& events) const {
    constexpr std::uint64_t period_ns = 4'000'000;  // the default of a session
    if (observed_.clock) {
      events.push_back(open_event(task_clock_attributes(period_ns)));
    }
    for (std::uint32_t i = 0; i < observed_.watchpoints; ++i) {
      events.push_back(open_event(watchpoint_attributes(reinterpret_cast<std::uint64_t>(&watched_variable), 8)));
    }
    return std::all_of(events.begin(), events.end(), [this](const OpenedEvent& event) {
      return event.fd.valid() && (!observed_.armed || ::ioctl(event.fd.get(), PERF_EVENT_IOC_ENABLE, 0) == 0);
    });
  }

  static void* partner_main(void* argument) {
    auto& game = *static_cast<PingPong*>(argument);
    std::vector<OpenedEvent> events;
    game.partner_observed_ = game.observe(events);
    char byte = 0;
    while (::read(game.to_partner_[0].get(), &byte, 1) == 1 && ::write(game.from_partner_[1].get(), &byte, 1) == 1) {
    }
    return nullptr;
  }

  Observed observed_;
  bool partner_observed_ = false;
  std::array<UniqueFd, 2> to_partner_, from_partner_;
};

void stay_on_this_processor() {
  const int cpu = ::sched_getcpu();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) {
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    ::sched_setaffinity(0, sizeof(set), &set);
  }
}

void measure_switches(const Probe& probe, ObservingCosts& costs) {
  constexpr std::uint64_t short_ns = 1'000'000;
  constexpr std::uint64_t two_periods_ns = 8'000'000;
  stay_on_this_processor();
  const Observed clock{.clock = true};
  const Observed armed{.watchpoints = probe.debug_registers};
  const Observed idle{.watchpoints = probe.debug_registers, .armed = false};
  double plain = PingPong::measure({}, short_ns);
  if (plain > 0 && probe.debug_registers > 0) {
    // A small difference: the lesser of two measurements of each, taken in turns.
    double present = PingPong::measure(idle, short_ns);
    plain = std::min(plain, PingPong::measure({}, short_ns));
    present = std::min(present, PingPong::measure(idle, short_ns));
    costs.presence = present <= 0 ? 0 : as_cost(present - plain);
    const double watched = PingPong::measure(armed, short_ns);
    costs.switch_watch = watched <= 0 ? 0 : as_cost((watched - plain) / probe.debug_registers);
  }
  const double clocked = PingPong::measure(clock, two_periods_ns);
  if (plain > 0 && clocked > 0) {
    costs.switch_clock = as_cost(clocked - plain);
  }
}

/// While a data breakpoint is armed, `rep movs` and `rep stos` go word by word: copies of 16 KiB by that instruction,
/// as large memcpy() are made, with and without, in turns.
void measure_slower_copies(ObservingCosts& costs) {
  constexpr int rounds = 5;
  constexpr std::size_t bytes = 16384;
  static std::array<char, bytes> from;
  static std::array<char, bytes> to;
  const OpenedEvent watch = open_event(watchpoint_attributes(reinterpret_cast<std::uint64_t>(&watched_variable), 8));
  if (!watch.fd.valid()) {
    return;
  }
  const auto copy = [] {
    const void* source = from.data();
    void* target = to.data();
    std::size_t count = bytes;
    asm volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(count) : : "memory");
  };
  double plain = std::numeric_limits<double>::max();
  double armed = plain;
  for (int round = 0; round < rounds; ++round) {
    plain = std::min(plain, least_ns(1, 8, copy));
    ::ioctl(watch.fd.get(), PERF_EVENT_IOC_ENABLE, 0);
    armed = std::min(armed, least_ns(1, 8, copy));
    ::ioctl(watch.fd.get(), PERF_EVENT_IOC_DISABLE, 0);
  }
  costs.copy_permille = as_cost(1000 * (armed - plain) / plain);
  costs.byte_ps = as_cost(1000 * (armed - plain) / bytes);
}

/// Measures a byte through a local socket: half of sending and receiving it.
std::uint32_t measure_transfer_call() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return 0;
  }
  const UniqueFd sender(ends[0]);
  const UniqueFd receiver(ends[1]);
  const double both = least_ns(5, 40, [&] {
    char byte = 0;
    if (::write(sender.get(), &byte, 1) == 1) {
      (void)!::read(receiver.get(), &byte, 1);
    }
  });
  return as_cost(both / 2);
}

/// `signals_alone`: the costs are known; tries only if watchpoints fire.
[[noreturn]] void child_main(const Probe& probe, bool signals_alone, int report) {
  handle(SIGTRAP);
  Findings findings;
  ObservingCosts& costs = findings.costs;
  if (probe.watchpoints_inside) {
    costs.trap = measure_trap(findings);
  }
  if (!signals_alone) {
    costs.signal = measure_signal();
    costs.transfer_call = measure_transfer_call();
    if (probe.watchpoints_inside) {
      measure_slower_copies(costs);
    }
    if (probe.perf_allowed) {
      costs.perf_sample = measure_perf_sample();
      measure_switches(probe, costs);
    }
  }
  const bool sent = ::write(report, &findings, sizeof(findings)) == static_cast<ssize_t>(sizeof(findings));
  ::_exit(sent ? 0 : 1);
}

/// Zeros when the child could not be made, or did not answer in time.
Findings measure_in_child(const Probe& probe, bool signals_alone) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {};
  }
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return {};
  }
  if (child == 0) {
    child_main(probe, signals_alone, writing.get());
  }
  writing.reset();
  Findings findings;
  pollfd wait_for{reading.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait_for, 1, give_up_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0 || ::read(reading.get(), &findings, sizeof(findings)) != static_cast<ssize_t>(sizeof(findings))) {
    findings = {};
  }
  ::kill(child, SIGKILL);  // it has answered, or takes too long
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return findings;
}

void take(std::uint32_t measured, std::uint32_t& field) {
  if (measured != 0) {
    field = measured;
  }
}

bool available(const Probe& probe, const char* name) {
  return std::any_of(probe.facilities.begin(), probe.facilities.end(),
                     [name](const Facility& facility) { return facility.name == name && facility.available; });
}

}  // namespace

void doubt_signals(std::uint32_t accesses, std::uint32_t signals, Probe& probe) {
  if (2 * signals >= accesses) {
    return;
  }
  probe.watch_trial.verdict = profile::TrialVerdict::partly;
  probe.watch_trial.silent |= profile::trial_sigtrap;
  probe.watch_trial.why = "of " + std::to_string(accesses) + " accesses to a watched word, a signal told of " +
                          std::to_string(signals) + " only";
  take_verdict(probe);
}

ObservingCosts calibrate(Probe& probe, profile::SessionConfig& config, const std::optional<ObservingCosts>& known) {
  Findings findings;
  if (!known || probe.watchpoints_inside) {
    findings = measure_in_child(probe, known.has_value());
  }
  doubt_signals(findings.watched_accesses, findings.signals_of_them, probe);
  const ObservingCosts costs = known.value_or(findings.costs);
  config.perf_allowed = probe.perf_allowed ? 1 : 0;
  config.watchpoints_allowed = probe.watchpoints_inside ? 1 : 0;
  config.timer_allowed = available(probe, "POSIX timer") ? 1 : 0;
  config.watchpoints = std::min(config.watchpoints, probe.debug_registers);
  config.dead_watchpoints = watchpoints_led_astray() ? 1 : 0;
  take(costs.signal, config.signal_cost_ns);
  take(costs.trap, config.trap_cost_ns);
  take(costs.switch_clock, config.switch_cost_ns);
  take(costs.switch_watch, config.watch_switch_cost_ns);
  take(costs.presence, config.presence_cost_ns);
  // Too little to measure quickly: 190 to 225 ns against 900 to 940, by pairs of threads that took turns with pairs
  // that never had an event (AMD EPYC, Linux 6.18).
  config.past_presence_cost_ns = config.presence_cost_ns * 2 / 9;
  take(costs.perf_sample, config.perf_sample_cost_ns);
  take(costs.copy_permille, config.armed_copy_permille);
  take(costs.byte_ps, config.armed_byte_ps);
  take(costs.transfer_call, config.transfer_call_ns);
  return costs;
}

}  // namespace crosstalk::collectors
