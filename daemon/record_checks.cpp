// SPDX-License-Identifier: Apache-2.0
#include "daemon/record_checks.h"

#include <algorithm>
#include <cstring>

#include "base/shell_quoted.h"
#include "profile/branch_trace.h"

namespace crosstalk::daemon {
namespace {

constexpr std::uint32_t line_bytes = 64;
constexpr std::uint8_t most_events = 64;  // more than any program uses at a time

bool possible(AccessKind access, profile::AddressFrom from, std::uint8_t flags) {
  return access <= AccessKind::load_store && from <= profile::AddressFrom::hardware &&
         (flags & ~unsigned{profile::all_sample_flags}) == 0;
}

bool is_fraction(float value) { return value >= 0 && value <= 1; }

bool possible(const profile::WatchWord& word) {
  return word.length <= 8 && (word.length & (word.length - 1U)) == 0 && word.offset + word.length <= line_bytes &&
         is_fraction(word.probability);
}

}  // namespace

std::optional<StackView> stack_in(std::span<const std::byte> tail) {
  StackView view;
  if (tail.size() < sizeof view.slice) {
    return std::nullopt;
  }
  std::memcpy(&view.slice, tail.data(), sizeof view.slice);
  if (view.slice.bytes > tail.size() - sizeof view.slice) {
    return std::nullopt;
  }
  view.bytes = tail.subspan(sizeof view.slice, static_cast<std::size_t>(view.slice.bytes));
  return view;
}

bool possible(const profile::Sample& record) {
  const bool clock = record.source == profile::SourceKind::clock;
  return possible(record.access, record.from, record.flags) && record.source <= profile::SourceKind::counter &&
         record.weight_unit <= profile::WeightUnit::occurrences && record.event <= most_events &&
         (!clock || (record.weight_unit == profile::WeightUnit::ns && record.event == 0));
}

bool possible(const profile::WatchOpen& record) {
  return record.watch != 0 && record.words <= profile::max_watch_words && record.has_state <= 1 &&
         std::all_of(record.word, record.word + record.words,
                     [](const profile::WatchWord& word) { return possible(word); });
}

bool possible(const profile::LineProbe& record) {
  return record.watch != 0 && record.line % line_bytes == 0 && record.suspected <= 1 &&
         record.value_bytes <= sizeof record.value;
}

bool possible(const profile::WatchTrap& record) {
  return record.watch != 0 && record.word < profile::max_watch_words && record.write_only <= 1 &&
         record.has_frame <= 1 && record.has_state <= 1 && record.line % line_bytes == 0;
}

bool possible(const profile::WatchClose& record) {
  using profile::CloseReason;
  return record.watch != 0 && (record.reason == CloseReason::horizon || record.reason == CloseReason::full ||
                               record.reason == CloseReason::stopped);
}

bool possible(const profile::Block& record) {
  return record.kind == profile::BlockKind::heap || record.kind == profile::BlockKind::mapping;
}

bool possible(const profile::SharedMapping& record) {
  return record.bytes != 0 && record.begin + record.bytes > record.begin &&
         record.file_offset + record.bytes > record.file_offset;
}

bool possible(const profile::Lookahead& record, std::span<const std::byte> way) {
  return record.end >= profile::LookaheadEnd::whole && record.end <= profile::LookaheadEnd::room &&
         record.instructions <= profile::max_lookahead_instructions &&
         record.passages <= profile::max_lookahead_instructions &&
         profile::unpack_branch_trace({reinterpret_cast<const std::uint8_t*>(way.data()), way.size()}, record.begin);
}

bool possible(const profile::CounterReading& record, std::size_t tail_bytes) {
  return record.group != 0 && tail_bytes != 0 && tail_bytes % sizeof(std::uint64_t) == 0 &&
         tail_bytes <= profile::most_group_counters * sizeof(std::uint64_t) && record.running_ns <= record.enabled_ns;
}

bool possible(const profile::ModuleLoad& record) {
  return record.begin <= record.end && record.build_id_size <= sizeof record.build_id;
}

std::string text_of(std::span<const char> characters) {
  return {characters.begin(), std::find(characters.begin(), characters.end(), '\0')};
}

std::string text_of(std::span<const std::byte> bytes) {
  return text_of(std::span<const char>(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string code_of(std::span<const char> characters) {
  std::string code = text_of(characters);
  std::replace_if(
      code.begin(), code.end(), [](char c) { return (c < 'a' || c > 'z') && (c < '0' || c > '9'); }, '_');
  return code;
}

std::string shell_quoted(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    line += (line.empty() ? "" : " ") + crosstalk::shell_quoted(word);
  }
  return line;
}

}  // namespace crosstalk::daemon
