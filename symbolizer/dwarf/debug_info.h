// SPDX-License-Identifier: Apache-2.0
// The DWARF of a module as an index from addresses to compilation units. Lists the units once (root DIEs only), and
// reads the contents of a unit when an address in it is requested.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

/// Limits a walk of DWARF: the entries of a damaged file may form a cycle.
class WalkBudget {
 public:
  explicit WalkBudget(std::uint64_t steps) : left_(steps) {}
  [[nodiscard]] bool spend() { return left_ > 0 && left_-- > 0; }

 private:
  std::uint64_t left_;
};
inline constexpr std::uint64_t unit_walk_steps = 20'000'000;  // entries; the largest real units have millions

/// Calls `visit(Dwarf_Die&)` for each child of `parent` until it returns false.
template <class Visit>
void for_each_child(Dwarf_Die& parent, WalkBudget& budget, Visit visit) {
  Dwarf_Die child;
  if (dwarf_child(&parent, &child) != 0) {
    return;
  }
  for (;;) {
    if (!budget.spend() || !visit(child)) {
      return;
    }
    const Dwarf_Off before = dwarf_dieoffset(&child);
    Dwarf_Die next;
    // A sibling lies behind; any other one is a damaged file's cycle.
    if (dwarf_siblingof(&child, &next) != 0 || dwarf_dieoffset(&next) <= before) {
      return;
    }
    child = next;
  }
}

/// The code ranges of a DIE without those of discarded code (at 0).
[[nodiscard]] std::vector<AddressRange> code_ranges(Dwarf_Die& die);

/// A function with code, and one of its ranges.
struct FunctionEntry {
  AddressRange range;
  Dwarf_Die die{};
};

struct Unit {
  Dwarf_Die root{};  // of the skeleton, for a split unit
  bool content_known = false;
  Dwarf_Die content{};        // root of the functions: the split unit's, else `root`
  std::string split_missing;  // name of the file of a split unit that was looked for in vain
  bool functions_known = false;
  std::vector<FunctionEntry> functions;  // sorted by begin
  // Scopes ("(anonymous namespace)::Pool") of functions without a linkage name, by offset of their entry.
  std::unordered_map<Dwarf_Off, std::string> scopes;
};

class DebugInfo {
 public:
  /// Null if `file` has no usable DWARF. `file` must outlive the result.
  [[nodiscard]] static std::unique_ptr<DebugInfo> open(const ElfFile& file);

  /// The unit whose code holds `address`, or null.
  [[nodiscard]] Unit* unit_at(std::uint64_t address);
  [[nodiscard]] std::vector<Unit>& units() { return units_; }
  /// The DIE that contains the unit's functions. Reads the split unit, if it is one and its file is found.
  [[nodiscard]] static Dwarf_Die& content(Unit& unit);

  /// The function that holds `address`, then the inlined calls in it that do, outermost first.
  [[nodiscard]] static std::vector<Dwarf_Die> scopes_at(Unit& unit, std::uint64_t address);
  [[nodiscard]] Dwarf* dwarf() const { return dwarf_.get(); }

  /// The file to which dwz has moved parts of the debug information.
  struct Supplement {
    std::string name;      // as it is written in the file that refers to it
    std::string build_id;  // lower-case hex
  };
  /// The supplement still needed; nullopt if none is referred to, or if it is present.
  [[nodiscard]] std::optional<Supplement> wanted_supplement() const;
  /// Adds the supplement, and keeps `file` as long as this.
  void supplement(ElfFile file);
  /// The files searched for in vain, in words that follow "its debug information"; empty: none.
  [[nodiscard]] std::string missing() const;

 private:
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  struct UnitRange {
    AddressRange range;
    std::uint32_t unit = 0;
  };
  explicit DebugInfo(Dwarf* dwarf) : dwarf_(dwarf) {}
  void list_units();
  static void list_functions(Unit& unit);

  std::optional<ElfFile> supplement_file_;
  std::unique_ptr<Dwarf, EndDwarf> supplement_;  // ends after those that refer to it
  std::unique_ptr<Dwarf, EndDwarf> dwarf_;
  std::vector<Unit> units_;
  std::vector<UnitRange> ranges_;  // sorted by begin
};

/// Demangled linkage name, else the plain name with its scope; taken from a declaration or abstract origin if
/// necessary. Compilers give no linkage name to functions that other units cannot see, nor to C functions.
[[nodiscard]] std::string function_name(const Unit& unit, Dwarf_Die& die);

}  // namespace crosstalk::symbolizer
