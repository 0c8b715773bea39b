// SPDX-License-Identifier: Apache-2.0
#include "peak_beside.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/machine_description.h"
#include "collectors/calibration/working_set.h"
#include "counted_loops.h"

namespace workload {
namespace {

namespace calibration = crosstalk::collectors::calibration;
namespace models = crosstalk::models;

constexpr std::uint64_t stagger = 1344;  // from one array to the next, as the calibration has it
constexpr std::uint64_t avx2_bytes = 32;

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "no peak beside the loop: %s\n", why.c_str());
  std::exit(2);
}

models::Level level_of(const std::string& unit) {
  for (const models::Level level : {models::Level::l1d, models::Level::l2, models::Level::l3}) {
    if (unit == models::name(level)) {
      return level;
    }
  }
  return models::Level::memory;
}

std::uint64_t bytes_in(models::Level level) {
  const auto machine = calibration::describe_machine();
  if (!machine) {
    refuse(machine.error().message);
  }
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_AVPHYS_PAGES));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::vector<std::uint32_t> one = {calibration::usable_processors().back()};
  const auto bytes = calibration::working_set(*machine, level, one, pages * page);
  if (!bytes) {
    refuse(bytes.error().message);
  }
  return *bytes;
}

}  // namespace

/// One width of a kernel, and how fast it was.
class PeakBeside::Kernel {
 public:
  explicit Kernel(models::Width width) : width_(width) {}
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  void visit(double seconds) {
    const double work_before = work_;
    const double seconds_before = seconds_;
    const double from = thread_seconds();
    double now = from;
    while (now - from < seconds) {
      const double part = run(rounds_);
      const double spent = thread_seconds() - now;
      if (spent < seconds / few_rounds) {
        rounds_ *= 2;
      }
      work_ += part;
      seconds_ += spent;
      now += spent;
    }
    note((work_ - work_before) / (seconds_ - seconds_before));
  }
  /// Returns the spread of per_s() over visits: its standard error, as a part of it.
  [[nodiscard]] double error() const {
    const double variance = visits_ > 1 ? squares_ / (visits_ - 1) : 0;
    return visits_ > 1 ? std::sqrt(variance / visits_) / mean_ : 1;
  }
  [[nodiscard]] double per_s() const { return seconds_ > 0 ? work_ / seconds_ : 0; }
  [[nodiscard]] models::Width width() const { return width_; }

 protected:
  /// Returns the work done: flops, or bytes that moved.
  virtual double run(std::uint64_t rounds) = 0;

 private:
  static constexpr double few_rounds = 16;
  /// Mean and sum of squared differences, updated (Welford).
  void note(double rate) {
    visits_ += 1;
    const double off = rate - mean_;
    mean_ += off / visits_;
    squares_ += off * (rate - mean_);
  }

  models::Width width_;
  std::uint64_t rounds_ = 1;
  double work_ = 0, seconds_ = 0;
  double visits_ = 0, mean_ = 0, squares_ = 0;
};

namespace {

template <class Base>
class Flops : public Base {
 public:
  explicit Flops(models::Width width) : Base(width) {
    const auto kernels = calibration::flop_kernels();
    kernel_ = &*std::find_if(kernels.begin(), kernels.end(), [&](const calibration::FlopKernel& one) {
      return one.width == width && one.precision == models::Precision::double_precision &&
             one.operation == models::Operation::fma;
    });
  }

 private:
  double run(std::uint64_t rounds) override {
    kernel_->run(rounds, operands_, static_cast<unsigned char*>(accumulators_));
    return static_cast<double>(calibration::flops_of(*kernel_, rounds));
  }

  const calibration::FlopKernel* kernel_ = nullptr;
  calibration::FlopOperands operands_{};  // zeros: no operation on them is slow
  alignas(64) unsigned char accumulators_[calibration::flop_accumulators * calibration::accumulator_stride] = {};
};

template <class Base>
class Bytes : public Base {
 public:
  Bytes(models::Width width, models::Level level, models::Traffic traffic) : Base(width) {
    const unsigned count = calibration::arrays_of(traffic);
    arrays_.bytes = bytes_in(level) / count / calibration::traffic_round_bytes * calibration::traffic_round_bytes;
    memory_ = std::make_unique<Array>(count * (arrays_.bytes + stagger));
    auto* const first = reinterpret_cast<char*>(memory_->data());
    const auto array = [&](std::uint64_t number) {
      return reinterpret_cast<double*>(first + number * (arrays_.bytes + stagger));
    };
    arrays_.a = array(0);
    arrays_.b = array(traffic == models::Traffic::load ? 0 : 1);
    arrays_.c = array(count - 1);
    const auto kernels = calibration::traffic_kernels();
    kernel_ = &*std::find_if(kernels.begin(), kernels.end(), [&](const calibration::TrafficKernel& one) {
      return one.width == width && one.traffic == traffic;
    });
    moved_ = models::moved_per_requested(level, traffic) *
             static_cast<double>(calibration::requested_bytes(traffic, arrays_.bytes));
  }

 private:
  double run(std::uint64_t rounds) override {
    calibration::Checksum checksum{};
    kernel_->run(arrays_, rounds, checksum);
    return moved_ * static_cast<double>(rounds);
  }

  std::unique_ptr<Array> memory_;
  calibration::TrafficArrays arrays_;
  const calibration::TrafficKernel* kernel_ = nullptr;
  double moved_ = 0;  // in a pass
};

}  // namespace

PeakBeside::PeakBeside(const Limit& limit, std::size_t vector_bytes) {
  const std::string unit = limit.unit;
  begin_ = "\"peak\":{\"unit\":\"" + unit + "\",\"traffic\":\"";
  if (unit == "fpu") {
    kernels_.push_back(
        std::make_unique<Flops<Kernel>>(vector_bytes > avx2_bytes ? models::Width::avx512 : models::Width::avx2));
    return;
  }
  begin_ += models::name(limit.traffic);
  const models::Level level = level_of(unit);
  for (const models::Width width : {models::Width::avx512, models::Width::avx2}) {
    // As the calibration: the widest vectors for memory, the better of two widths for caches.
    if (calibration::is_supported(width) && (level != models::Level::memory || kernels_.empty())) {
      kernels_.push_back(std::make_unique<Bytes<Kernel>>(width, level, limit.traffic));
    }
  }
}

PeakBeside::~PeakBeside() = default;

void PeakBeside::visit(double seconds) {
  for (const auto& kernel : kernels_) {
    kernel->visit(seconds / static_cast<double>(kernels_.size()));
  }
}

std::string PeakBeside::truth() const {
  const Kernel& best = **std::max_element(kernels_.begin(), kernels_.end(),
                                          [](const auto& a, const auto& b) { return a->per_s() < b->per_s(); });
  char rest[120];
  std::snprintf(rest, sizeof rest, "\",\"width\":\"%s\",\"per_s\":%.6g,\"error\":%.4f}",
                std::string(models::name(best.width())).c_str(), best.per_s(), best.error());
  return begin_ + rest;
}

}  // namespace workload
