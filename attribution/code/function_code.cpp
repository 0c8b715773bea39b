// SPDX-License-Identifier: Apache-2.0
#include "attribution/code/function_code.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "attribution/estimate/amounts.h"
#include "attribution/samples/sample_digest.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

/// The function's name; without one, its file and address.
std::string name_of(const ProgramView& view, const symbolizer::CodeLocation& code, const CodeCandidate& facts) {
  if (!code.frames.empty() && !code.frames.back().function.empty()) {
    return code.frames.back().function;
  }
  return nameless_function(module_name(view.processes(), facts.module), facts.begin);
}

/// The reason why the code at `place` cannot be shown; empty: it may be.
std::string refusal_of(const ProgramView& view, const symbolizer::ModuleSpec& file, ModulePlace place, bool known) {
  if (file.is_vdso) {
    return "it is the kernel's own code, which is in no file";
  }
  return known && !view.code().bytes_at(place).empty()
             ? std::string()
             : "its code cannot be had: " + view.code().listing(place).missing;
}

void add_names(const symbolizer::CodeLocation& code, CodeCandidate& facts) {
  for (const symbolizer::Frame& frame : code.frames) {
    if (!frame.function.empty()) {
      facts.names.insert(frame.function);
    }
    if (!frame.source.file.empty()) {
      facts.files.insert(frame.source.file);
    }
  }
}

/// The instruction that holds `address`; nothing between instructions.
std::optional<std::size_t> holding(const FunctionCode& code, std::uint64_t address) {
  const auto after = std::upper_bound(code.instructions.begin(), code.instructions.end(), address,
                                      [](std::uint64_t at, const InstructionRow& row) { return at < row.address; });
  return after == code.instructions.begin()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(after - code.instructions.begin()) - 1);
}

}  // namespace

void InstructionFigures::add(const profile::SampleRow& sample) {
  if (!view_.knows(sample.thread) || !sample.is_of_time()) {
    return;
  }
  const auto ns = static_cast<double>(sample.time_weight_ns());
  ns_ += ns;
  const bool in_kernel = (sample.flags & profile::sample_in_kernel) != 0;
  // Kernel time belongs to the system call; the recorded ip is behind it.
  const std::uint64_t ip = is_of_access(sample)          ? sample.access_ip
                           : in_kernel && sample.ip != 0 ? sample.ip - 1
                                                         : sample.ip;
  const Moment moment = view_.moment(sample.thread, sample.time_ns);
  if (const auto place = view_.spaces().find(moment, ip)) {
    times_[*place] += ns;
  } else {
    elsewhere_.try_emplace({moment.process.value, ip}, Elsewhere{sample.time_ns}).first->second.ns += ns;
  }
}

std::optional<ModulePlace> InstructionFigures::place_of(const AccessPoint& point) const {
  return view_.spaces().find(view_.moment(point.thread, point.time_ns), point.instruction);
}

InstructionFigures::Function& InstructionFigures::function_of(ModulePlace place) {
  Function*& known = function_of_[place];
  if (known != nullptr) {
    return *known;
  }
  const symbolizer::CodeLocation& code = view_.code().locate(place);
  Function& function = functions_[{place.file, code.function_begin}];
  if (function.facts.module.empty()) {
    const symbolizer::ModuleSpec& file = view_.spaces().files()[place.file];
    function.begin = {place.file, code.function_begin != 0 ? code.function_begin : place.address};
    function.facts.module = file.path.empty() ? "[vdso]" : file.path;
    function.facts.begin = code.function_begin;
    function.facts.end = code.function_end;
    function.facts.function = name_of(view_, code, function.facts);
    function.facts.names.insert(function.facts.function);
    function.facts.refusal = refusal_of(view_, file, function.begin, code.function_begin != 0);
  }
  add_names(code, function.facts);
  known = &function;
  return function;
}

InstructionFigures::Function& InstructionFigures::function_without_file(Moment moment, std::uint64_t address) {
  const std::vector<symbolizer::Frame> frames = view_.frames(moment, address);
  const std::string name = frames.empty() ? "[unknown]" : frames.front().function;
  Function& function = without_file_[name];
  function.facts.function = name;
  function.facts.names = {name};
  function.facts.refusal = "its code was made while the program ran (JIT) and is in no file";
  return function;
}

void InstructionFigures::gather_functions() {
  for (const auto& [place, ns] : times_) {
    Function& function = function_of(place);
    function.ns += ns;
    function.times[place.address] += ns;
  }
  for (const auto& [place, seen] : elsewhere_) {
    function_without_file({ProcessId{place.first}, seen.time_ns}, place.second).ns += seen.ns;
  }
}

/// Charges a communication to each function at its ends, once if it is the same function.
void InstructionFigures::charge(std::span<const Contribution> contributions, const Expansion& expansion) {
  for (const Contribution& contribution : contributions) {
    const double cost = attribution::cost_s(contribution, expansion.strata);
    const Function* last = nullptr;
    for (const AccessPoint* point : {&contribution.seen->consumer, &contribution.seen->producer}) {
      if (const auto place = place_of(*point)) {
        Function& function = function_of(*place);
        function.cost_s += &function == last ? 0 : cost;
        last = &function;
      }
    }
  }
}

std::vector<InstructionFigures::Function*> InstructionFigures::by_weight() {
  std::vector<Function*> order;
  for (auto& [key, function] : functions_) {
    order.push_back(&function);
  }
  for (auto& [key, function] : without_file_) {
    order.push_back(&function);
  }
  const auto weight = [](const Function* function) { return std::max(function->cost_s * ns_per_s, function->ns); };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Function* a, const Function* b) { return weight(a) > weight(b); });
  return order;
}

FunctionCode InstructionFigures::code_of(const Function& function, const symbolizer::CodeListing& listing,
                                         double whole_ns) const {
  FunctionCode code;
  code.function = function.facts.function;
  code.module = function.facts.module;
  code.begin = function.begin.address;
  code.cost_s = function.cost_s;
  code.share = whole_ns > 0 ? function.ns / whole_ns : 0;
  for (const auto& instruction : listing.instructions) {
    InstructionRow& row = code.instructions.emplace_back();
    row.address = instruction.address;
    row.text = instruction.text;
    row.frames = view_.code().locate({function.begin.file, instruction.address}).frames;
  }
  for (const auto& [address, ns] : function.times) {
    if (const auto row = holding(code, address); row && whole_ns > 0) {
      code.instructions[*row].share += ns / whole_ns;
    }
  }
  return code;
}

Result<std::vector<FunctionCode>> InstructionFigures::listed(std::vector<Function*>& chosen, const CodeWanted& wanted,
                                                             double whole_ns) const {
  std::vector<FunctionCode> result;
  std::vector<Function*> kept;
  std::string missing;
  for (Function* function : chosen) {
    const symbolizer::CodeListing listing = view_.code().listing(function->begin);
    if (listing.instructions.empty()) {
      missing = missing.empty() ? function->facts.function + ": its code cannot be had: " + listing.missing : missing;
      continue;
    }
    FunctionCode code = code_of(*function, listing, whole_ns);
    if (wanted.line == 0 || std::any_of(code.instructions.begin(), code.instructions.end(),
                                        [&](const InstructionRow& row) { return is_of_line(row.frames, wanted); })) {
      result.push_back(std::move(code));
      kept.push_back(function);
    }
  }
  chosen = std::move(kept);
  if (!result.empty()) {
    return result;
  }
  return fail(ErrorCode::not_found, !missing.empty() ? missing
                                                     : wanted.name + ":" + std::to_string(wanted.line) +
                                                           ": no instruction of a sampled function is of that line");
}

void InstructionFigures::fill_amounts(const std::vector<Function*>& chosen, std::span<const Contribution> contributions,
                                      const Expansion& expansion, std::vector<FunctionCode>& code) {
  std::map<const Function*, std::size_t> index;
  for (const Function* function : chosen) {
    index.emplace(function, index.size());
  }
  using Slot = std::tuple<std::size_t, std::size_t, bool>;  // function, instruction, as consumer
  std::map<Slot, PairAmounts> sums;
  for (const Contribution& contribution : contributions) {
    const Summand summand = summand_of(contribution, expansion, attribution::cost_s(contribution, expansion.strata));
    for (const bool consumer : {true, false}) {
      const auto place = place_of(consumer ? contribution.seen->consumer : contribution.seen->producer);
      const auto function = place ? index.find(&function_of(*place)) : index.end();
      const auto row = function == index.end() ? std::nullopt : holding(code[function->second], place->address);
      if (row) {
        sums.try_emplace({function->second, *row, consumer}, expansion, thread_pair).first->second.add(summand);
      }
    }
  }
  for (auto& [slot, amounts] : sums) {
    const auto& [function, row, consumer] = slot;
    PairAmounts::Result amount = amounts.finish();
    InstructionRow& into = code[function].instructions[row];
    (consumer ? into.cells : into.produced) = std::move(amount.cells);
    if (consumer) {
      into.true_sharing = std::move(amount.true_sharing);
      into.false_sharing = std::move(amount.false_sharing);
    }
  }
}

Result<std::vector<FunctionCode>> InstructionFigures::list(const CodeWanted& wanted,
                                                           std::span<const Contribution> contributions,
                                                           const Expansion& expansion, double uncovered_s) {
  gather_functions();
  charge(contributions, expansion);
  const std::vector<Function*> order = by_weight();
  std::vector<CodeCandidate> candidates;
  candidates.reserve(order.size());
  for (const Function* function : order) {
    candidates.push_back(function->facts);
  }
  const auto indices = choose_code(candidates, wanted);
  if (!indices) {
    return tl::unexpected<Error>(indices.error());
  }
  std::vector<Function*> chosen;
  chosen.reserve(indices->size());
  for (const std::size_t i : *indices) {
    chosen.push_back(order[i]);
  }
  auto code = listed(chosen, wanted, ns_ + uncovered_s * ns_per_s);
  if (code) {
    fill_amounts(chosen, contributions, expansion, *code);
  }
  return code;
}

}  // namespace crosstalk::attribution
