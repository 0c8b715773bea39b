// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/predecessors.h"

#include <bit>
#include <cstring>

namespace crosstalk::in_target {

namespace {

constexpr std::uint64_t kind_predecessors = 2;
constexpr std::size_t scan_instructions = 40;
constexpr std::size_t enough_before = 36;
constexpr std::size_t enough_after = 96;

/// The instructions from an address on, in the order of their addresses.
class Survey {
 public:
  Survey(CodeWindow& window, std::uint64_t address) : window_(window), address_(address) {
    before_ = window.bytes_before(address) < CodeWindow::before ? window.bytes_before(address) : CodeWindow::before;
    scan();
    vote();
  }
  [[nodiscard]] const Predecessors& result() const { return result_; }

 private:
  void scan();
  void vote();
  void note_jump(std::uint64_t from, std::uint64_t target);
  void note_jumps_from_before(const std::uint8_t* length, std::uint64_t arriving, std::uint64_t jumping);

  CodeWindow& window_;
  std::uint64_t address_;
  std::size_t before_ = 0;
  std::uint64_t anchors_ = 0;  // bit i: a jump leads to address_ - i - 1
  Predecessors result_;
};

void Survey::note_jump(std::uint64_t from, std::uint64_t target) {
  if (target == address_ && result_.jumps < Predecessors::max_jumps) {
    result_.jump[result_.jumps++] = static_cast<std::int32_t>(from - address_);
  } else if (address_ - target - 1 < before_) {
    anchors_ |= std::uint64_t{1} << (address_ - target - 1);
  }
}

void Survey::scan() {
  std::uint64_t at = address_;
  for (std::size_t i = 0; i < scan_instructions && window_.contains(at); ++i) {
    const Outline outline = outline_instruction(window_.data(at), window_.bytes_after(at));
    if (outline.length == 0) {
      return;
    }
    if (outline.branches) {
      note_jump(at, at + outline.length + static_cast<std::uint64_t>(std::int64_t{outline.offset}));
    }
    at += outline.length;
  }
}

/// Returns how much a start of decoding counts for the place that decoding reaches.
unsigned vote_weight(std::size_t distance, bool anchored, bool distinctive, bool doubtful) {
  if (anchored || distinctive) {
    return anchored ? 6000 : 400;
  }
  const unsigned weight = distance > longest_instruction ? 16 : 8;  // it has fallen into step more surely
  return doubtful ? weight / 8 : weight;
}

/// Finds for each byte, from the last to the first, which instruction decoding from there reaches just before address_.
void Survey::vote() {
  // By distance from address_: the length of the last instruction, 0 if decoding does not reach address_.
  std::uint8_t arrives[CodeWindow::before + 1];
  std::uint8_t length[CodeWindow::before + 1];
  std::uint64_t arriving = 0;  // bit i: arrives[i + 1] is not 0
  std::uint64_t jumping = 0;   // bit i: at distance i + 1 there is a jump to address_
  std::uint64_t doubts = 0;    // bit i: decoding from distance i + 1 meets a rare instruction
  std::uint32_t votes[longest_instruction + 1] = {};
  std::uint32_t total = 0;
  for (std::size_t distance = 1; distance <= before_; ++distance) {
    const std::uint64_t from = address_ - distance;
    const Outline outline = outline_instruction(window_.data(from), distance);
    arrives[distance] = 0;
    length[distance] = outline.length;
    if (outline.length == 0) {
      continue;
    }
    const std::size_t rest = distance - outline.length;
    arrives[distance] = rest == 0 ? outline.length : arrives[rest];
    if (arrives[distance] == 0) {
      continue;
    }
    const bool jumps_here =
        outline.branches && outline.length + static_cast<std::uint64_t>(std::int64_t{outline.offset}) == distance;
    jumping |= std::uint64_t{jumps_here ? 1U : 0U} << (distance - 1);
    arriving |= std::uint64_t{1} << (distance - 1);
    const bool doubtful = outline.doubtful || (rest > 0 && (doubts >> (rest - 1) & 1U) != 0);
    doubts |= std::uint64_t{doubtful ? 1U : 0U} << (distance - 1);
    const bool anchored = (anchors_ >> (distance - 1) & 1U) != 0;
    const unsigned weight = vote_weight(distance, anchored, outline.distinctive, doubtful);
    votes[arrives[distance]] += weight;
    total += weight;
  }
  std::uint8_t best = 0;
  for (std::uint8_t d = 1; d <= longest_instruction; ++d) {
    best = votes[d] > votes[best] ? d : best;
  }
  result_.distance = best;
  result_.confidence = static_cast<std::uint8_t>(total == 0 ? 0 : votes[best] * 255U / total);
  if (jumping != 0) {
    note_jumps_from_before(length, arriving, jumping);
  }
}

/// Notes the jumps to address_ that decoding from most of the bytes before meets.
void Survey::note_jumps_from_before(const std::uint8_t* length, std::uint64_t arriving, std::uint64_t jumping) {
  std::uint8_t visits[CodeWindow::before + 1] = {};
  unsigned starts = 0;
  for (std::size_t distance = before_; distance > 0; --distance) {
    if ((arriving >> (distance - 1) & 1U) == 0) {
      continue;
    }
    ++starts;
    ++visits[distance];
    visits[distance - length[distance]] =
        static_cast<std::uint8_t>(visits[distance - length[distance]] + visits[distance]);
    const bool is_jump = (jumping >> (distance - 1) & 1U) != 0;
    if (is_jump && 2U * visits[distance] > starts && result_.jumps < Predecessors::max_jumps) {
      result_.jump[result_.jumps++] = -static_cast<std::int32_t>(distance);
    }
  }
}

/// Makes the window show the surroundings of `address` as far as they can be read.
bool survey_window(CodeWindow& window, std::uint64_t address) {
  window.extend();
  if (!window.contains(address) || window.bytes_before(address) < enough_before ||
      window.bytes_after(address) < enough_after) {
    window.center(address);
    window.extend();
  }
  return window.contains(address);
}

/// Returns the bytes before `address`, as far as they are on the same page; a cached answer is checked against them.
/// (Instructions and targets of jumps are checked again when they are used.)
std::uint64_t bytes_before(const CodeWindow& window, std::uint64_t address) {
  std::uint64_t bytes = 0;
  if ((address & 4095U) >= sizeof(bytes)) {
    std::memcpy(&bytes, window.data(address - sizeof(bytes)), sizeof(bytes));
  }
  return bytes;
}

}  // namespace

Predecessors find_predecessors(CodeWindow& window, std::uint64_t address) {
  if (!window.look_at(address)) {
    return {};
  }
  if ((address & 4095U) >= sizeof(std::uint64_t) && window.bytes_before(address) < sizeof(std::uint64_t)) {
    window.center(address);
    if (!window.contains(address)) {
      return {};
    }
  }
  const std::uint64_t key = mix(mix(kind_predecessors, address), bytes_before(window, address));
  const AccessCache::Candidate candidate = window.cache().at(address, kind_predecessors);
  if (candidate.holds(key)) {
    return std::bit_cast<Predecessors>(candidate.payload);
  }
  if (!survey_window(window, address)) {
    return {};
  }
  const Survey survey(window, address);
  window.cache().put(address, kind_predecessors, key, std::bit_cast<AccessCache::Payload>(survey.result()));
  return survey.result();
}

}  // namespace crosstalk::in_target
