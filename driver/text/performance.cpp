// SPDX-License-Identifier: Apache-2.0
#include "driver/text/performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "driver/text/report.h"
#include "driver/words/busy_words.h"

namespace crosstalk::driver {
namespace {

using attribution::LoopFigures;
using attribution::LoopRow;
using attribution::LoopThread;
using models::Unit;

constexpr int name_columns = 18;
constexpr int amount_columns = 10;
constexpr double line_bytes = 64;

/// A row of the table: an amount per second of one thread's CPU time.
struct Amount {
  std::string name;
  std::optional<double> per_s;
  std::string unknown;  // why it is unknown
};

Amount of_rate(const char* name, const attribution::Rate& rate) { return {name, rate.per_s, rate.unknown}; }

/// Returns the bytes that pass between a level and those nearer to the core; divided by `divisor`, lines.
Amount of_unit(const LoopFigures& figures, Unit unit, const char* what, double divisor) {
  const auto& per_s = figures.per_s[unit];
  return {std::string(models::unit_in_words(unit)) + what, per_s ? std::optional(*per_s / divisor) : std::nullopt,
          figures.reasons[unit].empty() ? "the machine is not calibrated" : figures.reasons[unit]};
}

std::vector<Amount> amounts_of(const LoopRow& loop, const LoopFigures& figures) {
  std::vector<Amount> amounts = {of_rate("flops", loop.rates.flops), of_rate("instructions", loop.rates.instructions),
                                 of_rate("loads", loop.rates.loads), of_rate("stores", loop.rates.stores),
                                 of_rate("L1D, bytes", loop.rates.bytes)};
  for (const Unit unit : {Unit::l2, Unit::l3, Unit::memory}) {
    if (figures.busy[unit].exists) {
      amounts.push_back(of_unit(figures, unit, ", lines", line_bytes));
    }
  }
  amounts.push_back(of_unit(figures, Unit::memory, ", bytes", 1));
  return amounts;
}

std::string columns(const std::string& name, const std::array<std::string, 3>& values) {
  std::string line = "      " + pad_right(name, name_columns);
  for (const std::string& value : values) {
    line += "  " + pad_left(value, amount_columns);
  }
  return line;
}

/// Formats "not known: flops, loads (it calls functions); L2, lines (...)", grouped by reason.
std::string unknown_in_words(const std::vector<Amount>& amounts) {
  std::vector<std::pair<std::string, std::string>> by_reason;
  for (const Amount& amount : amounts) {
    if (amount.per_s) {
      continue;
    }
    auto found =
        std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& one) { return one.first == amount.unknown; });
    if (found == by_reason.end()) {
      by_reason.emplace_back(amount.unknown, amount.name);
    } else {
      found->second += "; " + amount.name;
    }
  }
  std::string text;
  for (const auto& [reason, names] : by_reason) {
    text += (text.empty() ? "" : "; ") + names + (reason.empty() ? "" : " (" + reason + ")");
  }
  return text;
}

const char* width_word(models::Width width) {
  static constexpr std::array<const char*, 4> words = {"scalar", "SSE", "AVX", "AVX-512"};
  return words[static_cast<std::size_t>(width)];
}

/// Formats "AVX double multiply-adds 80.0 %, scalar double additions 20.0 %", greatest first.
std::string kinds_in_words(const models::FlopMix& mix) {
  static constexpr std::array<const char*, models::FlopMix::precisions> precisions = {"double", "single"};
  static constexpr std::array<const char*, models::FlopMix::operations> operations = {"additions", "multiplications",
                                                                                      "multiply-adds"};
  std::vector<std::pair<double, std::string>> kinds = {{mix.other, "divisions, roots and the like"}};
  for (std::size_t width = 0; width < models::FlopMix::widths; ++width) {
    for (std::size_t precision = 0; precision < precisions.size(); ++precision) {
      for (std::size_t operation = 0; operation < operations.size(); ++operation) {
        const double flops =
            mix.of[models::FlopMix::index(static_cast<models::Width>(width), static_cast<models::Precision>(precision),
                                          static_cast<models::Operation>(operation))];
        kinds.emplace_back(flops, std::string(width_word(static_cast<models::Width>(width))) + " " +
                                      precisions[precision] + " " + operations[operation]);
      }
    }
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [flops, name] : kinds) {
    if (flops > 0) {
      text += (text.empty() ? "" : ", ") + name + " " + percent_text(flops / mix.total());
    }
  }
  return text;
}

/// Formats the figures other than amounts: shares, and figures for each iteration.
std::string shape_in_words(const LoopFigures& figures) {
  std::string text;
  const auto add = [&text](const char* name, const std::string& value) {
    text += value.empty() ? "" : fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  const auto share = [](const std::optional<double>& value) { return value ? percent_text(*value) : std::string(); };
  add("SIMD", share(figures.packed));
  add("multiply-adds", share(figures.multiply_adds));
  add("bytes an access", figures.access_bytes ? fmt::format("{:.3g}", *figures.access_bytes) : "");
  add("gathers an iteration", figures.gathers > 0 ? count_text(figures.gathers) : "");
  add("scatters an iteration", figures.scatters > 0 ? count_text(figures.scatters) : "");
  if (figures.bytes_to_flops && std::isfinite(*figures.bytes_to_flops)) {
    add("bytes/flop", fmt::format("{:.3g}", *figures.bytes_to_flops) +
                          (figures.balance ? fmt::format(" (machine {:.3g})", *figures.balance) : ""));
  }
  return text;
}

void draw_by_thread(Canvas& canvas, const attribution::Analysis& analysis, const LoopRow& loop) {
  constexpr std::size_t most = 8;
  if (loop.threads.size() < 2) {
    return;
  }
  std::vector<LoopThread> threads = loop.threads;
  std::stable_sort(threads.begin(), threads.end(),
                   [](const LoopThread& a, const LoopThread& b) { return a.cpu_s > b.cpu_s; });
  const auto work_s = [](const LoopThread& thread) { return std::max(0.0, thread.cpu_s - thread.waiting_s); };
  double all_s = 0;
  bool measured = loop.waited && !loop.waited->sampled;  // else threads wait in this loop itself
  for (const LoopThread& thread : threads) {
    all_s += work_s(thread);
    measured = measured || thread.waiting_s > 0;
  }
  canvas.line(canvas.colored(columns("thread", {"CPU time", "waiting", "of work"}), Hue::faint));
  for (std::size_t i = 0; i < std::min(most, threads.size()); ++i) {
    const LoopThread& thread = threads[i];
    canvas.line(columns(canvas.cell(thread_label(analysis, thread.thread), name_columns),
                        {seconds_text(thread.cpu_s), measured ? seconds_text(thread.waiting_s) : "",
                         all_s > 0 ? percent_text(work_s(thread) / all_s) : ""}));
  }
  if (threads.size() > most) {
    canvas.line(canvas.colored(fmt::format("      and {} more threads", threads.size() - most), Hue::faint));
  }
}

}  // namespace

void draw_performance(Canvas& canvas, const attribution::Analysis& analysis, const LoopRow& loop) {
  const LoopFigures& figures = *loop.figures;
  canvas.paragraph("    performance: ",
                   fmt::format("{} elapsed at least, {} of CPU time", seconds_text(figures.elapsed_s(loop.cpu_s)),
                               seconds_text(loop.cpu_s)) +
                       (figures.threads > 1.05 ? fmt::format(", {:.1f} threads at once", figures.threads) : ""));
  const std::vector<Amount> amounts = amounts_of(loop, figures);
  if (std::any_of(amounts.begin(), amounts.end(), [](const Amount& amount) { return amount.per_s.has_value(); })) {
    canvas.line(canvas.colored(columns("", {"a thread", "all", "altogether"}), Hue::faint));
  }
  for (const Amount& amount : amounts) {
    if (amount.per_s) {
      canvas.line(
          columns(amount.name, {count_text(*amount.per_s) + "/s", count_text(*amount.per_s * figures.threads) + "/s",
                                count_text(*amount.per_s * loop.cpu_s)}));
    }
  }
  if (const std::string unknown = unknown_in_words(amounts); !unknown.empty()) {
    canvas.paragraph("      not known: ", unknown);
  }
  if (figures.flops) {
    canvas.paragraph("      flops by kind: ", kinds_in_words(*figures.flops));
  }
  if (const std::string shape = shape_in_words(figures); !shape.empty()) {
    canvas.paragraph("      ", shape);
  }
  draw_by_thread(canvas, analysis, loop);
}

}  // namespace crosstalk::driver
