// SPDX-License-Identifier: Apache-2.0
#include "models/tuning_catalogue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/words.h"

namespace crosstalk::models {
namespace {

constexpr double much = 0.2;  // of the time or of the work, from which on a remedy is worth its sentence
constexpr double most_of = 0.5;

/// A remedy, and the part of the loop's time that it concerns.
struct Weighed {
  double weight = 0;
  Remedy remedy;
};
using Found = std::optional<Weighed>;
using E = TuningEvidence;

double busy(const E& e, Unit unit) { return e.busy[unit].of_effective.value_or(0); }

double waited(const E& e, CycleClass which) {
  return e.waits != nullptr && e.elapsed_s > 0 ? (*e.waits)[which].value_or(0) / e.elapsed_s : 0;
}

constexpr std::array levels_of_data = {CycleClass::l1d, CycleClass::l2, CycleClass::l3, CycleClass::memory,
                                       CycleClass::data};

double waited_for_data(const E& e) {
  double sum = 0;
  for (const CycleClass which : levels_of_data) {
    sum += waited(e, which);
  }
  return sum;
}

bool waits_for_data_known(const E& e) {
  return e.waits != nullptr && std::any_of(levels_of_data.begin(), levels_of_data.end(),
                                           [&](CycleClass which) { return (*e.waits)[which].has_value(); });
}

/// Part of the time that it waits for data from far levels, beyond L1D or L2, and the evidence. Samples also stand at
/// loads whose data arrive at once: the wait is known if the committing time is, or the time that the iterations would
/// take without it.
struct FarWait {
  double part = 0;
  std::string words;
};
FarWait far_wait(const E& e, bool beyond_l1d) {
  const double far = waited(e, CycleClass::memory) + waited(e, CycleClass::l3) + waited(e, CycleClass::data) +
                     (beyond_l1d ? waited(e, CycleClass::l2) : 0);
  if (e.waits != nullptr && (*e.waits)[CycleClass::committing]) {
    return {far, "It waits for data for " + percent(far) + " of the time."};
  }
  const double local = std::clamp(e.local_share.value_or(1), 0.0, 1.0);
  return {std::min(far, 1 - local),
          "With its data in L1D, the same iterations would take " + percent(local) + " of the time at most."};
}

/// Part of the time in which no unit was known to be busy: better scheduling may gain it.
double idle(const E& e) {
  const auto bound = bound_of(e.busy);
  return e.elapsed_s > 0 && bound ? std::clamp(1 - bound->seconds / e.elapsed_s, 0.0, 1.0) : 0;
}

/// True if most accesses jump from line to line, over more of them than the first-level cache holds.
bool jumps(const E& e) {
  return e.long_strides && e.long_strides->part >= most_of && e.long_strides->lines_bytes > e.first_level_bytes;
}

std::string busy_in_words(const E& e, Unit unit) {
  return std::string(unit_in_words(unit)) + (unit == Unit::fpu ? " are" : " is") + " busy for " +
         percent(busy(e, unit)) + " of the time.";
}

const char* width_in_words(Width width) {
  static constexpr std::array<const char*, 4> names = {"scalar", "SSE (16 bytes)", "AVX (32 bytes)",
                                                       "AVX-512 (64 bytes)"};
  return names[static_cast<std::size_t>(width)];
}

// ---- the limit is reached: less work for the limiting unit ---------------------------------------------------------

Found block_for_memory(const E& e) {
  if (e.busy_class != BusyClass::in_memory) {
    return std::nullopt;
  }
  return Weighed{
      busy(e, Unit::memory),
      {"Use data while they are in a cache: block the loop, or fuse it with the loops before and behind it",
       "Memory bandwidth is saturated. Only fewer bytes help: data that is used again soon need not be loaded again.",
       busy_in_words(e, Unit::memory) + " That is about the most that the calibration reached here.", "2, 5.2.1"}};
}

Found store_streaming(const E& e) {
  if (!e.stores_only_new || busy(e, Unit::memory) < most_of) {
    return std::nullopt;
  }
  return Weighed{
      busy(e, Unit::memory) * 0.9,
      {"Use non-temporal stores for data that is not used again soon",
       "An ordinary store first reads its line from memory. Non-temporal stores avoid that read, a third of a copy's "
       "traffic.",
       "It stores whole lines that it does not load. " + busy_in_words(e, Unit::memory), "3.1, 5.5.2"}};
}

Found block_for_cache(const E& e) {
  if (e.busy_class != BusyClass::in_l2 && e.busy_class != BusyClass::in_l3) {
    return std::nullopt;
  }
  const Unit unit = e.busy_class == BusyClass::in_l2 ? Unit::l2 : Unit::l3;
  return Weighed{busy(e, unit),
                 {"Work on smaller blocks, so that data are used again while they are in a nearer cache",
                  std::string(unit_in_words(unit)) + " has no more to give; a nearer level has.",
                  busy_in_words(e, unit), "2, 5.2.1"}};
}

Found wider_accesses(const E& e) {
  const double vector_bytes = e.widest_available ? 8.0 * (1U << static_cast<unsigned>(*e.widest_available)) : 0;
  const bool narrow = e.access_bytes && *e.access_bytes < vector_bytes / 2;
  if (e.busy_class != BusyClass::in_l1d && !(narrow && waited(e, CycleClass::l1d) > much)) {
    return std::nullopt;
  }
  std::string seen = e.busy_class == BusyClass::in_l1d ? busy_in_words(e, Unit::l1d) : "";
  if (e.access_bytes) {
    seen += (seen.empty() ? "" : " ") + ("An access is of " + figure(*e.access_bytes) + " bytes on average.");
  }
  return Weighed{
      std::max(busy(e, Unit::l1d), waited(e, CycleClass::l1d)),
      {"Access less often: whole vectors instead of elements, and values that are used again in registers",
       "The first-level cache serves a fixed number of accesses a cycle, whatever their width.", seen, "5.4.1, 5.5"}};
}

Found library_kernel(const E& e) {
  if (e.busy_class != BusyClass::in_l2_fpu || e.widest_flops != e.widest_available) {
    return std::nullopt;
  }
  return Weighed{busy(e, Unit::fpu) * 0.5,
                 {"Do fewer operations: factor out what repeats, or take the routine of a tuned library",
                  "This code cannot use the floating-point units better: only fewer operations make it faster.",
                  busy_in_words(e, Unit::fpu), "1.6, 5.4.4"}};
}

// ---- floating point ------------------------------------------------------------------------------------------------

Found vectorise(const E& e) {
  const double fpu_time = std::max({busy(e, Unit::fpu), waited(e, CycleClass::fpu), idle(e)});
  if (!e.packed || *e.packed >= 1 - much || fpu_time < much || jumps(e)) {
    return std::nullopt;  // elements that lie apart fill no vector
  }
  return Weighed{(1 - *e.packed) * fpu_time,
                 {"Let the compiler use vectors: innermost loop over adjacent elements, no aliasing (restrict), no "
                  "early exit; sums "
                  "need -ffast-math or explicit partial sums",
                  "One vector instruction does the work of several scalar ones.",
                  percent(*e.packed) + " of its floating-point operations are SIMD.", "5.3.2, 5.4.6, 5.4.7"}};
}

Found widen(const E& e) {
  if (!e.widest_flops || !e.widest_available || *e.widest_flops >= *e.widest_available ||
      *e.widest_flops == Width::scalar || busy(e, Unit::fpu) < much) {
    return std::nullopt;
  }
  return Weighed{busy(e, Unit::fpu) * 0.6,
                 {"Compile for this processor (-march=native, -mprefer-vector-width), so that vectors are wider",
                  "The units do as many instructions a second with more elements in each.",
                  std::string("Its widest operations are ") + width_in_words(*e.widest_flops) + ", the machine's are " +
                      width_in_words(*e.widest_available) + ".",
                  "5.4.1"}};
}

Found fuse_multiply_add(const E& e) {
  if (!e.multiply_adds || *e.multiply_adds > much || busy(e, Unit::fpu) < most_of ||
      e.other_flops.value_or(0) > most_of) {
    return std::nullopt;
  }
  return Weighed{
      busy(e, Unit::fpu) * 0.4,
      {"Allow multiply-adds (-march=native or -mfma, -ffp-contract=fast)",
       "One instruction multiplies and adds in the time of either.",
       percent(*e.multiply_adds) + " of its operations are fused multiply-adds. " + busy_in_words(e, Unit::fpu),
       "5.2.1"}};
}

Found break_chain(const E& e) {
  if (!e.chain_is_fpu || e.chain_share.value_or(0) < most_of || busy(e, Unit::fpu) >= tuned_share) {
    return std::nullopt;
  }
  return Weighed{
      std::min(1.0, *e.chain_share) * (1 - busy(e, Unit::fpu)),
      {"Break the chain of operations: several partial results at a time, or independent iterations interleaved",
       "Each operation waits for the result of the one before, while the units could start several a cycle.",
       "The slowest chain of dependent operations takes about " + percent(std::min(1.0, *e.chain_share)) +
           " of the time by itself.",
       "3.3, 5.4.12"}};
}

Found fewer_divisions(const E& e) {
  if (e.other_flops.value_or(0) < much / 2) {
    return std::nullopt;
  }
  return Weighed{
      *e.other_flops,
      {"Divide less: multiply by a reciprocal that is worked out once, where the precision allows it",
       "A division or root keeps its unit busy for many cycles.",
       percent(*e.other_flops) + " of its floating-point operations are divisions, roots and the like.", "5.4.4"}};
}

// ---- access to data
// --------------------------------------------------------------------------------------------------

Found contiguous(const E& e) {
  if (e.gathers + e.scatters <= 0) {
    return std::nullopt;
  }
  return Weighed{
      std::max(waited_for_data(e), much),
      {"Store together what is used together, so that vectors are loaded and not gathered",
       "A gather or scatter takes an access for each element.",
       "An iteration has " + figure(e.gathers) + " gathers and " + figure(e.scatters) + " scatters.", "5.2.6, 5.5.3"}};
}

/// Comes first: nothing else helps much while each access fetches a line. The source has no entry for it.
Found exchange_loops(const E& e) {
  const double waiting = waited_for_data(e);
  if (!jumps(e) || (waits_for_data_known(e) && waiting < much)) {
    return std::nullopt;
  }
  return Weighed{
      1 + waiting,
      {"Go through memory in order: exchange the loops, so that the innermost one goes over adjacent elements, or lay "
       "the data out in the order of their use",
       "Each access fetches a whole line for one element, and the line is gone before its other elements are used.",
       percent(e.long_strides->part) + " of its accesses move by a line or more an iteration, one by " +
           figure(e.long_strides->stride_bytes) + " bytes." +
           (waiting > 0 ? " It waits for data for " + percent(waiting) + " of the time." : ""),
       ""}};
}

Found order_indices(const E& e) {
  const auto [far, words] = far_wait(e, false);
  if (!e.body.indirect.value_or(false) || far < much) {
    return std::nullopt;
  }
  return Weighed{far,
                 {"Order the data so that indices that are used one after another lie near each other",
                  "Then what one access brings into the caches serves the next ones.",
                  "Addresses depend on values that it loads. " + words, "5.3.1"}};
}

/// For irregular access only: processors prefetch regular streams themselves.
Found prefetch(const E& e) {
  const auto [far, words] = far_wait(e, true);
  const bool limited = e.busy_class && e.busy_class != BusyClass::under_tuned;
  if (far < much || limited || !e.body.indirect.value_or(false)) {
    return std::nullopt;
  }
  return Weighed{far * 0.8,
                 {"Prefetch what is needed some iterations later, where its address is known by then",
                  "The wait for data is then overlapped with other work.", words, "5.2.5, 5.3.4"}};
}

// ---- the shape of the loop
// -------------------------------------------------------------------------------------------

Found split_loop(const E& e) {
  const bool spills = e.stack_accesses.value_or(0) > much;
  const bool large = e.body.instructions.value_or(0) > simple_instructions;
  if (e.busy_class && e.busy_class != BusyClass::under_tuned) {
    return std::nullopt;
  }
  if (!spills || !large) {
    return std::nullopt;
  }
  return Weighed{*e.stack_accesses,
                 {"Split the loop into several with fewer live values each, over blocks that stay in a near cache",
                  "Values that have no register are stored to the stack and loaded again.",
                  percent(*e.stack_accesses) + " of its accesses are to its own stack frame; an iteration has " +
                      figure(*e.body.instructions) + " instructions.",
                  "5.2.1, 5.2.2"}};
}

/// "step()", "step() and norm()", "step(), norm() and 2 more".
std::string callees_in_words(const std::vector<std::string>& names) {
  constexpr std::size_t most = 2;
  std::string text = names.front();
  if (names.size() == most) {
    return text + " and " + names[1];
  }
  return names.size() > most ? text + ", " + names[1] + " and " + std::to_string(names.size() - most) + " more" : text;
}

/// Only for the program's own functions: calls into the kernel or a library cannot be inlined.
Found inline_calls(const E& e) {
  if (e.own_callees.empty() || (e.busy_class && e.busy_class != BusyClass::under_tuned)) {
    return std::nullopt;
  }
  const std::string names = callees_in_words(e.own_callees);
  return Weighed{
      much,
      {"Have " + names + " inlined (same source file, inline, -flto)",
       "The compiler can seldom use vectors in a loop that calls a function.", "It calls " + names + ".", "5.4.5"}};
}

Found straighten(const E& e) {
  if (e.body.one_way.value_or(true) || (e.busy_class && e.busy_class != BusyClass::under_tuned)) {
    return std::nullopt;
  }
  const double wrong = waited(e, CycleClass::branch);
  if (wrong < much / 2) {
    return std::nullopt;  // next to none, or not measured
  }
  return Weighed{
      wrong,
      {"Take decisions out of the loop, or replace branches by conditional selection",
       "A branch that data decide often prevents vectors, and a wrong prediction costs some ten cycles and more.",
       "Iterations take different ways. " + percent(wrong) + " of the time followed wrong predictions.",
       "5.4.2, 5.4.3"}};
}

Found balance_threads(const E& e) {
  const double lost = std::max(e.imbalance.value_or(0), waited(e, CycleClass::barrier));
  if (lost < much / 2) {
    return std::nullopt;
  }
  return Weighed{lost,
                 {"Share iterations out as threads become free (schedule(dynamic)), or in more equal parts",
                  "Behind a parallel loop the others wait for its slowest thread.",
                  "Its threads have unequal work: " + percent(lost) +
                      " of their time would be spent waiting for the "
                      "slowest.",
                  "5.4.8"}};
}

constexpr Found (*catalogue[])(const E&) = {
    block_for_memory,  store_streaming, block_for_cache, wider_accesses, library_kernel, vectorise,     widen,
    fuse_multiply_add, break_chain,     fewer_divisions, contiguous,     exchange_loops, order_indices, prefetch,
    split_loop,        inline_calls,    straighten,      balance_threads};

}  // namespace

std::vector<Remedy> remedies_for(const TuningEvidence& evidence, std::size_t most) {
  std::vector<Weighed> found;
  for (const auto entry : catalogue) {
    if (auto weighed = entry(evidence)) {
      found.push_back(std::move(*weighed));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Weighed& a, const Weighed& b) { return a.weight > b.weight; });
  found.resize(std::min(found.size(), most));
  std::vector<Remedy> remedies;
  remedies.reserve(found.size());
  for (Weighed& weighed : found) {
    remedies.push_back(std::move(weighed.remedy));
  }
  return remedies;
}

}  // namespace crosstalk::models
