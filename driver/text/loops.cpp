// SPDX-License-Identifier: Apache-2.0
// CPU time by loop, indented by nesting, and by function.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attribution/program/program_names.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::LoopRow;

constexpr int share_columns = 8;
constexpr int loop_time_columns = 9;

/// A narrow terminal loses the bars first.
int bar_columns(const Canvas& canvas) { return canvas.width() >= 90 ? 16 : canvas.width() >= 75 ? 8 : 0; }

/// Returns the number of columns before a loop's name.
int label_offset(const Canvas& canvas) {
  const int bars = bar_columns(canvas);
  return 2 + share_columns + 2 + (bars == 0 ? 0 : bars + 2) + 2 * (loop_time_columns + 2);
}

/// Returns a loop's source lines; if unknown, its address in the file, which tells loops of one function apart.
std::string lines_text(const Analysis& analysis, const LoopRow& loop) {
  const std::string name = loop.file.substr(loop.file.rfind('/') + 1);
  if (name.empty() || loop.line_begin == 0) {
    const std::string module = attribution::module_name(analysis.processes, loop.module);
    return loop.header == 0 || module.empty() ? name : fmt::format("{}+0x{:x}", module, loop.header);
  }
  return source_text(loop.file, loop.line_begin, loop.line_end);
}

/// The loops that are drawn, each under the nearest drawn loop around it.
class Tree {
 public:
  Tree(const std::vector<LoopRow>& loops, std::size_t most) {
    for (const LoopRow& loop : loops) {
      by_id_[loop.id] = &loop;
    }
    for (std::size_t i = 0; i < std::min(most, loops.size()); ++i) {
      shown_.insert(loops[i].id);
    }
    for (std::size_t i = 0; i < std::min(most, loops.size()); ++i) {
      children_[drawn_parent(loops[i])].push_back(&loops[i]);  // in order of share
    }
  }

  template <class Visit>
  void visit(const Visit& draw) const {
    visit_under(no_loop, 0, draw);
  }

 private:
  static constexpr std::int64_t no_loop = -1;

  std::int64_t drawn_parent(const LoopRow& loop) const {
    std::set<std::uint32_t> passed{loop.id};  // a damaged profile may hold a cycle
    for (auto parent = loop.parent; parent && passed.insert(*parent).second;) {
      if (shown_.contains(*parent)) {
        return *parent;
      }
      const auto found = by_id_.find(*parent);
      parent = found == by_id_.end() ? std::nullopt : found->second->parent;
    }
    return no_loop;
  }

  template <class Visit>
  void visit_under(std::int64_t parent, int depth, const Visit& draw) const {
    const auto found = children_.find(parent);
    if (found == children_.end()) {
      return;
    }
    for (const LoopRow* loop : found->second) {
      draw(*loop, depth);
      visit_under(loop->id, depth + 1, draw);
    }
  }

  std::map<std::uint32_t, const LoopRow*> by_id_;
  std::set<std::uint32_t> shown_;
  std::map<std::int64_t, std::vector<const LoopRow*>> children_;
};

bool rests_on_few(std::uint64_t samples) { return samples != 0 && samples < attribution::few_samples; }

void explain_few(Canvas& canvas, bool any) {
  if (any) {
    canvas.line(
        canvas.colored(fmt::format("  ~: rests on fewer than {} samples", attribution::few_samples), Hue::faint));
  }
}

/// Formats the time columns; without `timed`, times are unknown.
std::string time_columns_of(const Canvas& canvas, double share, double total_s, double self_s, bool with_total,
                            bool timed, std::uint64_t samples) {
  const int bars = bar_columns(canvas);
  const auto time = [timed](double seconds) {
    return pad_left(timed ? seconds_text(seconds) : "-", loop_time_columns);
  };
  return "  " + pad_left((rests_on_few(samples) ? "~" : "") + percent_text(share), share_columns) + "  " +
         (bars == 0 ? "" : canvas.colored(bar(share, bars, canvas.style().charset), Hue::true_sharing) + "  ") +
         (with_total ? time(total_s) + "  " : "") + time(self_s) + "  ";
}

}  // namespace

void draw_loops(Canvas& canvas, const Analysis& analysis, std::size_t most) {
  const bool timed = analysis.shares_of.empty();
  canvas.heading("Loops", timed ? "share of CPU time; a loop's time holds its inner loops'"
                                : "share of " + analysis.shares_of + "; a loop's holds its inner loops'");
  if (analysis.loops.empty()) {
    canvas.paragraph("  ", "No sample fell into a loop whose code is known.");
    return;
  }
  const int bars = bar_columns(canvas);
  canvas.line(canvas.colored("  " + pad_left("share", share_columns) + "  " +
                                 (bars == 0 ? "" : std::string(static_cast<std::size_t>(bars) + 2, ' ')) +
                                 pad_left("time", loop_time_columns) + "  " + pad_left("own", loop_time_columns) +
                                 "  loop",
                             Hue::faint));
  const Tree tree(analysis.loops, most);
  bool any_few = false;
  tree.visit([&](const LoopRow& loop, int depth) {
    any_few = any_few || rests_on_few(loop.samples);
    const int indent = std::min(2 * depth, 12);
    const std::string place = lines_text(analysis, loop);
    canvas.line(time_columns_of(canvas, loop.share, loop.cpu_s, loop.self_s, true, timed, loop.samples) +
                std::string(static_cast<std::size_t>(indent), ' ') +
                place_cell(canvas, loop.function, place, canvas.width() - label_offset(canvas) - indent));
  });
  explain_few(canvas, any_few);
  draw_more(canvas, analysis.loops.size(), most, ": crosstalk report --view loops");
}

namespace {

std::string rate_text(const attribution::Rate& rate) {
  return rate.per_s ? count_text(*rate.per_s) + (rate.lookaheads != 0 ? "*" : "") : "-";
}

bool rests_on_lookaheads(const attribution::LoopRates& rates) {
  return rates.instructions.lookaheads + rates.flops.lookaheads + rates.loads.lookaheads + rates.stores.lookaheads +
             rates.bytes.lookaheads !=
         0;
}

/// Formats the "+-" column: half of the 95 % interval.
std::string doubt_text(const attribution::Rate& rate) {
  if (!rate.per_s || !rate.ci95 || *rate.per_s <= 0) {
    return "";
  }
  return percent_text((rate.ci95->high - rate.ci95->low) / 2 / *rate.per_s);
}

}  // namespace

void draw_rates(Canvas& canvas, const Analysis& analysis, std::size_t most) {
  constexpr int columns = 8;
  constexpr int least_label = 20;
  std::vector<const LoopRow*> shown;
  for (std::size_t i = 0; i < std::min(most, analysis.loops.size()); ++i) {
    if (analysis.loops[i].rates.iterations.per_s) {
      shown.push_back(&analysis.loops[i]);
    }
  }
  if (shown.empty()) {
    return;
  }
  canvas.heading("Rates of loops", "per second of CPU time in them; +-: half of the 95 % interval");
  // A narrow terminal drops columns; wider ones and the other formats show them.
  constexpr std::array<const char*, 7> names = {"iter/s", "+-", "instr/s", "flop/s", "load/s", "store/s", "byte/s"};
  const auto room = static_cast<std::size_t>((canvas.width() - 2 - least_label) / (columns + 2));
  const std::size_t figures = std::min(room, names.size());
  std::string header = "  ";
  for (std::size_t i = 0; i < figures; ++i) {
    header += pad_left(names[i], columns) + "  ";
  }
  canvas.line(canvas.colored(header + "loop", Hue::faint));
  for (const LoopRow* loop : shown) {
    const attribution::LoopRates& rates = loop->rates;
    const std::array<std::string, names.size()> texts = {rate_text(rates.iterations),   doubt_text(rates.iterations),
                                                         rate_text(rates.instructions), rate_text(rates.flops),
                                                         rate_text(rates.loads),        rate_text(rates.stores),
                                                         rate_text(rates.bytes)};
    std::string row = "  ";
    for (std::size_t i = 0; i < figures; ++i) {
      row += pad_left(texts[i], columns) + "  ";
    }
    canvas.line(row + place_cell(canvas, loop->function, lines_text(analysis, *loop),
                                 canvas.width() - 2 - static_cast<int>(figures) * (columns + 2)));
  }
  if (std::any_of(shown.begin(), shown.end(), [](const LoopRow* loop) { return rests_on_lookaheads(loop->rates); })) {
    canvas.line(canvas.colored(
        "  *: from iterations that were interpreted at some samples; includes the functions they call", Hue::faint));
  }
}

void draw_functions(Canvas& canvas, const Analysis& analysis, std::size_t most) {
  if (analysis.functions.empty()) {
    return;
  }
  const bool timed = analysis.shares_of.empty();
  canvas.heading("Functions",
                 "their own " +
                     (timed ? std::string("CPU time, without that") : analysis.shares_of + ", without those") +
                     " of what they call");
  const int room = canvas.width() - (label_offset(canvas) - loop_time_columns - 2);
  bool any_few = false;
  for (std::size_t i = 0; i < std::min(most, analysis.functions.size()); ++i) {
    const attribution::FunctionRow& row = analysis.functions[i];
    const std::string module = attribution::module_name(analysis.processes, row.module);
    const std::string source = source_text(row.file, row.line);
    any_few = any_few || rests_on_few(row.samples);
    canvas.line(
        time_columns_of(canvas, row.share, 0, row.self_s, false, timed, row.samples) +
        place_cell(canvas, row.function, source.empty() && !module.empty() ? "[" + module + "]" : source, room));
  }
  explain_few(canvas, any_few);
  if (const double own_s = analysis.sampling.stand_ins_s; own_s > 0) {
    canvas.paragraph("  ", fmt::format("Apart from these, crosstalk's wrappers of malloc() and other functions took "
                                       "{}.",
                                       seconds_text(own_s)));
  }
}

namespace {

/// Formats the most frequent callers: "main()  a.c:10, step()  b.c:3".
std::string callers_text(const std::vector<attribution::CallerRow>& callers) {
  constexpr std::size_t most = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, callers.size()); ++i) {
    const std::string at = source_text(callers[i].file, callers[i].line);
    text += (i == 0 ? "" : ", ") + callers[i].function + (at.empty() ? "" : " " + at);
  }
  return text + (callers.size() > most ? ", ..." : "");
}

}  // namespace

void draw_kernel(Canvas& canvas, const Analysis& analysis, std::size_t most) {
  if (analysis.kernel.empty()) {
    return;
  }
  constexpr int name_columns = 16;
  canvas.heading("In the kernel", "by system call, and the program's own function that calls it");
  const int room = canvas.width() - (label_offset(canvas) - loop_time_columns - 2) - name_columns - 2;
  bool any_few = false;
  for (std::size_t i = 0; i < std::min(most, analysis.kernel.size()); ++i) {
    const attribution::KernelRow& row = analysis.kernel[i];
    const bool named = row.name.front() != '[';
    any_few = any_few || rests_on_few(row.samples);
    canvas.line(time_columns_of(canvas, row.share, 0, row.self_s, false, analysis.shares_of.empty(), row.samples) +
                canvas.cell(named ? row.name : row.name.substr(1, row.name.size() - 2), name_columns) + "  " +
                canvas.cell(callers_text(row.callers), room));
  }
  explain_few(canvas, any_few);
}

}  // namespace crosstalk::driver
