// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/modules.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace crosstalk::reference {
namespace {

struct Line {
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::string path;
};

/// "7f00-7f10 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6"; none without a file's path.
std::optional<Line> parse(const std::string& text) {
  std::istringstream stream(text);
  Line line;
  char dash = 0;
  std::string permissions, device, inode;
  if (!(stream >> std::hex >> line.begin >> dash >> line.end >> permissions >> line.offset >> device >> inode)) {
    return std::nullopt;
  }
  std::getline(stream >> std::ws, line.path);
  return line.path.starts_with('/') ? std::optional(line) : std::nullopt;
}

}  // namespace

void ModuleTable::read(std::istream& maps) {
  for (std::string text; std::getline(maps, text);) {
    const auto line = parse(text);
    if (!line) {
      continue;
    }
    auto file = std::find(files_.begin(), files_.end(), line->path);
    if (file == files_.end()) {
      file = files_.insert(files_.end(), line->path);
    }
    const Segment segment{static_cast<std::uint32_t>(file - files_.begin()), line->begin, line->end, line->offset};
    if (std::find(segments_.begin(), segments_.end(), segment) != segments_.end()) {
      continue;
    }
    forget(segment.begin, segment.end);
    const auto place = std::upper_bound(segments_.begin(), segments_.end(), segment.begin,
                                        [](std::uint64_t begin, const Segment& other) { return begin < other.begin; });
    segments_.insert(place, segment);
    history_.push_back(segment);
  }
}

void ModuleTable::read() {
  std::ifstream maps("/proc/self/maps");
  read(maps);
}

std::optional<FilePlace> ModuleTable::find(std::uint64_t address) const {
  const auto next = std::upper_bound(segments_.begin(), segments_.end(), address,
                                     [](std::uint64_t value, const Segment& segment) { return value < segment.begin; });
  if (next == segments_.begin() || address >= std::prev(next)->end) {
    return std::nullopt;
  }
  const Segment& segment = *std::prev(next);
  return FilePlace{segment.file, address - segment.begin + segment.offset};
}

void ModuleTable::forget(std::uint64_t begin, std::uint64_t end) {
  std::erase_if(segments_, [&](const Segment& segment) { return segment.begin < end && begin < segment.end; });
}

}  // namespace crosstalk::reference
