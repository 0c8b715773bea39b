// SPDX-License-Identifier: Apache-2.0
// What the machine code around a sample says of its thread, as an interface, so that what asks can be tested on
// hand-made answers. The real one is CodeAtSamples (objects/code_at_samples.h).
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

/// What the code around a sample says of its thread.
class SampledCode {
 public:
  SampledCode() = default;
  SampledCode(const SampledCode&) = delete;
  SampledCode& operator=(const SampledCode&) = delete;
  virtual ~SampledCode() = default;
  /// Does the access of the instruction at `ip` store, though it was sampled at its load?
  [[nodiscard]] virtual bool stores_back(ThreadId thread, std::uint64_t time_ns, std::uint64_t ip) = 0;
  /// Does the thread store to what it was sampled at? A counter is loaded, added to and stored: the time is taken by
  /// the load, so samples may fall on nothing else.
  [[nodiscard]] bool stores(const profile::SampleRow& sample) {
    return crosstalk::stores(sample.access) || stores_back(sample.thread, sample.time_ns, instruction_of(sample));
  }
  /// The instruction that accessed; where none is known, the one that was interrupted.
  [[nodiscard]] static std::uint64_t instruction_of(const profile::SampleRow& sample) {
    return sample.access_ip != 0 ? sample.access_ip : sample.ip;
  }
  /// The value that the thread has loaded last, where it was sampled in a loop that repeats the load until another
  /// thread stores; nullopt elsewhere.
  [[nodiscard]] virtual std::optional<LoadedValue> last_loaded(const profile::SampleRow& sample) = 0;
  /// The stores that may follow, nearest first. Good until the next call.
  [[nodiscard]] virtual std::span<const PossibleStore> stores_ahead(const profile::SampleRow& sample) = 0;
};

/// Of a program whose code is not known.
class UnknownCode : public SampledCode {
 public:
  bool stores_back(ThreadId /*thread*/, std::uint64_t /*time_ns*/, std::uint64_t /*ip*/) override { return false; }
  std::optional<LoadedValue> last_loaded(const profile::SampleRow& /*sample*/) override { return std::nullopt; }
  std::span<const PossibleStore> stores_ahead(const profile::SampleRow& /*sample*/) override { return {}; }
};

}  // namespace crosstalk::attribution
