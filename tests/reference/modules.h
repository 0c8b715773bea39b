// SPDX-License-Identifier: Apache-2.0
// Finds the file that an address was mapped from, by /proc/self/maps. Pure except for ModuleTable::read().
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace crosstalk::reference {

/// A file's bytes from `offset` on, mapped at [begin, end).
struct Segment {
  std::uint32_t file = 0;  // index into ModuleTable::files()
  std::uint64_t begin = 0, end = 0, offset = 0;
  bool operator==(const Segment&) const = default;
};

struct FilePlace {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
};

/// Present and past mappings. Not thread-safe.
class ModuleTable {
 public:
  /// Adds the mappings of files in `maps`, in the format of /proc/PID/maps. Overlapped mappings are forgotten.
  void read(std::istream& maps);
  /// Reads this process's.
  void read();
  [[nodiscard]] std::optional<FilePlace> find(std::uint64_t address) const;
  /// Files may be mapped there no longer.
  void forget(std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// Every mapping that ever was, by the time it was first seen.
  [[nodiscard]] const std::vector<Segment>& history() const { return history_; }

 private:
  std::vector<std::string> files_;
  std::vector<Segment> segments_;  // by begin, disjoint
  std::vector<Segment> history_;
};

}  // namespace crosstalk::reference
