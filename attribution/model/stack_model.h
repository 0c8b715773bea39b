// SPDX-License-Identifier: Apache-2.0
// Call stacks of a recording, weighted by the CPU time and by the cost of communication that was spent in them: the
// content of an export. Every list is in an order that the profile alone decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// A loaded part of a file of code, where the first process that had it mapped it.
struct StackFile {
  std::string path;                  // "[vdso]" for that
  std::string build_id;              // lower-case hex; empty: it has none, or that is not known
  std::uint64_t begin = 0, end = 0;  // run-time addresses; all places of the file are there
  std::uint64_t file_offset = 0;     // of `begin`; 0 if the file is not known
};

/// A place in code.
struct StackPlace {
  static constexpr std::uint32_t no_file = UINT32_MAX;
  std::uint32_t file = no_file;           // index; no_file: in the kernel, of a just-in-time compiler, or not known
  std::uint64_t address = 0;              // run time, in the mapping of `file`; 0: it has none
  std::vector<symbolizer::Frame> frames;  // innermost first, never empty; functions have names
  std::uint32_t function_line = 0;        // of frames.back(): where the function begins; 0: not known
  bool in_kernel = false;                 // the function is a system call, or another entry of the kernel
};

/// The origin of the callers of a stack.
enum class CallersFrom : std::uint8_t {
  sample,   // the sample's own stack
  alike,    // stacks of other samples in the same function, in proportion to their weight
  unknown,  // no stack is known: only the innermost function is
};

/// Samples of one thread in one stack.
struct TimeStack {
  std::uint32_t thread = 0;           // index
  std::vector<std::uint32_t> places;  // indices, innermost first, never empty
  CallersFrom callers = CallersFrom::sample;
  std::uint64_t samples = 0;
  std::uint64_t weight = 0;  // ns of CPU time; Analysis::shares_of: that event's unit
};

/// Cost of communication of one thread, as consumer, in one stack.
struct CommunicationStack {
  std::uint32_t thread = 0, producer = 0;  // indices
  std::vector<std::uint32_t> places;       // as of TimeStack: of the consumer's access
  CallersFrom callers = CallersFrom::sample;
  std::uint32_t object = 0;  // index of WeightedStacks::objects
  bool true_sharing = false;
  double cost_s = 0;
  double gain_s = 0;        // 0 if the gain is not known
  bool gain_known = false;  // of all communication of this sort
};

struct WeightedStacks {
  std::vector<StackFile> files;    // the launched program's first; only files of places
  std::vector<StackPlace> places;  // by file and address, those without a file last
  std::vector<std::string> objects;
  /// By thread and places. They add up to the report's CPU time: time without samples has the place "[not sampled]".
  std::vector<TimeStack> time;
  std::vector<CommunicationStack> communication;  // by thread, places, producer, object, sort; empty: none, or unknown
};

/// The function of CPU time that no sample stands for.
inline constexpr const char* unsampled_function = "[not sampled]";

}  // namespace crosstalk::attribution
