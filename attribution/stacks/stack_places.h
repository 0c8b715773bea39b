// SPDX-License-Identifier: Apache-2.0
// The places in code that stacks consist of: each once, with its names, and an address in one mapping of its file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/loops/kernel_entry.h"
#include "attribution/model/stack_model.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// Numbers places in the order in which they are asked for; finish() puts them in their own.
class StackPlaces {
 public:
  /// `view` must outlive this.
  explicit StackPlaces(const ProgramView& view) : view_(view) {}

  std::uint32_t of(ModulePlace place);
  /// At a run-time address: in a file, of a just-in-time compiler, or not known.
  std::uint32_t of(Moment moment, std::uint64_t address);
  std::uint32_t of(const KernelEntry& entry);
  std::uint32_t unsampled();

  struct Finished {
    std::vector<StackFile> files;
    std::vector<StackPlace> places;
    std::vector<std::uint32_t> index;  // of each number that of() returned, in `places`
  };
  [[nodiscard]] Finished finish() &&;

 private:
  /// A file's index or no_file; an address, or the process and address of code without a file; a name of the kernel's.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::string>;
  struct Mapped {
    std::uint64_t begin = 0, end = 0, bias = 0;
  };
  std::uint32_t number_of(const Key& key, bool& fresh);
  /// The first mapping of each file.
  void find_mappings();
  /// The loaded part of a file that holds `place`, an index of `parts_`.
  [[nodiscard]] std::uint32_t part_of(ModulePlace place);
  /// The parts, the program's first, and their new indices by old ones.
  [[nodiscard]] std::vector<StackFile> finish_files(std::vector<std::uint32_t>& new_files);

  const ProgramView& view_;
  std::map<Key, std::uint32_t> numbers_;
  std::vector<StackPlace> places_;  // `file` indexes parts_
  std::vector<Mapped> mapped_;      // by AddressSpaces::files(); empty: not looked for yet
  std::vector<StackFile> parts_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> part_numbers_;  // by file and begin
};

}  // namespace crosstalk::attribution
