// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/loop_point.h"

#include <array>
#include <string>

namespace crosstalk::models::roofline {
namespace {

using Quantity = Result<Estimate> LoopPoint::*;

constexpr std::array<Quantity, 13> amounts = {&LoopPoint::flops,
                                              &LoopPoint::bytes_core,
                                              &LoopPoint::bytes_l2,
                                              &LoopPoint::bytes_l3,
                                              &LoopPoint::bytes_memory,
                                              &LoopPoint::memory_instructions,
                                              &LoopPoint::other_instructions,
                                              &LoopPoint::fp_instructions,
                                              &LoopPoint::simd_instructions,
                                              &LoopPoint::fma_instructions,
                                              &LoopPoint::multiply_instructions,
                                              &LoopPoint::add_instructions,
                                              &LoopPoint::cpu_s};

/// The range of two frequencies: threads of one loop may run at different ones.
Result<Estimate> hull(const Result<Estimate>& a, const Result<Estimate>& b) {
  if (!a || !b) {
    return a ? b : a;
  }
  return Estimate::of((a->value() + b->value()) / 2, std::min(a->low(), b->low()), std::max(a->high(), b->high()),
                      std::max(a->basis(), b->basis()));
}

template <class Value>
void keep_shared(std::optional<Value>& of_all, const std::optional<Value>& of_thread) {
  if (of_all != of_thread) {
    of_all.reset();
  }
}

}  // namespace

Result<Estimate> unknown(std::string_view what) {
  return fail(ErrorCode::not_found, "the loop's " + std::string(what) + " are not known");
}

const Result<Estimate>& LoopPoint::bytes(Level level) const {
  switch (level) {
    case Level::l1d:
      return bytes_core;
    case Level::l2:
      return bytes_l2;
    case Level::l3:
      return bytes_l3;
    case Level::memory:
      break;
  }
  return bytes_memory;
}

LoopPoint total_of(std::span<const LoopPoint> threads, const Result<Estimate>& elapsed_s) {
  if (threads.empty()) {
    return {};
  }
  LoopPoint total = threads.front();
  for (const LoopPoint& thread : threads.subspan(1)) {
    for (const Quantity amount : amounts) {
      total.*amount = sum(total.*amount, thread.*amount);
    }
    total.hz = hull(total.hz, thread.hz);
    total.setting.threads += thread.setting.threads;
    keep_shared(total.setting.width, thread.setting.width);
    keep_shared(total.setting.operation, thread.setting.operation);
  }
  total.elapsed_s = elapsed_s;
  return total;
}

Result<Estimate> performance(const LoopPoint& point) {
  const bool alone = point.setting.threads <= 1;
  return quotient(point.flops, alone ? point.cpu_s : point.elapsed_s, "the loop's time");
}

Result<Estimate> intensity(const LoopPoint& point) { return intensity(point, Level::l1d); }

Result<Estimate> intensity(const LoopPoint& point, Level level) {
  const std::string divisor = level == Level::l1d ? "the number of bytes to the core"
                                                  : "the number of bytes from " + std::string(level_in_words(level));
  return quotient(point.flops, point.bytes(level), divisor);
}

Result<Estimate> instruction_intensity(const LoopPoint& point) {
  return quotient(point.other_instructions, point.memory_instructions, "the number of memory instructions");
}

Result<Estimate> instructions_per_cycle(const LoopPoint& point) {
  return quotient(sum(point.memory_instructions, point.other_instructions), product(point.cpu_s, point.hz),
                  "the loop's CPU time in cycles");
}

}  // namespace crosstalk::models::roofline
