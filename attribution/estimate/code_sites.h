// SPDX-License-Identifier: Apache-2.0
// Finds the program's own code that makes an access.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/objects/sharing_kind.h"
#include "attribution/program/program_view.h"
#include "attribution/timeline/seen.h"

namespace crosstalk::attribution {

/// A place in source code, or in code without lines.
struct CodeSite {
  std::string file, function;
  std::uint32_t line = 0;
  auto operator<=>(const CodeSite&) const = default;
};
/// The code of an access.
struct Spot {
  std::uint32_t site = 0;  // index into SiteTable
  Purpose purpose = Purpose::data;
  bool operator==(const Spot&) const = default;
};

/// Code sites by run-time address and, in libraries, by caller; each is symbolized once. Sites are the program's own
/// code (own_code.h).
///
/// Stacks are copied for some accesses only, drawn by time. An access in a library without a stack takes the site of an
/// access to the same line of data with a stack at the same instruction, or else in the same function of the library,
/// each of those in turn: they are a sample of the library's callers there. If there is none, it takes the site that
/// all accesses with stacks of its thread at the same instruction share, or else that of all threads there. If they
/// have several sites or none, the site is the library's own line, and its caller is not known.
class SiteTable {
 public:
  SiteTable(const ProgramView& view, const StackTable& stacks) : view_(view), stacks_(stacks) {}
  /// Takes an access. Call it for all accesses before of().
  void learn(const AccessPoint& point);
  [[nodiscard]] Spot of(const AccessPoint& point);
  [[nodiscard]] const CodeSite& operator[](std::uint32_t site) const { return sites_[site]; }
  /// The library's function that the site called when it was first seen; empty: the site itself.
  [[nodiscard]] const std::string& through(std::uint32_t site) const { return through_[site]; }
  /// The path of the module of the site's code when it was first seen; empty: not known.
  [[nodiscard]] const std::string& module(std::uint32_t site) const { return modules_[site]; }
  /// False if the site is in a library with an unknown caller. True if it is in the program's own code, or its owner is
  /// unclear.
  [[nodiscard]] bool caller_known(std::uint32_t site) const { return callers_known_[site]; }
  /// The rank of each site in the order of file, function and line.
  [[nodiscard]] std::vector<std::uint32_t> ranks() const;

 private:
  /// Sites of accesses with a stack, in the order seen, and the number of accesses without one that took from them.
  struct Seen {
    std::vector<Spot> spots;
    std::size_t taken = 0;
  };
  /// The one spot of all accesses with stacks.
  struct Agreement {
    std::optional<Spot> spot;
    bool broken = false;
    void add(const Spot& seen) {
      broken = broken || (spot && *spot != seen);
      spot = seen;
    }
    [[nodiscard]] std::optional<Spot> one() const { return broken ? std::nullopt : spot; }
  };
  struct Instruction {
    std::optional<Spot> spot;                         // nullopt: it depends on the callers
    std::string function;                             // of the library; empty: not known
    std::unordered_map<std::uint64_t, Seen> by_line;  // of data
    std::map<std::uint32_t, Spot> by_callers;         // StackTable::callers()
    Agreement all;
    std::map<ThreadId, Agreement> by_thread;
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;

  [[nodiscard]] Instruction& instruction_of(Moment moment, const AccessPoint& point);
  /// The spots from which an access without a stack takes its site; null: none was seen.
  [[nodiscard]] Seen* seen_with_stack(Instruction& instruction, std::uint64_t line);
  /// The agreed spot of accesses with stacks, those of `thread` or else all.
  [[nodiscard]] static std::optional<Spot> agreed(const Instruction& instruction, ThreadId thread);
  [[nodiscard]] Spot with_stack(Instruction& instruction, Moment moment, const AccessPoint& point);
  [[nodiscard]] Spot look_up(Moment moment, const AccessPoint& point, std::span<const std::uint64_t> stack);

  const ProgramView& view_;
  const StackTable& stacks_;
  std::map<Key, Instruction> instructions_;
  std::map<std::pair<std::string, std::uint64_t>, Seen> by_function_;  // and line of data
  std::map<CodeSite, std::uint32_t> ids_;
  std::vector<CodeSite> sites_;
  std::vector<std::string> through_, modules_;
  std::vector<bool> callers_known_;
};

}  // namespace crosstalk::attribution
