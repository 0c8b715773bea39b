// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/jit_dump.h"

#include <elf.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/byte_cursor.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::uint32_t magic = 0x4a695444;  // "JiTD"; of the other byte order there is no x86-64
constexpr std::size_t header_bytes = 40;
constexpr std::size_t record_header_bytes = 16;
constexpr std::uint64_t flag_arch_timestamp = 1;  // times are not CLOCK_MONOTONIC's
constexpr int most_overlaps = 4096;               // code that came to one place, one after the other

enum RecordId : std::uint32_t { code_load = 0, code_move = 1, code_debug_info = 2, code_close = 3 };

}  // namespace

class JitDump::Parser {
 public:
  explicit Parser(JitDump& dump) : dump_(dump) {}

  bool parse(std::span<const std::uint8_t> bytes) {
    ByteCursor header(std::as_bytes(bytes));
    const auto found = header.take<std::uint32_t>();
    header.take<std::uint32_t>();  // version: what is read here has never changed
    const auto total = header.take<std::uint32_t>();
    const auto machine = header.take<std::uint32_t>();
    header.take<std::uint32_t>();  // padding
    dump_.pid_ = static_cast<std::int32_t>(header.take<std::uint32_t>());
    header.take<std::uint64_t>();  // when it was made
    const auto flags = header.take<std::uint64_t>();
    if (!header.whole() || found != magic || machine != EM_X86_64 || total < header_bytes || total > bytes.size()) {
      return false;
    }
    timed_ = (flags & flag_arch_timestamp) == 0;
    records(bytes.subspan(total));
    finish();
    return true;
  }

 private:
  void records(std::span<const std::uint8_t> bytes) {
    while (bytes.size() >= record_header_bytes) {
      ByteCursor fields(std::as_bytes(bytes));
      const auto id = fields.take<std::uint32_t>();
      const auto total = fields.take<std::uint32_t>();
      const auto time = fields.take<std::uint64_t>();
      if (total < record_header_bytes || total > bytes.size() || id == code_close) {
        return;
      }
      ByteCursor body(std::as_bytes(bytes.subspan(record_header_bytes, total - record_header_bytes)));
      time_ns_ = timed_ ? time : time_ns_ + 1;  // at least their order is known
      if (id == code_load) {
        load(body);
      } else if (id == code_move) {
        move(body);
      } else if (id == code_debug_info) {
        debug_info(body);
      }
      bytes = bytes.subspan(total);
    }
  }

  void load(ByteCursor& body) {
    body.take_bytes(8 + 8);  // process and thread; the virtual address, which is the code's
    const auto begin = body.take<std::uint64_t>();
    const auto bytes = body.take<std::uint64_t>();
    const auto index = body.take<std::uint64_t>();
    const std::string_view name = body.take_terminated_text();
    if (!body.whole()) {
      return;
    }
    Function function{std::string(name), {}};
    if (const auto lines = lines_.find(begin); lines != lines_.end()) {
      function.lines = std::move(lines->second);
      lines_.erase(lines);
    }
    const auto id = static_cast<std::uint32_t>(dump_.functions_.size());
    dump_.functions_.push_back(std::move(function));
    by_index_[index] = id;
    place(begin, bytes, id);
  }

  void move(ByteCursor& body) {
    body.take_bytes(8 + 8 + 8);  // process and thread, virtual address, where it was
    const auto begin = body.take<std::uint64_t>();
    const auto bytes = body.take<std::uint64_t>();
    const auto index = body.take<std::uint64_t>();
    const auto function = by_index_.find(index);
    if (body.whole() && function != by_index_.end()) {
      place(begin, bytes, function->second);
    }
  }

  void place(std::uint64_t begin, std::uint64_t bytes, std::uint32_t function) {
    if (bytes != 0 && begin + bytes > begin) {
      dump_.placed_.push_back({begin, bytes, time_ns_, function});
      dump_.longest_ = std::max(dump_.longest_, bytes);
    }
  }

  /// Lines of the function that the next load puts at an address.
  void debug_info(ByteCursor& body) {
    constexpr std::string_view as_before = "\xff";
    const auto begin = body.take<std::uint64_t>();
    const auto count = body.take<std::uint64_t>();
    std::vector<Line> lines;
    std::optional<std::uint32_t> file;
    for (std::uint64_t i = 0; i < count && body.rest() > 0; ++i) {
      const auto address = body.take<std::uint64_t>();
      const auto line = body.take<std::uint32_t>();
      body.take<std::uint32_t>();  // column
      const std::string_view name = body.take_terminated_text();
      if (!body.whole()) {
        break;
      }
      if (name != as_before) {
        file = file_of(name);
      }
      if (address >= begin && file) {
        lines.push_back({address - begin, line, *file});
      }
    }
    lines_[begin] = std::move(lines);
  }

  std::uint32_t file_of(std::string_view name) {
    const auto [known, fresh] =
        file_ids_.try_emplace(std::string(name), static_cast<std::uint32_t>(dump_.files_.size()));
    if (fresh) {
      dump_.files_.emplace_back(name);
    }
    return known->second;
  }

  void finish() {
    // V8 adds the size of an ELF header to the addresses of lines, because perf inject writes a header before each
    // function.
    constexpr std::uint64_t elf_header = sizeof(Elf64_Ehdr);
    bool any = false, shifted = true;
    for (Function& function : dump_.functions_) {
      std::stable_sort(function.lines.begin(), function.lines.end(),
                       [](const Line& a, const Line& b) { return a.address < b.address; });
      any = any || !function.lines.empty();
      shifted = shifted && (function.lines.empty() || function.lines.front().address >= elf_header);
    }
    for (Function& function : dump_.functions_) {
      for (Line& line : function.lines) {
        line.address -= any && shifted ? elf_header : 0;
      }
    }
    std::stable_sort(dump_.placed_.begin(), dump_.placed_.end(), [](const Placed& a, const Placed& b) {
      return std::pair(a.begin, a.time_ns) < std::pair(b.begin, b.time_ns);
    });
    if (!timed_) {  // the latest function counts
      for (Placed& placed : dump_.placed_) {
        placed.time_ns = 0;
      }
    }
  }

  JitDump& dump_;
  bool timed_ = true;
  std::uint64_t time_ns_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> by_index_;
  std::map<std::uint64_t, std::vector<Line>> lines_;  // by begin, of functions to come
  std::map<std::string, std::uint32_t> file_ids_;
};

std::optional<JitDump> JitDump::parse(std::span<const std::uint8_t> bytes) {
  JitDump dump;
  return Parser(dump).parse(bytes) ? std::optional(std::move(dump)) : std::nullopt;
}

std::optional<Frame> JitDump::at(std::uint64_t address, std::uint64_t time_ns) const {
  auto next = std::upper_bound(placed_.begin(), placed_.end(), address,
                               [](std::uint64_t a, const Placed& placed) { return a < placed.begin; });
  const Placed* before = nullptr;
  const Placed* after = nullptr;
  for (int tries = 0; next != placed_.begin() && tries < most_overlaps; ++tries) {
    --next;
    if (address - next->begin >= longest_) {
      break;
    }
    if (address - next->begin >= next->bytes) {
      continue;
    }
    if (next->time_ns <= time_ns) {
      before = before == nullptr || next->time_ns > before->time_ns ? &*next : before;
    } else {
      after = after == nullptr || next->time_ns < after->time_ns ? &*next : after;
    }
  }
  const Placed* found = before != nullptr ? before : after;
  return found == nullptr ? std::nullopt : std::optional(frame(*found, address));
}

Frame JitDump::frame(const Placed& placed, std::uint64_t address) const {
  const Function& function = functions_[placed.function];
  Frame frame;
  frame.function = function.name;
  const auto next = std::upper_bound(function.lines.begin(), function.lines.end(), address - placed.begin,
                                     [](std::uint64_t a, const Line& line) { return a < line.address; });
  if (next != function.lines.begin()) {
    frame.source = {files_[std::prev(next)->file], std::prev(next)->line};
  }
  return frame;
}

}  // namespace crosstalk::symbolizer
