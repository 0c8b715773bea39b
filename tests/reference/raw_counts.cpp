// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/raw_counts.h"

#include <sstream>

namespace crosstalk::reference {
namespace {

constexpr std::string_view heading = "crosstalk-reference-raw 1";

constexpr std::string_view error_word = "error ";

bool read_code(std::istream& line, RawCode& code) {
  return static_cast<bool>(line >> code.file >> code.offset >> code.executions >> code.flops >> code.loads >>
                           code.stores >> code.load_bytes >> code.store_bytes);
}

bool read_fact(const std::string& word, std::istream& line, RawCounts& counts) {
  if (word == "run") {
    return static_cast<bool>(line >> counts.threads >> counts.stolen_turns >> counts.quantum >> counts.seed);
  }
  if (word == "file") {
    return static_cast<bool>(std::getline(line >> std::ws, counts.files.emplace_back()));
  }
  if (word == "segment") {
    auto& segment = counts.segments.emplace_back();
    return static_cast<bool>(line >> segment.file >> segment.begin >> segment.end >> segment.offset) &&
           segment.file < counts.files.size();
  }
  if (word == "code") {
    return read_code(line, counts.codes.emplace_back());
  }
  if (word == "code_pair") {
    auto& [pair, sum] = counts.by_code.emplace_back();
    return static_cast<bool>(line >> pair.producer >> pair.consumer >> pair.producer_code >> pair.consumer_code >>
                             sum.true_sharing >> sum.false_sharing) &&
           pair.producer_code < counts.codes.size() && pair.consumer_code < counts.codes.size();
  }
  if (word == "data_pair") {
    auto& [pair, sum] = counts.by_data.emplace_back();
    return static_cast<bool>(line >> pair.address >> pair.block >> pair.producer >> pair.consumer >> sum.true_sharing >>
                             sum.false_sharing) &&
           pair.block <= counts.blocks.size();
  }
  if (word == "invalidations") {
    auto& [threads, count] = counts.invalidations.emplace_back();
    return static_cast<bool>(line >> threads.first >> threads.second >> count);
  }
  if (word == "block") {
    auto& block = counts.blocks.emplace_back();
    return static_cast<bool>(line >> block.begin >> block.bytes >> block.caller);
  }
  return false;
}

}  // namespace

RawCounts raw_counts(const Counter& counter, const CodeTable& codes, const ModuleTable& modules) {
  RawCounts raw;
  raw.files = modules.files();
  raw.segments = modules.history();
  const auto executions = codes.executions();
  for (const Code& code : codes.codes()) {
    const std::uint64_t executed = executions[code.index];
    raw.codes.push_back({code.file, code.offset, executed, executed * code.facts.flops, code.loads, code.stores,
                         code.load_bytes, code.store_bytes});
  }
  for (const auto& [pair, counts] : counter.by_code()) {
    raw.by_code.push_back({pair, counts});
  }
  for (const auto& [pair, counts] : counter.by_data()) {
    raw.by_data.push_back({pair, counts});
  }
  for (const auto& [threads, count] : counter.invalidations()) {
    raw.invalidations.push_back({threads, count});
  }
  raw.blocks = counter.blocks();
  return raw;
}

void write(std::ostream& out, const RawCounts& counts) {
  out << heading << '\n'
      << "run " << counts.threads << ' ' << counts.stolen_turns << ' ' << counts.quantum << ' ' << counts.seed << '\n';
  for (const std::string& file : counts.files) {
    out << "file " << file << '\n';
  }
  for (const Segment& segment : counts.segments) {
    out << "segment " << segment.file << ' ' << segment.begin << ' ' << segment.end << ' ' << segment.offset << '\n';
  }
  for (const RawCode& code : counts.codes) {
    out << "code " << code.file << ' ' << code.offset << ' ' << code.executions << ' ' << code.flops << ' '
        << code.loads << ' ' << code.stores << ' ' << code.load_bytes << ' ' << code.store_bytes << '\n';
  }
  for (const auto& [pair, sum] : counts.by_code) {
    out << "code_pair " << pair.producer << ' ' << pair.consumer << ' ' << pair.producer_code << ' '
        << pair.consumer_code << ' ' << sum.true_sharing << ' ' << sum.false_sharing << '\n';
  }
  for (const HeapBlock& block : counts.blocks) {
    out << "block " << block.begin << ' ' << block.bytes << ' ' << block.caller << '\n';
  }
  for (const auto& [pair, sum] : counts.by_data) {
    out << "data_pair " << pair.address << ' ' << pair.block << ' ' << pair.producer << ' ' << pair.consumer << ' '
        << sum.true_sharing << ' ' << sum.false_sharing << '\n';
  }
  for (const auto& [threads, count] : counts.invalidations) {
    out << "invalidations " << threads.first << ' ' << threads.second << ' ' << count << '\n';
  }
  out << "end\n";
}

void write_error(std::ostream& out, const std::string& message) { out << error_word << message << '\n'; }

Result<RawCounts> read_raw_counts(std::istream& in) {
  std::string text;
  std::getline(in, text);
  if (text.starts_with(error_word)) {
    return fail(ErrorCode::unsupported, text.substr(error_word.size()));
  }
  if (text != heading) {
    return fail(ErrorCode::corrupt, "raw counts begin with '" + text.substr(0, 40) + "', not with '" +
                                        std::string(heading) + "'; run the reference again");
  }
  RawCounts counts;
  for (std::size_t number = 2; std::getline(in, text); ++number) {
    if (text == "end") {
      return counts;
    }
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (!read_fact(word, line, counts)) {
      return fail(ErrorCode::corrupt, "raw counts: line " + std::to_string(number) + " is '" + text.substr(0, 60) +
                                          "', which is no fact; run the reference again");
    }
  }
  return fail(ErrorCode::corrupt, "raw counts have no end: the run was cut short; run the reference again");
}

}  // namespace crosstalk::reference
