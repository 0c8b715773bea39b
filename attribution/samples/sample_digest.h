// SPDX-License-Identifier: Apache-2.0
// Sums samples as they are read: a million of them become some thousand sums.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attribution/samples/strata.h"
#include "attribution/timeline/address_space.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// CPU time of one thread at one instruction, in one region.
struct CodeTotal {
  ThreadId thread;
  std::optional<ModulePlace> place;  // absent: in no known module
  std::uint64_t address = 0;         // run time, for what has no place
  std::uint64_t samples = 0;
  double ns = 0, ns2 = 0;         // sum of weights and of their squares
  double waiting_ns = 0;          // of ns, in waits for other threads that are measured
  profile::RegionId region = {};  // the innermost that the program marks; 0: none
  /// In the kernel: the address is the last byte before the one at which the thread will go on. So it lies in a system
  /// call's instruction. For a page fault, whose instruction is repeated, code_totals() moves it to that instruction.
  bool in_kernel = false;
  bool system_call = false;  // in_kernel, and by a system call
  /// The time of `ns` in the kernel, without measured waits.
  [[nodiscard]] double kernel_ns() const { return in_kernel ? ns - waiting_ns : 0; }
};

/// True if a memory access took the sample's time: hardware sampled it, or the clock's interrupt arrived after it.
[[nodiscard]] bool is_of_access(const profile::SampleRow& sample);

/// Time of samples that a memory access took, by the interrupted instruction and that of the access.
struct AccessTime {
  ModulePlace interrupted, access;  // in one module
  double ns = 0;
};

/// Samples of a thread, or of its part in a region.
struct ThreadTotal {
  std::uint64_t samples = 0;
  std::uint64_t measured = 0;  // of them, those of hardware sources and of events with a name
  double ns = 0, kernel_ns = 0;
  double ns2 = 0;                                // sum of the squares of what is added up in ns
  double waiting_ns = 0, waiting_kernel_ns = 0;  // of these, in waits for other threads that are measured
  void add(const ThreadTotal& other);
};

/// Sampled accesses of one thread to one address of a line of interest.
struct SampledAccess {
  ThreadId thread;
  std::uint64_t address = 0;
  std::uint8_t width = 0;
  std::uint64_t loads = 0, stores = 0;
  std::uint64_t time_ns = 0;  // of the first
};

/// The cache lines of each process whose sampled accesses are to be kept.
class LineSet {
 public:
  void add(ProcessId process, std::uint64_t address) { lines_.insert(key(process, address)); }
  [[nodiscard]] bool has(ProcessId process, std::uint64_t address) const {
    return !lines_.empty() && lines_.contains(key(process, address));
  }

 private:
  // A user's line numbers have 41 bits. A clash (damaged data only) keeps one access too many, which does no harm.
  static std::uint64_t key(ProcessId process, std::uint64_t address) {
    return (address >> 6U) ^ (static_cast<std::uint64_t>(process.value) << 44U);
  }
  std::unordered_set<std::uint64_t> lines_;
};

class SampleDigest {
 public:
  /// Passes every sample to `strata`. All arguments must outlive this.
  SampleDigest(std::span<const profile::ThreadRow> threads, const AddressSpaces& spaces, const LineSet& lines,
               Strata& strata);
  /// For profiles without samples of time: code() weighs by samples of `event` alone. Call it before the first sample.
  void weigh_by(profile::EventId event) { event_ = event; }
  void add(const profile::SampleRow& sample);
  /// The sums of a sample that code() adds up.
  [[nodiscard]] std::uint64_t weight_of(const profile::SampleRow& sample) const;

  [[nodiscard]] std::vector<CodeTotal> code() const;           // by thread, place, address, region, in user mode first
  [[nodiscard]] std::vector<AccessTime> access_times() const;  // of code(), in no order
  [[nodiscard]] std::vector<SampledAccess> accesses() const;   // by thread, address, width
  [[nodiscard]] const std::vector<ThreadTotal>& threads() const { return totals_; }  // by thread
  /// By thread and innermost region. Empty without regions.
  using InRegions = std::map<std::pair<std::uint32_t, profile::RegionId>, ThreadTotal>;
  [[nodiscard]] const InRegions& regions() const { return in_regions_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t with_address() const { return with_address_; }
  [[nodiscard]] std::uint64_t user_mode() const { return user_mode_; }
  /// Samples of hardware sources and of named events, by their unit.
  using Measured = std::map<std::tuple<profile::EventId, profile::SourceKind, profile::WeightUnit>, std::uint64_t>;
  [[nodiscard]] const Measured& measured() const { return measured_; }
  /// Samples of threads that the profile does not know; they count nowhere else.
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }

 private:
  struct CodeKey {
    std::uint64_t address;
    std::uint32_t thread;
    std::uint32_t file;  // + 1; 0: none
    profile::RegionId region;
    bool in_kernel;
    bool operator==(const CodeKey&) const = default;
  };
  struct CodeHash {
    std::size_t operator()(const CodeKey& k) const noexcept;
  };
  struct AccessKey {
    ModulePlace interrupted;
    std::uint64_t access;  // address in the same file
    bool operator==(const AccessKey&) const = default;
  };
  struct AccessHash {
    std::size_t operator()(const AccessKey& k) const noexcept;
  };
  struct Sums {
    std::uint64_t samples = 0;
    double ns = 0, ns2 = 0, waiting_ns = 0;
  };
  void add_code(const profile::SampleRow& sample, ProcessId process, bool in_kernel);
  void add_access_time(const profile::SampleRow& sample, ProcessId process, ModulePlace interrupted, double ns);
  void add_access(const profile::SampleRow& sample);

  std::optional<profile::EventId> event_;
  std::span<const profile::ThreadRow> rows_;
  const AddressSpaces& spaces_;
  const LineSet& lines_;
  Strata& strata_;
  std::unordered_map<CodeKey, Sums, CodeHash> code_;
  std::unordered_map<AccessKey, double, AccessHash> access_ns_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint8_t>, SampledAccess> accesses_;
  std::vector<ThreadTotal> totals_;
  InRegions in_regions_;
  Measured measured_;
  std::uint64_t samples_ = 0, with_address_ = 0, user_mode_ = 0, malformed_ = 0;
};

}  // namespace crosstalk::attribution
