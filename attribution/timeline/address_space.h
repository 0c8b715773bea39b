// SPDX-License-Identifier: Apache-2.0
// Which file of code lies at a run-time address of a process at a time.
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

#include "attribution/objects/interval_index.h"
#include "base/hash.h"
#include "profile/model.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// A process at a time: what a run-time address means depends on both.
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

/// The modules of all processes of a profile. A child made by fork has what its parent had mapped at that time.
/// Safe to share between threads, unless some of its mappings are known by their places in files alone.
class AddressSpaces {
 public:
  /// The file's own address of a place in a file, by index into files(); nullopt: the file is not known.
  using AddressOf = std::function<std::optional<std::uint64_t>(std::uint32_t file, std::uint64_t file_offset)>;

  AddressSpaces(std::span<const profile::ProcessRow> processes, std::span<const profile::ModuleRow> modules);

  /// Whom to ask where files have what was mapped, when it is first needed. Before, and where the file is not known, an
  /// address is the place in the file.
  void ask(AddressOf address_of) { address_of_ = std::move(address_of); }

  /// Distinct files (path, and build id or contents), in the order of first appearance.
  [[nodiscard]] const std::vector<symbolizer::ModuleSpec>& files() const { return files_; }
  /// The file at `address`. A module is known from its load record, which comes a little after it is mapped, so an
  /// address that nothing covers yet belongs to the next module to be loaded there.
  [[nodiscard]] std::optional<ModulePlace> find(Moment moment, std::uint64_t address) const;
  /// What is mapped at a time, by address.
  [[nodiscard]] std::vector<MappedModule> mapped(Moment moment) const;
  /// Everything that a process ever had mapped, by address.
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
