// SPDX-License-Identifier: Apache-2.0
// Kernels compute the right results and report the right number of operations: one more or one less would change the
// results.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "collectors/calibration/core_kernels.h"
#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/line_exchange.h"
#include "collectors/calibration/traffic_kernels.h"

namespace crosstalk::collectors::calibration::kernels_test {
namespace {

using models::Instruction;
using models::Operation;
using models::Precision;
using models::Traffic;
using models::Width;

std::string label(const FlopKernel& k) {
  return std::string(name(k.width)) + "_" + std::string(name(k.precision)) + "_" + std::string(name(k.operation));
}

// ---- floating point ----------------------------------------------------------------------------------------

template <class Real>
struct FlopState {
  FlopOperands operands{};
  alignas(64) std::array<unsigned char, flop_accumulators * accumulator_stride> accumulators{};

  /// Lane l of every accumulator a begins at 1 + a + l / 16; each lane has operands of its own.
  FlopState() {
    for (std::size_t lane = 0; lane < lanes_of_vector; ++lane) {
      put(operands.multiplier, lane, multiplier(lane));
      put(operands.addend, lane, addend(lane));
    }
    for (std::size_t a = 0; a < flop_accumulators; ++a) {
      for (std::size_t lane = 0; lane < lanes_of_vector; ++lane) {
        put(accumulators.data() + a * accumulator_stride, lane, begin(a, lane));
      }
    }
  }

  static constexpr std::size_t lanes_of_vector = 64 / sizeof(Real);
  static Real multiplier(std::size_t lane) { return Real(1) + Real(lane) / 1024; }
  static Real addend(std::size_t lane) { return Real(lane + 1) / 8; }
  static Real begin(std::size_t a, std::size_t lane) { return Real(1 + a) + Real(lane) / 16; }
  static void put(unsigned char* vector, std::size_t lane, Real value) {
    std::memcpy(vector + lane * sizeof(Real), &value, sizeof(Real));
  }
  [[nodiscard]] Real get(std::size_t a, std::size_t lane) const {
    Real value;
    std::memcpy(&value, accumulators.data() + a * accumulator_stride + lane * sizeof(Real), sizeof(Real));
    return value;
  }
};

template <class Real>
Real stepped(Operation operation, Real value, std::size_t lane) {
  const Real m = FlopState<Real>::multiplier(lane);
  const Real s = FlopState<Real>::addend(lane);
  switch (operation) {
    case Operation::add:
      return value + s;
    case Operation::mul:
      return value * m;
    default:
      return std::fma(value, m, s);
  }
}

template <class Real>
void expect_right(const FlopKernel& kernel, std::uint64_t rounds) {
  FlopState<Real> state;
  kernel.run(rounds, state.operands, state.accumulators.data());
  const unsigned lanes = models::lanes(kernel.width, kernel.precision);
  std::uint64_t operations = 0;
  for (std::size_t a = 0; a < flop_accumulators; ++a) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      Real want = FlopState<Real>::begin(a, lane);
      for (std::uint64_t step = 0; step < rounds * flop_steps_a_round; ++step, ++operations) {
        want = stepped(kernel.operation, want, lane);
      }
      ASSERT_EQ(state.get(a, lane), want) << label(kernel) << " accumulator " << a << " lane " << lane;
    }
  }
  EXPECT_EQ(flops_of(kernel, rounds), operations * (kernel.operation == Operation::fma ? 2 : 1)) << label(kernel);
}

TEST(FlopKernels, CalculateWhatTheySayAndCount) {
  EXPECT_EQ(flop_kernels().size(), 24U);
  unsigned tried = 0;
  for (const FlopKernel& kernel : flop_kernels()) {
    if (!is_supported(kernel)) {
      continue;
    }
    ++tried;
    for (const std::uint64_t rounds : {1U, 7U}) {
      kernel.precision == Precision::double_precision ? expect_right<double>(kernel, rounds)
                                                      : expect_right<float>(kernel, rounds);
    }
  }
  EXPECT_GE(tried, 8U);  // additions and multiplications of x86-64
}

// ---- loads and stores --------------------------------------------------------------------------------------

class Arrays {
 public:
  explicit Arrays(std::uint64_t bytes) : memory_((3 * bytes + 64) / sizeof(double) + 8), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    first_ = (64 - address % 64) % 64 / sizeof(double);
    for (std::size_t i = first_; i < memory_.size(); ++i) {
      memory_[i] = static_cast<double>((i - first_) % 1000);
    }
  }
  double* array(std::size_t number) { return memory_.data() + first_ + number * bytes_ / sizeof(double); }
  /// Returns the value right behind the last array, which must not change.
  double behind() { return *array(3); }
  TrafficArrays all() { return {array(0), array(1), array(2), bytes_, 3.0}; }

 private:
  std::vector<double> memory_;
  std::size_t first_ = 0;
  std::uint64_t bytes_;
};

double wanted(Traffic traffic, double before, double b, double c) {
  switch (traffic) {
    case Traffic::load:
      return before;
    case Traffic::store:
    case Traffic::store_streaming:
      return 3;
    case Traffic::copy:
    case Traffic::copy_streaming:
      return b;
    default:
      return b + 3 * c;
  }
}

TEST(TrafficKernels, StoreWhatTheySayEverywhereAndNowhereElse) {
  EXPECT_EQ(traffic_kernels().size(), 21U);
  constexpr std::uint64_t bytes = 3 * traffic_round_bytes;
  for (const TrafficKernel& kernel : traffic_kernels()) {
    if (!is_supported(kernel.width)) {
      continue;
    }
    Arrays arrays(bytes), before(bytes);
    Checksum checksum{};
    kernel.run(arrays.all(), 2, checksum);
    for (std::size_t i = 0; i < bytes / sizeof(double); ++i) {
      const double want = wanted(kernel.traffic, before.array(0)[i], before.array(1)[i], before.array(2)[i]);
      ASSERT_EQ(arrays.array(0)[i], want) << name(kernel.traffic) << " " << name(kernel.width) << " at " << i;
      ASSERT_EQ(arrays.array(1)[i], before.array(1)[i]);
      ASSERT_EQ(arrays.array(2)[i], before.array(2)[i]);
    }
    EXPECT_EQ(arrays.behind(), before.behind());
  }
}

TEST(TrafficKernels, LoadReadsEveryWordOnce) {
  constexpr std::uint64_t bytes = 5 * traffic_round_bytes;
  for (const TrafficKernel& kernel : traffic_kernels()) {
    if (!is_supported(kernel.width) || kernel.traffic != Traffic::load) {
      continue;
    }
    Arrays arrays(bytes);
    const std::size_t words = std::size_t{2} << static_cast<unsigned>(kernel.width == Width::sse    ? 0
                                                                      : kernel.width == Width::avx2 ? 1
                                                                                                    : 2);
    Checksum want{}, got{};
    for (std::size_t i = 0; i < bytes / sizeof(double); ++i) {
      want[i % words] ^= __builtin_bit_cast(std::uint64_t, arrays.array(1)[i]);
    }
    kernel.run(arrays.all(), 1, got);
    EXPECT_EQ(got, want) << name(kernel.width);
    kernel.run(arrays.all(), 3, got);
    EXPECT_EQ(got, Checksum{}) << "what is read four times cancels out";
  }
}

TEST(TrafficKernels, CountTheBytesOfTheirInstructions) {
  EXPECT_EQ(requested_bytes(Traffic::load, 512), 512U);
  EXPECT_EQ(requested_bytes(Traffic::store_streaming, 512), 512U);
  EXPECT_EQ(requested_bytes(Traffic::copy, 512), 1024U);
  EXPECT_EQ(requested_bytes(Traffic::triad, 512), 1536U);
}

// ---- integers and branches ---------------------------------------------------------------------------------

TEST(ChainKernels, CountTheirLinks) {
  EXPECT_EQ(chain_kernels().size(), 6U);
  for (const ChainKernel& kernel : chain_kernels()) {
    EXPECT_EQ(kernel.run(1), unrolled) << name(kernel.chain);
    EXPECT_EQ(kernel.run(1001), 1001 * unrolled) << name(kernel.chain);
  }
}

TEST(InstructionKernels, CountTheirInstructions) {
  EXPECT_EQ(instruction_kernels().size(), 4U);
  for (const InstructionKernel& kernel : instruction_kernels()) {
    const std::uint64_t rounds = 101;
    std::uint64_t want = rounds * unrolled;
    if (kernel.instruction == Instruction::integer_multiply) {
      const std::uint64_t of_a_register = want / multiplying_registers;
      want = 1;
      for (std::uint64_t i = 0; i < of_a_register; ++i) {
        want *= 3;
      }
    }
    EXPECT_EQ(kernel.run(rounds), want) << name(kernel.instruction);
  }
}

TEST(CoreKernels, BranchesCountBytes) {
  std::vector<unsigned char> bytes(1000, 0);
  EXPECT_EQ(count_by_branches(bytes), 0U);
  bytes[0] = bytes[500] = bytes[999] = 1;
  EXPECT_EQ(count_by_branches(bytes), 3U);
  EXPECT_EQ(count_by_branches({}), 0U);
}

TEST(CoreKernels, FollowGoesAsFarAsItSays) {
  std::array<void*, 100> circle{};
  for (std::size_t i = 0; i < circle.size(); ++i) {
    circle[i] = &circle[(i + 1) % circle.size()];
  }
  EXPECT_EQ(follow(circle.data(), 1), &circle[unrolled]);
  EXPECT_EQ(follow(circle.data(), 10), &circle[std::size_t{10} * unrolled % circle.size()]);
}

// ---- two processors ----------------------------------------------------------------------------------------

TEST(LineExchange, ContendedAdditionsAllArrive) {
  Team pair({0, 1});
  std::uint64_t sum = 0, made = 0;
  static_cast<void>(contended_add_seconds(pair, 1000, sum, made));
  EXPECT_EQ(sum, made);
  EXPECT_GE(made, 1000U);
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::kernels_test
