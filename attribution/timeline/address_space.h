// SPDX-License-Identifier: Apache-2.0
// Finds the file of code at a run-time address of a process at a time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/interval_index.h"
#include "profile/model.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// A process at a time: the meaning of a run-time address depends on both.
struct Moment {
  ProcessId process;
  std::uint64_t time_ns = 0;
};

/// A place in a file of code: index into AddressSpaces::files(), and the file's own address.
struct ModulePlace {
  std::uint32_t file = 0;
  std::uint64_t address = 0;
  auto operator<=>(const ModulePlace&) const = default;
};
struct ModulePlaceHash {
  std::size_t operator()(const ModulePlace& place) const noexcept {
    return spread(place.address ^ (std::uint64_t{place.file} << 52U));
  }
};

/// One mapping of a file into a process.
struct MappedModule {
  std::uint64_t begin = 0, end = 0, bias = 0;
  std::uint32_t file = 0;
  std::int64_t tls_offset = 0;
  std::uint64_t tls_size = 0;
  std::uint64_t loaded_ns = 0, unloaded_ns = 0;   // unloaded 0: never
  std::optional<std::uint64_t> file_offset = {};  // of `begin`, where the file's segments have to tell the bias
};

/// The modules of all processes of a profile. A child made by fork has its parent's mappings of that time. Safe to
/// share between threads, unless some of its mappings are known by their file offsets alone.
class AddressSpaces {
 public:
  /// The file's own address of an offset in a file, by index into files(); nullopt: the file is not known.
  using AddressOf = std::function<std::optional<std::uint64_t>(std::uint32_t file, std::uint64_t file_offset)>;

  AddressSpaces(std::span<const profile::ProcessRow> processes, std::span<const profile::ModuleRow> modules);

  /// Sets the function that converts file offsets to addresses, called when one is first needed. Before, and for
  /// unknown files, an address is the file offset.
  void ask(AddressOf address_of) { address_of_ = std::move(address_of); }

  /// Distinct files (path, and build id or contents), in the order of first appearance.
  [[nodiscard]] const std::vector<symbolizer::ModuleSpec>& files() const { return files_; }
  /// The file at `address`. A module's load record comes a little after its mapping, so an address without a module
  /// belongs to the next one to be loaded there.
  [[nodiscard]] std::optional<ModulePlace> find(Moment moment, std::uint64_t address) const;
  /// The mappings at a time, by address, and those that are loaded next where there is none.
  [[nodiscard]] std::vector<MappedModule> mapped(Moment moment) const;
  /// All mappings that a process ever had, by address.
  [[nodiscard]] std::vector<MappedModule> all(ProcessId process) const;

 private:
  using Space = IntervalIndex<MappedModule>;
  std::vector<symbolizer::ModuleSpec> files_;
  std::vector<Space> spaces_;  // by process
  [[nodiscard]] std::uint64_t bias_of(const MappedModule& module) const;

  AddressOf address_of_;
  mutable std::map<std::pair<std::uint32_t, std::uint64_t>, std::optional<std::uint64_t>> addresses_;  // as told
};

}  // namespace crosstalk::attribution
