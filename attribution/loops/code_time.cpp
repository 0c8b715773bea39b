// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/code_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "attribution/loops/kernel_entry.h"
#include "attribution/program/own_code.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

constexpr double z95 = 1.959963984540054;

std::string module_path(const ProgramView& view, std::uint32_t file) {
  const std::string& path = view.spaces().files()[file].path;
  return path.empty() ? "[vdso]" : path;
}

std::uint32_t fnv1a(std::uint32_t hash, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ at[i]) * 16777619U;
  }
  return hash;
}

struct FunctionKey {
  std::string module, function;
  std::uint64_t begin = 0;
  auto operator<=>(const FunctionKey&) const = default;
};
struct LineKey {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
  auto operator<=>(const LineKey&) const = default;
};
struct LoopKey {
  std::uint32_t file = 0;
  std::uint64_t header = 0;
  auto operator<=>(const LoopKey&) const = default;
};
struct LoopSums {
  const symbolizer::FunctionLoops* function = nullptr;
  std::uint32_t index = 0;
  struct Thread {
    double inclusive = 0, self = 0, waiting = 0, kernel = 0;  // ns
    std::uint64_t samples = 0;
  };
  std::map<std::uint32_t, Thread> threads;
};
struct KernelSums {
  double ns = 0;
  std::uint64_t samples = 0;
};
struct FunctionSums {
  double ns = 0, kernel_ns = 0;
  std::uint64_t samples = 0;
  std::optional<ModulePlace> begin;
};

std::string nameless(const ProgramView& view, const std::string& module, std::uint64_t begin) {
  return begin == 0 ? "[unknown]" : nameless_function(module_name(view.processes(), module), begin);
}

/// The frame at a loop's header that contains the loop: the innermost one in the loop's own lines. Inlined calls of the
/// header (an iterator's comparison) are further in, in other lines.
const symbolizer::Frame& home_of(const symbolizer::Loop& loop, const symbolizer::CodeLocation& header) {
  for (const symbolizer::Frame& frame : header.frames) {
    const symbolizer::SourceLine& at = frame.source;
    if (at.file == loop.begin.file && loop.begin.line <= at.line && at.line <= loop.end.line) {
      return frame;
    }
  }
  return header.frames.front();
}

/// Sums by function, line and loop. Resolves each address of code once.
class CodeSums {
 public:
  CodeSums(const ProgramView& view, double uncovered_ns) : view_(view), uncovered_ns_(uncovered_ns) {}

  void add(const CodeTotal& total) {
    ns_ += total.ns;
    ns2_ += total.ns2;
    samples_ += total.samples;
    const Site& site = site_of(total);
    unknown_samples_ += site.unknown ? total.samples : 0;
    if (site.unknown && !total.place && total.address != 0) {  // 0: in the kernel, called from where is not known
      fileless_ns_[view_.threads()[total.thread.value].process.value] += total.ns;
    }
    site.function->ns += total.ns;
    site.function->samples += total.samples;
    if (total.in_kernel) {
      site.function->kernel_ns += total.ns;
      KernelSums& sums = kernel_[kernel_entry(view_, total)];
      sums.ns += total.ns;
      sums.samples += total.samples;
    }
    if (site.line != nullptr) {
      *site.line += total.ns;
    }
    bool innermost = true;
    for (LoopSums* loop : site.loops) {
      LoopSums::Thread& thread = loop->threads[total.thread.value];
      thread.inclusive += total.ns;
      thread.self += innermost ? total.ns : 0;
      thread.waiting += total.waiting_ns;
      thread.kernel += total.kernel_ns();
      thread.samples += total.samples;
      innermost = false;
    }
  }

  /// Moves time that an access took to the line of the access.
  void move(const AccessTime& time) {
    double* const to = line_at(view_.code().locate(time.access));
    if (to == nullptr) {
      return;
    }
    if (double* const from = line_at(view_.code().locate(time.interrupted))) {
      *from -= time.ns;
    }
    *to += time.ns;
  }

  [[nodiscard]] CodeTime finish(std::size_t max_rows);

 private:
  struct Site {
    FunctionSums* function = nullptr;
    double* line = nullptr;        // null: no line known
    std::vector<LoopSums*> loops;  // innermost first
    bool unknown = false;
  };

  const Site& site_of(const CodeTotal& total) {
    const std::uint32_t process = view_.threads()[total.thread.value].process.value;
    const auto key = total.place ? std::tuple{total.place->file + 1, std::uint32_t{0}, total.place->address}
                                 : std::tuple{std::uint32_t{0}, process, total.address};
    const auto [it, fresh] = sites_.try_emplace(key);
    if (fresh) {
      it->second = total.place ? in_module(*total.place) : elsewhere(process, total.address);
    }
    return it->second;
  }

  Site in_module(ModulePlace place) {
    Site site;
    const std::string module = module_path(view_, place.file);
    const symbolizer::CodeLocation& code = view_.code().locate(place);
    site.unknown = code.frames.empty() || code.frames.back().function.empty();
    FunctionKey key{module, site.unknown ? nameless(view_, module, code.function_begin) : code.frames.back().function,
                    code.function_begin};
    site.function = &functions_[key];
    if (code.function_begin != 0) {
      site.function->begin = ModulePlace{place.file, code.function_begin};
    }
    site.line = line_at(code);
    add_loops(place, site);
    return site;
  }

  /// The time of the program's own line there, of a library's if there is no other; null: no line is known.
  double* line_at(const symbolizer::CodeLocation& code) {
    if (code.frames.empty()) {
      return nullptr;
    }
    const auto own = std::find_if_not(code.frames.begin(), code.frames.end(), is_library_code);
    const symbolizer::Frame& frame = own != code.frames.end() ? *own : code.frames.front();
    return frame.source.line != 0 ? &lines_[{frame.source.file, frame.source.line, frame.function}] : nullptr;
  }

  void add_loops(ModulePlace place, Site& site) {
    const symbolizer::FunctionLoops* loops = view_.code().loops(place);
    if (loops == nullptr) {
      return;
    }
    const auto innermost = loops->innermost(place.address);
    std::uint32_t at = innermost.value_or(symbolizer::Loop::no_parent);
    // Parents come before children, so a chain that does not descend is damaged, and ends here.
    while (at < loops->loops.size()) {
      LoopSums& sums = loops_[{place.file, loops->loops[at].header}];
      sums.function = loops;
      sums.index = at;
      site.loops.push_back(&sums);
      const std::uint32_t parent = loops->loops[at].parent;
      if (parent >= at) {
        break;
      }
      at = parent;
    }
  }

  Site elsewhere(std::uint32_t process, std::uint64_t address) {
    Site site;
    // Uses the latest code at the address, because these sums have no times.
    const auto frame = view_.jit_frame({ProcessId{process}, UINT64_MAX}, address);
    site.unknown = !frame || frame->function.empty();
    site.function = &functions_[{site.unknown ? "" : "[JIT]", site.unknown ? "[unknown]" : frame->function, 0}];
    if (!site.unknown && frame->source.line != 0) {
      site.line = &lines_[{frame->source.file, frame->source.line, frame->function}];
    }
    return site;
  }

  void finish_functions(CodeTime& result, std::size_t max_rows);
  void finish_kernel(CodeTime& result);
  void finish_lines(CodeTime& result, std::size_t max_rows);
  void finish_loops(CodeTime& result);
  LoopRow loop_row(const LoopKey& key, const LoopSums& sums, std::uint32_t id);
  [[nodiscard]] std::map<LoopKey, std::uint32_t> loop_ids() const;

  const ProgramView& view_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Site> sites_;
  std::map<FunctionKey, FunctionSums> functions_;
  std::map<KernelEntry, KernelSums> kernel_;
  std::map<LineKey, double> lines_;
  std::map<LoopKey, LoopSums> loops_;
  [[nodiscard]] double whole_ns() const { return ns_ + uncovered_ns_; }

  double uncovered_ns_;
  double ns_ = 0, ns2_ = 0;  // of the samples: weights and their squares
  std::uint64_t samples_ = 0, unknown_samples_ = 0;
  std::map<std::uint32_t, double> fileless_ns_;  // by process
};

void CodeSums::finish_functions(CodeTime& result, std::size_t max_rows) {
  for (const auto& [key, sums] : functions_) {
    if (is_collector(key.module)) {
      result.collector_s += sums.ns / ns_per_s;
      continue;
    }
    FunctionRow row;
    row.module = key.module;
    row.function = key.function;
    row.self_s = sums.ns / ns_per_s;
    row.share = ns_ > 0 ? sums.ns / whole_ns() : 0;
    row.samples = sums.samples;
    row.kernel_s = sums.kernel_ns / ns_per_s;
    if (sums.begin) {
      const symbolizer::CodeLocation& code = view_.code().locate(*sums.begin);
      if (!code.frames.empty()) {
        row.file = code.frames.back().source.file;
        row.line = code.frames.back().source.line;
      }
    }
    result.functions.push_back(std::move(row));
  }
  std::stable_sort(result.functions.begin(), result.functions.end(),
                   [](const auto& a, const auto& b) { return a.self_s > b.self_s; });
  if (result.functions.size() > max_rows) {
    result.functions.resize(max_rows);
  }
}

void CodeSums::finish_kernel(CodeTime& result) {
  for (const auto& [entry, sums] : kernel_) {
    result.kernel.push_back(
        {entry.name, entry.system_call, sums.ns / ns_per_s, ns_ > 0 ? sums.ns / whole_ns() : 0, sums.samples, {}});
  }
  std::stable_sort(result.kernel.begin(), result.kernel.end(),
                   [](const auto& a, const auto& b) { return a.self_s > b.self_s; });
}

void CodeSums::finish_lines(CodeTime& result, std::size_t max_rows) {
  for (const auto& [key, ns] : lines_) {
    if (ns <= 0) {
      continue;  // all of it was moved to others
    }
    result.lines.push_back({key.file, key.line, key.function, ns / ns_per_s, ns_ > 0 ? ns / whole_ns() : 0});
  }
  std::stable_sort(result.lines.begin(), result.lines.end(),
                   [](const auto& a, const auto& b) { return a.self_s > b.self_s; });
  if (result.lines.size() > max_rows) {
    result.lines.resize(max_rows);
  }
}

std::map<LoopKey, std::uint32_t> CodeSums::loop_ids() const {
  std::vector<std::tuple<std::string, std::uint64_t, std::uint32_t>> order;  // module, header, file
  for (const auto& [key, sums] : loops_) {
    order.emplace_back(base_name(module_path(view_, key.file)), key.header, key.file);
  }
  std::sort(order.begin(), order.end());
  std::map<LoopKey, std::uint32_t> ids;
  std::set<std::uint32_t> taken;
  for (const auto& [module, header, file] : order) {
    std::uint32_t id = fnv1a(fnv1a(2166136261U, module.data(), module.size()), &header, sizeof header) & 0x7fffffffU;
    while (!taken.insert(id).second) {
      id = (id + 1) & 0x7fffffffU;
    }
    ids[{file, header}] = id;
  }
  return ids;
}

LoopRow CodeSums::loop_row(const LoopKey& key, const LoopSums& sums, std::uint32_t id) {
  const symbolizer::Loop& loop = sums.function->loops[sums.index];
  LoopRow row;
  row.id = id;
  row.depth = loop.depth;
  row.module_file = key.file;
  row.header = loop.header;
  row.file = loop.begin.file;
  row.line_begin = loop.begin.line;
  row.line_end = std::max(loop.begin.line, loop.end.line);
  row.module = module_path(view_, key.file);
  const symbolizer::CodeLocation& code = view_.code().locate({key.file, loop.header});
  if (!code.frames.empty()) {
    const symbolizer::Frame& home = home_of(loop, code);
    const auto own = std::find_if_not(code.frames.begin(), code.frames.end(), is_library_code);
    const bool elsewhere =
        is_library_code(home) && own != code.frames.end();  // inlined into the library that called it
    row.function = elsewhere ? own->function : home.function;
    row.file = row.file.empty() ? home.source.file : row.file;
    const std::string& whole = code.frames.back().function;
    row.compiled_into = whole == row.function ? "" : whole;
  }
  if (row.function.empty()) {
    row.function = nameless(view_, row.module, sums.function->function_begin);
  }
  for (const auto& [thread, ns] : sums.threads) {
    row.threads.push_back(
        {thread, ns.inclusive / ns_per_s, ns.self / ns_per_s, ns.waiting / ns_per_s, ns.kernel / ns_per_s});
    row.cpu_s += ns.inclusive / ns_per_s;
    row.self_s += ns.self / ns_per_s;
    row.kernel_s += ns.kernel / ns_per_s;
    row.samples += ns.samples;
  }
  row.share = ns_ > 0 ? std::min(1.0, row.cpu_s * ns_per_s / whole_ns()) : 0;
  row.share_ci95 = share_interval(row.share, ns2_ > 0 ? ns_ * ns_ / ns2_ : 0);
  return row;
}

void CodeSums::finish_loops(CodeTime& result) {
  const std::map<LoopKey, std::uint32_t> ids = loop_ids();
  for (const auto& [key, sums] : loops_) {
    if (is_collector(module_path(view_, key.file))) {
      continue;
    }
    LoopRow row = loop_row(key, sums, ids.at(key));
    const std::uint32_t parent = sums.function->loops[sums.index].parent;
    if (parent < sums.function->loops.size()) {
      const auto it = ids.find({key.file, sums.function->loops[parent].header});
      if (it != ids.end() && it->second != row.id) {
        row.parent = it->second;
      }
    }
    result.loops.push_back(std::move(row));
  }
  std::stable_sort(result.loops.begin(), result.loops.end(), [](const LoopRow& a, const LoopRow& b) {
    return std::tuple(-a.share, -a.self_s, std::string_view(a.module), a.id) <
           std::tuple(-b.share, -b.self_s, std::string_view(b.module), b.id);
  });
}

CodeTime CodeSums::finish(std::size_t max_rows) {
  CodeTime result;
  finish_functions(result, max_rows);
  finish_kernel(result);
  finish_lines(result, max_rows);
  finish_loops(result);
  for (const auto& [process, ns] : fileless_ns_) {
    result.fileless_s[process] = ns / ns_per_s;
  }
  if (samples_ > 0) {
    result.unknown_frames = static_cast<double>(unknown_samples_) / static_cast<double>(samples_);
  }
  return result;
}

}  // namespace

Interval share_interval(double share, double samples) {
  if (!(samples > 0)) {
    return {0, 1};
  }
  const double p = std::clamp(share, 0.0, 1.0);
  const double z2 = z95 * z95;
  const double centre = (p + z2 / (2 * samples)) / (1 + z2 / samples);
  const double half = z95 / (1 + z2 / samples) * std::sqrt(p * (1 - p) / samples + z2 / (4 * samples * samples));
  return {std::clamp(centre - half, 0.0, p), std::clamp(centre + half, p, 1.0)};
}

void forget_times(CodeTime& time) {
  for (LoopRow& row : time.loops) {
    row.cpu_s = row.self_s = row.kernel_s = 0;
    for (LoopThread& thread : row.threads) {
      thread.cpu_s = thread.self_s = thread.waiting_s = thread.kernel_s = 0;
    }
  }
  for (FunctionRow& row : time.functions) {
    row.self_s = row.kernel_s = 0;
  }
  for (CodeLineRow& row : time.lines) {
    row.self_s = 0;
  }
  for (KernelRow& row : time.kernel) {
    row.self_s = 0;
  }
  time.collector_s = 0;
  time.fileless_s.clear();
}

std::vector<CodeTotal> code_totals(std::vector<CodeTotal> totals, const ProgramView& view) {
  for (CodeTotal& total : totals) {
    if (total.in_kernel && total.place && !ends_system_call(view, {total.place->file, total.place->address + 1})) {
      total.system_call = false;
      ++total.place->address;
      ++total.address;
    }
  }
  return totals;
}

CodeTime code_time(std::span<const CodeTotal> totals, const ProgramView& view, std::size_t max_rows, double uncovered_s,
                   std::span<const AccessTime> accesses) {
  CodeSums sums(view, uncovered_s * ns_per_s);
  for (const CodeTotal& total : totals) {
    if (view.knows(total.thread)) {
      sums.add(total);
    }
  }
  for (const AccessTime& time : accesses) {
    sums.move(time);
  }
  return sums.finish(max_rows);
}

}  // namespace crosstalk::attribution
