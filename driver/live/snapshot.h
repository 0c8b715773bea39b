// SPDX-License-Identifier: Apache-2.0
// One picture of a live view: what the threads of a program exchanged in the last seconds. It is all that the view
// draws, and one line of the stream "crosstalk.top/1" (docs/top-json.md), so that a view may draw what another process
// measures.
//
// Figures are of the window; those called `latest` are of the latest refresh alone, the window's end. Times are
// seconds, shares fractions of 1. Unknown values are absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crosstalk::driver::live {

/// Communication of a row.
struct Exchange {
  std::optional<double> cost_s, gain_s;  // gain: what of the cost would be saved if the lines no longer moved
  std::optional<double> gain_most_s;     // the most that it may be (95 %), where it is not known
  std::optional<double> latest_cost_s;
  std::uint64_t seen = 0, latest_seen = 0;  // communications
};

/// The row's part in one pair of threads.
struct PairShare {
  std::uint32_t producer = 0, consumer = 0;
  std::optional<double> cost_s;
  std::uint64_t seen = 0;
};

struct ThreadRow {
  std::uint32_t index = 0;  // the same in the whole stream
  std::int32_t pid = 0, tid = 0;
  std::string name;
  std::optional<double> cpu_s, latest_cpu_s;
  std::optional<double> communication_s;  // of its CPU time, in accesses that others' stores delayed
};

struct CellRow {
  std::uint32_t producer = 0, consumer = 0;
  std::optional<double> true_cost_s, false_cost_s;
  Exchange exchange;
};

struct LineRow {
  std::string file;
  std::uint32_t line = 0;  // 0: not known
  std::string function, through, module;
  std::string role;    // "producer", "consumer"
  std::string object;  // the one that costs most there
  Exchange exchange;
  std::vector<PairShare> pairs;  // costliest first
};

struct PlaceRow {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
};

struct ObjectRow {
  std::string name;     // the same in the whole stream
  std::string label;    // with the field that is exchanged most
  std::string kind;     // "global", "heap", "stack", "tls", "shared"; empty: not known
  std::string sharing;  // "false_sharing", "lock", ...
  Exchange exchange;
  std::vector<PlaceRow> lines;  // that exchange it, costliest first
  std::vector<PairShare> pairs;
};

struct ThreadTime {
  std::uint32_t thread = 0;
  double cpu_s = 0;
};

struct LoopRow {
  std::uint32_t id = 0;  // the same in the whole stream
  std::string function, file;
  std::uint32_t line_begin = 0, line_end = 0;
  std::uint32_t depth = 1;  // 1: in no other loop
  std::optional<double> self_s, cpu_s, latest_cpu_s;
  double share = 0;           // of all CPU time
  std::string busy_class;     // "in_memory", ...; empty: not known
  std::uint64_t samples = 0;  // evidence
  std::vector<ThreadTime> threads;
};

struct FindingRow {
  std::string sentence, kind;
  std::optional<double> cost_s, gain_s, gain_most_s;
  std::string object, producer, consumer, advice;
};

/// CPU time in a source line's own instructions.
struct CodeRow {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
  std::optional<double> self_s;
};

struct Overhead {
  std::optional<double> fraction;        // of the threads' CPU time
  std::optional<double> recorder_cpu_s;  // of the recorder itself, no part of any thread's
  std::optional<double> budget;          // the most that `fraction` may be
  std::optional<double> producer_cpu_s;  // of analyses
};

struct Losses {
  std::uint64_t records = 0;         // samples and the like, for want of room in a ring
  std::uint64_t unread_threads = 0;  // that could not be watched
};

struct WarningRow {
  std::string code, message;
};

struct Snapshot {
  std::uint64_t sequence = 0;  // 1: the first
  double time_unix_s = 0;      // the window's end
  double window_s = 0, latest_s = 0, refresh_s = 0;
  std::string command;
  std::vector<std::int32_t> pids;
  std::optional<double> cpu_s, latest_cpu_s;            // of all threads
  std::optional<double> processors, latest_processors;  // used on average
  std::string source, method, watching;
  Overhead overhead;
  Losses losses;
  std::vector<WarningRow> warnings;
  std::vector<ThreadRow> threads;    // by index
  std::vector<CellRow> cells;        // by producer, consumer; only pairs that communicate
  std::vector<LineRow> lines;        // costliest first
  std::vector<ObjectRow> objects;    // costliest first
  std::vector<LoopRow> loops;        // most time first
  std::vector<FindingRow> findings;  // most important first
  std::vector<CodeRow> code;         // most time first
};

}  // namespace crosstalk::driver::live
