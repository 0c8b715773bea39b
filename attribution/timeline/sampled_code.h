// SPDX-License-Identifier: Apache-2.0
// Answers of the machine code around a sample about its thread, as an interface, so that its users can be tested with
// hand-made answers. CodeAtSamples (objects/code_at_samples.h) is the real one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "attribution/timeline/seen.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// A store that a sampled thread may do next.
struct PossibleStore {
  std::uint64_t instruction = 0;
  std::uint64_t address = 0;
  std::uint8_t width = 0;  // bytes
  AccessKind kind = AccessKind::store;
};

/// The code around a sample.
class SampledCode {
 public:
  SampledCode() = default;
  SampledCode(const SampledCode&) = delete;
  SampledCode& operator=(const SampledCode&) = delete;
  virtual ~SampledCode() = default;
  /// True if the access of the instruction at `ip` stores, though it was sampled at its load.
  [[nodiscard]] virtual bool stores_back(ThreadId thread, std::uint64_t time_ns, std::uint64_t ip) = 0;
  /// True if the thread stores to the sampled address. A counter is loaded, added to and stored: the load takes the
  /// time, so samples may hit only the load.
  [[nodiscard]] bool stores(const profile::SampleRow& sample) {
    return crosstalk::stores(sample.access) || stores_back(sample.thread, sample.time_ns, instruction_of(sample));
  }
  /// The accessing instruction; the interrupted one if none is known.
  [[nodiscard]] static std::uint64_t instruction_of(const profile::SampleRow& sample) {
    return sample.access_ip != 0 ? sample.access_ip : sample.ip;
  }
  /// The last value that the thread has loaded, if it was sampled in a loop that repeats the load until another thread
  /// stores; nullopt elsewhere.
  [[nodiscard]] virtual std::optional<LoadedValue> last_loaded(const profile::SampleRow& sample) = 0;
  /// The stores that may follow, nearest first. Valid until the next call.
  [[nodiscard]] virtual std::span<const PossibleStore> stores_ahead(const profile::SampleRow& sample) = 0;
};

/// For a program with unknown code.
class UnknownCode : public SampledCode {
 public:
  bool stores_back(ThreadId /*thread*/, std::uint64_t /*time_ns*/, std::uint64_t /*ip*/) override { return false; }
  std::optional<LoadedValue> last_loaded(const profile::SampleRow& /*sample*/) override { return std::nullopt; }
  std::span<const PossibleStore> stores_ahead(const profile::SampleRow& /*sample*/) override { return {}; }
};

}  // namespace crosstalk::attribution
