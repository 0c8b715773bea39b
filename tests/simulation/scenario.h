// SPDX-License-Identifier: Apache-2.0
// A simulated program and its observation. Times are nanoseconds of simulated time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace crosstalk::simulation {

/// Pattern of a part's accesses. A visit is one turn of a thread at one of its lines.
enum class Pattern {
  ping_pong,                // pairs of threads: load and store of the same word
  false_sharing,            // pairs of threads: load and store, each of a word of its own
  ring,                     // a thread stores to lines that the next one loads
  all_to_all,               // every thread: load and store of the same word
  own_words,                // every thread: load and store, each of a word of its own
  one_writer_many_readers,  // thread 0 stores, the others load
  private_data,             // lines of one thread
};

struct Part {
  Pattern pattern = Pattern::private_data;
  double share = 1;             // of each thread's visits
  std::uint32_t lines = 4;      // of each pair, thread or program, as the pattern has it
  std::uint32_t own_loads = 0;  // further loads of the same word in a visit, as of a thread that spins
  bool atomic = false;          // a load and store of the same word is one access
  bool whole_lines = false;     // a visit goes through all words of the line, beginning with any of them
};

/// How long accesses take; each is drawn evenly from half to one and a half of it.
struct Latencies {
  double transfer_ns = 4000;   // the access is a communication
  double invalidation_ns = 5;  // a store to a line that others have read since the thread's last access
  double hit_ns = 5;           // any other access to a line that is not private
  double private_ns = 8000;    // a visit to private data: stands for all the work between visits
  // An access has its effect when it ends, as its line arrives; otherwise when it begins, so that others can take the
  // line while it lasts.
  bool at_end = false;
};

/// The origin of samples.
enum class Source {
  clock,      // a sample each period of CPU time
  accesses,   // one each so many loads, and one each so many stores; what does both is a load
  micro_ops,  // one each so many micro-operations, of which accesses are a part
};

/// What a record has of the access that its thread made before the sampled one.
enum class Mismatch { nothing, address, instruction };

/// For counting sources. A visit to private data stands for this amount of work.
struct Counting {
  double load_period = 200, store_period = 100, op_period = 300;  // jitter is the observer's
  std::uint32_t private_loads = 10, private_stores = 4;
  std::uint32_t ops_per_access = 4;  // the access is one of them
  double least_latency_ns = 0;       // loads that took less are neither counted nor sampled, as by Intel's ldlat
  double delay_ns = 0;               // from the sample to its watch, while threads go on
  // Skid of sources by accesses: a later access is sampled than the one at which the counter ran out. Each skid is
  // drawn evenly from 0 to twice the mean.
  double skid_accesses = 0;  // so many counted ones later
  double skid_ns = 0;        // the first counted one that begins so much later: those behind slow ones more often
  double no_address = 0;     // share of samples that the collector drops, since nobody tells what they accessed
  Mismatch mismatch = Mismatch::nothing;
};

/// The observer. Costs are in proportion to the period, as measured on real machines: about one watch for each sample
/// or two is affordable.
struct Observer {
  double period_ns = 200'000;
  double jitter = 0.2;  // of the period, evenly to both sides
  std::uint32_t registers = 4;
  double horizon_ns = 20e6;
  double budget = 0.03;
  double sample_cost_ns = 1000;
  double arm_cost_ns = 400;   // to open a watch, and for each thread that is armed
  double trap_cost_ns = 600;  // the trapping thread stands still for so long
  double stall_ns = 0;        // for each thread that is armed, the sampled one stands still for so long
  double lost_traps = 0;      // share of traps whose record is lost
  // Clocks expire at the same moments of elapsed time, as those of the kernel's tick do: thread n's this much after
  // that of thread n - 1. 0: each follows the CPU time of its thread.
  double tick_skew_ns = 0;
  Source source = Source::clock;
  Counting counting;
  bool dead = false;                 // watchpoints can be set, and none fires
  std::uint32_t board_slots = 4096;  // lines that the bulletin board remembers; a power of two
  // Lines are not watched but read twice, while the sampled thread stands still. Needs accesses with their effect at
  // their end, and no delay.
  bool probe = false;
  double probe_cost_ns = 1000;
};

struct Scenario {
  std::string_view name;
  std::string_view summary;  // one sentence
  std::uint32_t threads = 4;
  double duration_ns = 3e8;
  // CPU time of a thread. Crews of `threads` threads follow each other: those of one begin together, and the next one
  // begins when all of them have ended. 0: one crew, for as long as the run lasts.
  double life_ns = 0;
  std::uint32_t word_bytes = 8;  // 8 or 4: how wide the accesses are; words lie side by side from the line's begin on
  std::vector<Part> parts;
  Latencies latencies;
  Observer observer;
};

/// The scenarios of the study, in its order.
[[nodiscard]] std::span<const Scenario> scenarios();
/// The scenario called `name`; it must exist.
[[nodiscard]] const Scenario& scenario(std::string_view name);

}  // namespace crosstalk::simulation
