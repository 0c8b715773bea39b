// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace crosstalk::simulation {
namespace {

constexpr Part private_work(double share) { return {Pattern::private_data, share, 64}; }

Scenario with_parts(std::string_view name, std::string_view summary, std::vector<Part> parts) {
  Scenario scenario;
  scenario.name = name;
  scenario.summary = summary;
  scenario.parts = std::move(parts);
  return scenario;
}

std::vector<Part> half_true_half_false() {
  return {{Pattern::ping_pong, 0.3}, {Pattern::false_sharing, 0.3}, private_work(0.4)};
}

Scenario writer_that_waits() {
  Scenario scenario = with_parts("waiting_writer", "one writer, three readers, and the writer waits for its line back",
                                 {{Pattern::one_writer_many_readers, 0.5}, private_work(0.5)});
  scenario.latencies.invalidation_ns = scenario.latencies.transfer_ns;
  return scenario;
}

Scenario spinning() {
  Scenario scenario = with_parts("spinning", "pairs of threads that look at their line twenty times before they store",
                                 {{Pattern::ping_pong, 0.5, 4, 20}, private_work(0.5)});
  scenario.latencies.hit_ns = 100;
  return scenario;
}

Scenario with_registers(std::string_view name, std::string_view summary, std::uint32_t registers) {
  Scenario scenario = with_parts(name, summary, half_true_half_false());
  scenario.observer.registers = registers;
  return scenario;
}

Scenario losing_traps() {
  Scenario scenario =
      with_parts("lost_traps", "as mixed, and one trap in twenty is not recorded", half_true_half_false());
  scenario.observer.lost_traps = 0.05;
  return scenario;
}

Scenario tight_budget() {
  Scenario scenario =
      with_parts("tight_budget", "as mixed, with a sixth of the overhead budget", half_true_half_false());
  scenario.observer.budget = 0.0052;
  return scenario;
}

Scenario short_run() {
  Scenario scenario =
      with_parts("short_run", "as ping_pong, for a tenth of the time", {{Pattern::ping_pong, 0.5}, private_work(0.5)});
  scenario.duration_ns /= 10;
  return scenario;
}

Scenario ticks() {
  Scenario scenario = with_parts("ticks", "as ping_pong, with clocks that run out together, always in the same order",
                                 {{Pattern::ping_pong, 0.5}, private_work(0.5)});
  scenario.observer.tick_skew_ns = 15'000;
  scenario.observer.jitter = 0;
  scenario.observer.budget = 0.01;
  return scenario;
}

Scenario many_threads() {
  Scenario scenario = with_parts("many_threads", "as many_lines, with 64 threads, of which 24 are armed at a time",
                                 {{Pattern::ping_pong, 0.5, 100}, private_work(0.5)});
  scenario.threads = 64;
  return scenario;
}

// Times are in proportion to a period of 4 ms for threads that live for a millisecond: to arm one other thread takes an
// eighth of their life.
Scenario brief_threads(std::string_view name, std::string_view summary, double lives) {
  Scenario scenario = with_parts(name, summary, {{Pattern::own_words, 0.57, 1}, private_work(0.43)});
  scenario.threads = 2;
  scenario.duration_ns = 2e8;
  scenario.word_bytes = 4;
  scenario.latencies = {400, 5, 5, 800};
  scenario.life_ns = lives * scenario.observer.period_ns;
  scenario.observer.stall_ns = 6000;
  scenario.observer.horizon_ns = 5 * scenario.observer.period_ns;
  return scenario;
}

Scenario packed() {
  Scenario scenario = with_parts("packed_words", "as own_words, with words of four bytes",
                                 {{Pattern::own_words, 0.4}, private_work(0.6)});
  scenario.word_bytes = 4;
  return scenario;
}

Scenario counting(Source source, std::string_view name, std::string_view summary, std::vector<Part> parts) {
  Scenario scenario = with_parts(name, summary, std::move(parts));
  scenario.observer.source = source;
  // A sample comes at the end of its access, and accesses by others meanwhile are not seen: with the slow accesses of a
  // clock's scenarios, whose time alone counts there, they would be many.
  scenario.latencies.transfer_ns = 200;
  return scenario;
}

Scenario late_watches() {
  Scenario scenario = counting(Source::accesses, "accesses_late", "as accesses_mixed, watched 80 us after the sample",
                               half_true_half_false());
  scenario.observer.counting.delay_ns = 80'000;
  return scenario;
}

Scenario slow_loads() {
  Scenario scenario = counting(Source::accesses, "accesses_slow", "as accesses_ping_pong, fast loads are not sampled",
                               {{Pattern::ping_pong, 0.5}, private_work(0.5)});
  scenario.observer.counting.least_latency_ns = 100;
  return scenario;
}

/// The readers of a ring only load, so no sampled store of theirs stands in for the loads that are left out.
Scenario slow_loads_of_ring() {
  Scenario scenario = counting(Source::accesses, "accesses_slow_ring",
                               "as accesses_ring, half of the loads that communicate are too fast to be sampled",
                               {{Pattern::ring, 0.6}, private_work(0.4)});
  scenario.observer.counting.least_latency_ns = scenario.latencies.transfer_ns;
  return scenario;
}

Scenario with_skid(std::string_view name, std::string_view summary, Part part) {
  Scenario scenario = counting(Source::accesses, name, summary, {part, private_work(1 - part.share)});
  scenario.observer.counting.skid_accesses = 5;
  return scenario;
}

/// As the shadow of Intel's precise events: an access that comes soon after another is hidden behind it.
Scenario with_shadow(std::string_view name, std::string_view summary, double mean_ns) {
  Scenario scenario = counting(Source::accesses, name, summary, {{Pattern::ping_pong, 0.5}, private_work(0.5)});
  scenario.observer.counting.skid_ns = mean_ns;
  return scenario;
}

Scenario without_addresses() {
  Scenario scenario = with_skid("accesses_no_address", "as accesses_skid, one sample in four has no address",
                                {Pattern::ping_pong, 0.5});
  scenario.observer.counting.no_address = 0.25;
  return scenario;
}

Scenario packed_accesses() {
  Scenario scenario = counting(Source::accesses, "accesses_packed", "as packed_words, sampled by accesses",
                               {{Pattern::own_words, 0.4}, private_work(0.6)});
  scenario.word_bytes = 4;
  return scenario;
}

Scenario many_threads_by_accesses() {
  Scenario scenario =
      counting(Source::accesses, "accesses_many_threads", "as many_threads, on 4 lines a pair, sampled by accesses",
               {{Pattern::ping_pong, 0.5, 4}, private_work(0.5)});
  scenario.threads = 64;
  return scenario;
}

Scenario spinning_by_accesses() {
  Scenario scenario = counting(Source::accesses, "accesses_spinning", "as spinning, sampled by accesses",
                               {{Pattern::ping_pong, 0.5, 4, 20}, private_work(0.5)});
  scenario.latencies.hit_ns = 100;
  return scenario;
}

std::vector<Scenario> counted() {
  const auto accesses = [](std::string_view name, std::string_view summary, std::vector<Part> parts) {
    return counting(Source::accesses, name, summary, std::move(parts));
  };
  const auto micro_ops = [](std::string_view name, std::string_view summary, std::vector<Part> parts) {
    return counting(Source::micro_ops, name, summary, std::move(parts));
  };
  return {
      accesses("accesses_ping_pong", "as ping_pong, sampled by accesses",
               {{Pattern::ping_pong, 0.5}, private_work(0.5)}),
      accesses("accesses_counters", "as counters, sampled by accesses",
               {{Pattern::ping_pong, 0.5, 4, 0, true}, private_work(0.5)}),
      accesses("accesses_mixed", "as mixed, sampled by accesses", half_true_half_false()),
      accesses("accesses_ring", "as ring, sampled by accesses", {{Pattern::ring, 0.6}, private_work(0.4)}),
      accesses("accesses_one_writer", "as one_writer, sampled by accesses",
               {{Pattern::one_writer_many_readers, 0.5}, private_work(0.5)}),
      accesses("accesses_all_to_all", "as all_to_all, sampled by accesses",
               {{Pattern::all_to_all, 0.4}, private_work(0.6)}),
      packed_accesses(),
      spinning_by_accesses(),
      many_threads_by_accesses(),
      late_watches(),
      slow_loads(),
      slow_loads_of_ring(),
      with_skid("accesses_skid", "as accesses_ping_pong, sampled are accesses 0 to 10 behind the one that is due",
                {Pattern::ping_pong, 0.5}),
      with_skid("accesses_skid_ring", "as accesses_ring, sampled are accesses 0 to 10 behind the one that is due",
                {Pattern::ring, 0.6}),
      with_shadow("accesses_shadow", "as accesses_ping_pong, sampled are accesses that begin up to 20 ns later", 10),
      with_shadow("accesses_long_shadow", "as accesses_ping_pong, sampled are accesses that begin up to 200 ns later",
                  100),
      without_addresses(),
      accesses("accesses_whole_lines", "as whole_lines, sampled by accesses",
               {{Pattern::ring, 0.6, 4, 0, false, true}, private_work(0.4)}),
      micro_ops("ops_ping_pong", "as ping_pong, sampled by micro-operations",
                {{Pattern::ping_pong, 0.5}, private_work(0.5)}),
      micro_ops("ops_mixed", "as mixed, sampled by micro-operations", half_true_half_false()),
      micro_ops("ops_one_writer", "as one_writer, sampled by micro-operations",
                {{Pattern::one_writer_many_readers, 0.5}, private_work(0.5)}),
      micro_ops("ops_private", "as private_data, sampled by micro-operations", {private_work(1)}),
  };
}

std::vector<Scenario> timed() {
  return {
      with_parts("ping_pong", "two pairs of threads load and store the same words",
                 {{Pattern::ping_pong, 0.5}, private_work(0.5)}),
      with_parts("counters", "two pairs of threads update the same words atomically",
                 {{Pattern::ping_pong, 0.5, 4, 0, true}, private_work(0.5)}),
      with_parts("false_sharing", "two pairs of threads load and store neighbouring words",
                 {{Pattern::false_sharing, 0.5}, private_work(0.5)}),
      with_parts("mixed", "as much true as false sharing, on different lines", half_true_half_false()),
      with_parts("ring", "four threads, each stores to lines that the next one loads",
                 {{Pattern::ring, 0.6}, private_work(0.4)}),
      with_parts("whole_lines", "as ring, each visit to all words of a line",
                 {{Pattern::ring, 0.6, 4, 0, false, true}, private_work(0.4)}),
      with_parts("all_to_all", "four threads load and store the same words",
                 {{Pattern::all_to_all, 0.4}, private_work(0.6)}),
      with_parts("own_words", "four threads load and store neighbouring words",
                 {{Pattern::own_words, 0.4}, private_work(0.6)}),
      packed(),
      with_parts("one_writer", "one writer, three readers, and stores cost nothing",
                 {{Pattern::one_writer_many_readers, 0.5}, private_work(0.5)}),
      writer_that_waits(),
      with_parts("many_lines", "pairs of threads that meet on each of 200 lines once in a while",
                 {{Pattern::ping_pong, 0.5, 200}, private_work(0.5)}),
      many_threads(),
      ticks(),
      brief_threads("brief_threads", "crews of two threads that live for a quarter of a period", 0.25),
      brief_threads("lasting_threads", "the same, and they live for a hundred periods", 100),
      spinning(),
      with_registers("two_registers", "as mixed, with two debug registers", 2),
      with_registers("one_register", "as mixed, with one debug register", 1),
      tight_budget(),
      losing_traps(),
      short_run(),
      with_parts("private_data", "four threads that share nothing", {private_work(1)}),
  };
}

std::vector<Scenario> all() {
  std::vector<Scenario> list = timed();
  for (Scenario& scenario : counted()) {
    list.push_back(std::move(scenario));
  }
  return list;
}

}  // namespace

std::span<const Scenario> scenarios() {
  static const std::vector<Scenario> list = all();
  return list;
}

const Scenario& scenario(std::string_view name) {
  const auto found = std::find_if(scenarios().begin(), scenarios().end(),
                                  [&](const Scenario& candidate) { return candidate.name == name; });
  if (found == scenarios().end()) {
    std::abort();
  }
  return *found;
}

}  // namespace crosstalk::simulation
