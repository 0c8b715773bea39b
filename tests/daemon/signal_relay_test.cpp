// SPDX-License-Identifier: Apache-2.0
// Tests which signals to the recorder are forwarded to its command. The kernel itself delivers the group's signals, in
// a group of the test's own.
#include "daemon/signal_relay.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "base/clock.h"

namespace crosstalk::daemon::signal_relay_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

SignalWatch::Arrival arrival(int signal, int code) {
  SignalWatch::Arrival found;
  found.signal = signal;
  found.code = code;
  found.sender = code == SI_USER || code == SI_QUEUE ? 4711 : 0;
  return found;
}

TEST(SignalRelay, TimersOfTheRecorderAreItsOwn) {
  for (const int signal : {SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU}) {
    EXPECT_TRUE(is_own(arrival(signal, SI_KERNEL)));
    EXPECT_FALSE(is_own(arrival(signal, SI_USER)));
  }
  EXPECT_TRUE(is_own(arrival(SIGRTMIN, SI_TIMER)));
  EXPECT_FALSE(is_own(arrival(SIGRTMIN, SI_QUEUE)));
  EXPECT_FALSE(is_own(arrival(SIGINT, SI_KERNEL)));
}

TEST(SignalRelay, WithoutAWitnessTheTerminalsAreTakenForTheGroups) {
  SignalRelay relay(std::nullopt);
  const auto due = relay.to_be_sent(
      {arrival(SIGINT, SI_KERNEL), arrival(SIGTERM, SI_USER), arrival(SIGPROF, SI_KERNEL), arrival(SIGUSR1, SI_USER)},
      1);
  ASSERT_EQ(due.size(), 2U);
  EXPECT_EQ(due[0].signal, SIGTERM);
  EXPECT_EQ(due[1].signal, SIGUSR1);
  EXPECT_FALSE(relay.due_in_ms(1));
}

/// Returns the signals of `send` that are forwarded at once, and after a second; for example "1 15, 12".
template <class Send>
std::string passed_on(Send send) {
  int ends[2];
  EXPECT_EQ(::pipe(static_cast<int*>(ends)), 0);
  const pid_t group = ::fork();
  if (group == 0) {
    ::setpgid(0, 0);
    const auto signals = SignalWatch::begin();
    SignalRelay relay(GroupWitness::start());
    send();
    std::vector<SignalWatch::Arrival> arrived;
    while (const auto taken = signals->take()) {
      arrived.push_back(*taken);
    }
    std::string text;
    const std::uint64_t now_ns = monotonic_ns();
    for (const auto& due : relay.to_be_sent(arrived, now_ns)) {
      text += std::to_string(due.signal) + " ";
    }
    text += "|";
    for (const auto& due : relay.to_be_sent({}, now_ns + second)) {
      text += " " + std::to_string(due.signal);
    }
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::array<char, 256> text{};
  (void)!::read(ends[0], text.data(), text.size() - 1);
  ::close(ends[0]);
  ::waitpid(group, nullptr, 0);
  return text.data();
}

TEST(SignalRelay, WhatTheGroupIsSentIsNotSentOn) {
  EXPECT_EQ(passed_on([] {
              for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGRTMIN, SIGTSTP, SIGWINCH}) {
                ::kill(0, signal);
              }
            }),
            "|");
}

TEST(SignalRelay, WhatTheRecorderAloneIsSentIsSentOnAfterAMoment) {
  EXPECT_EQ(passed_on([] {
              ::kill(::getpid(), SIGTERM);
              ::kill(0, SIGINT);
            }),
            "| 15");
}

TEST(SignalRelay, WhatOneCallSendsToOneProcessIsSentOnAtOnce) {
  EXPECT_EQ(passed_on([] { ::sigqueue(::getpid(), SIGUSR1, {}); }), "10 |");
}

TEST(SignalRelay, WhoSendsToOneProcessAndThenToTheGroupIsHeardOnce) {  // timeout(1) does
  EXPECT_EQ(passed_on([] {
              ::kill(::getpid(), SIGTERM);
              ::kill(0, SIGTERM);
            }),
            "|");
}

}  // namespace
}  // namespace crosstalk::daemon::signal_relay_test
