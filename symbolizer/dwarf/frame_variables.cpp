// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/frame_variables.h"

#include <dwarf.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "symbolizer/dwarf/types.h"

namespace crosstalk::symbolizer {
namespace {

constexpr int deepest_scope = 64;
constexpr std::uint64_t function_walk_steps = 1'000'000;
constexpr std::uint64_t pushed_frame_pointer = 16;  // below the frame's end: the return address and the old rbp

/// The expression of an attribute at `code`; empty if there is none or more than one.
std::vector<Dwarf_Op> expression_at(Dwarf_Die& die, unsigned name, std::uint64_t code) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_attr_integrate(&die, name, &attribute) == nullptr ||
      dwarf_getlocation_addr(&attribute, code, &operations, &count, 1) != 1) {
    return {};
  }
  return {operations, operations + count};
}

/// The base of DW_OP_fbreg. Compilers that use the frame pointer as the base push it first.
std::optional<std::uint64_t> frame_base(Dwarf_Die& function, std::uint64_t code, const StackFrame& frame) {
  const std::vector<Dwarf_Op> base = expression_at(function, DW_AT_frame_base, code);
  if (base.size() != 1 || frame.end == 0) {
    return std::nullopt;
  }
  switch (base[0].atom) {
    case DW_OP_call_frame_cfa:
      return frame.end;
    case DW_OP_reg6:  // rbp
      return frame.end - pushed_frame_pointer;
    case DW_OP_reg7:  // rsp
      return frame.sp;
    default:
      return std::nullopt;
  }
}

class Search {
 public:
  Search(std::uint64_t code, const StackFrame& frame, std::optional<std::uint64_t> base, std::uint64_t data)
      : code_(code), frame_(frame), base_(base), data_(data) {}

  void in(Dwarf_Die& parent, bool alive, int nesting) {
    if (nesting > deepest_scope) {
      return;
    }
    for_each_child(parent, budget_, [&](Dwarf_Die& child) {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) {
        offer(child, alive);
      } else if (tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) {
        in(child, alive && holds(child), nesting + 1);
      }
      return true;
    });
  }
  [[nodiscard]] std::optional<FrameVariable> best() const { return best_; }

 private:
  [[nodiscard]] bool holds(Dwarf_Die& block) const {
    const std::vector<AddressRange> ranges = code_ranges(block);
    return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& r) { return r.contains(code_); });
  }
  /// The address at which the operation places a variable. Variables with more alignment than the stack's are relative
  /// to rbp, because their distance from the frame's end depends on the caller.
  [[nodiscard]] std::optional<std::uint64_t> begin_of(const Dwarf_Op& place) const {
    std::optional<std::uint64_t> from;
    if (place.atom == DW_OP_fbreg) {
      from = base_;
    } else if (place.atom == DW_OP_breg6 && frame_.frame_pointer != 0) {
      from = frame_.frame_pointer;
    } else if (place.atom == DW_OP_breg7) {
      from = frame_.sp;
    }
    return from ? std::optional(*from + place.number) : std::nullopt;
  }
  void offer(Dwarf_Die& variable, bool alive) {
    const std::vector<Dwarf_Op> place = expression_at(variable, DW_AT_location, code_);
    const auto begin = place.size() == 1 ? begin_of(place[0]) : std::nullopt;
    const auto type = begin && data_ >= *begin ? type_of(variable) : std::nullopt;
    const auto bytes = type ? size_of(*type) : std::nullopt;
    if (!bytes || data_ - *begin >= *bytes) {
      return;
    }
    const std::tuple rank{!alive, *bytes};
    if (!best_ || rank < rank_) {
      best_ = FrameVariable{variable, *type, *begin};
      rank_ = rank;
    }
  }

  std::uint64_t code_;
  const StackFrame& frame_;
  std::optional<std::uint64_t> base_;  // of the frame
  std::uint64_t data_;
  WalkBudget budget_{function_walk_steps};
  std::optional<FrameVariable> best_;
  std::tuple<bool, std::uint64_t> rank_{};
};

}  // namespace

std::optional<FrameVariable> variable_in_frame(Unit& unit, std::uint64_t code, const StackFrame& frame,
                                               std::uint64_t data) {
  std::vector<Dwarf_Die> scopes = DebugInfo::scopes_at(unit, code);
  if (scopes.empty()) {
    return std::nullopt;
  }
  Dwarf_Die function = scopes.front();
  Search search(code, frame, frame_base(function, code, frame), data);
  search.in(function, true, 0);
  return search.best();
}

}  // namespace crosstalk::symbolizer
