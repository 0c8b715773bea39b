// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "driver/roofline/axes.h"
#include "driver/roofline/report.h"
#include "driver/text/report.h"
#include "driver/words/roofline_words.h"

namespace crosstalk::driver {
namespace {

using attribution::RooflineLoop;

constexpr std::size_t most_in_plot = 9;  // a digit each
constexpr std::size_t most_rows = 20, most_sentences = 5;
constexpr int plot_rows = 16;

/// Cells of a plot: a string each, for characters beyond ASCII.
class Grid {
 public:
  Grid(int columns, int rows) : columns_(columns), cells_(static_cast<std::size_t>(columns * rows), " ") {}
  /// `x`, `y`: 0 to 1, y upwards. Nothing outside is drawn.
  void put(double x, double y, const std::string& cell) {
    const int column = static_cast<int>(std::floor(x * columns_));
    const int row = rows() - 1 - static_cast<int>(std::floor(y * rows()));
    if (x >= 0 && x < 1 && y >= 0 && y < 1) {
      cells_[static_cast<std::size_t>(row * columns_ + column)] = cell;
    }
  }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] int rows() const { return static_cast<int>(cells_.size()) / columns_; }
  [[nodiscard]] std::string line(int row) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      text += cells_[static_cast<std::size_t>(row * columns_ + column)];
    }
    return text;
  }

 private:
  int columns_;
  std::vector<std::string> cells_;
};

void draw_roofs(const Canvas& canvas, const RooflineAxes& axes, const RooflineLoop& loop, Grid& grid) {
  const double compute = loop.compute.height.value();
  for (int column = 0; column < grid.columns(); ++column) {
    const double at = (column + 0.5) / grid.columns();
    const double intensity = std::pow(10, axes.x_low + at * (axes.x_high - axes.x_low));
    for (const auto& roof : loop.bandwidths) {
      const double height = roof_at(roof.height.value(), compute, intensity);
      const bool flat = height >= compute;
      grid.put(at, axes.y(height), flat ? canvas.sign("─", "-") : canvas.sign("·", "."));
    }
  }
}

/// The names of bandwidth roofs, above their lines near the left edge or the lower one.
void draw_names(const RooflineAxes& axes, const RooflineLoop& loop, Grid& grid) {
  for (const auto& roof : loop.bandwidths) {
    const double lowest = std::pow(10, axes.y_low) / roof.height.value();
    const double from = std::max(lowest, std::pow(10, axes.x_low));
    const double row = 1.0 / grid.rows();
    const double y = axes.y(from * roof.height.value()) + 2.5 * row;
    double x = axes.x(from);
    for (const char letter : roof.name) {
      grid.put(x, y, std::string(1, letter));
      x += 1.0 / grid.columns();
    }
  }
}

void draw_points(const RooflineReport& report, const RooflineAxes& axes, Grid& grid) {
  const auto& loops = report.roofline.loops;
  for (std::size_t i = std::min(loops.size(), most_in_plot); i-- > 0;) {
    grid.put(axes.x(loops[i].intensity.value()), axes.y(loops[i].performance.value()), std::to_string(i + 1));
  }
}

void draw_plot(Canvas& canvas, const RooflineReport& report) {
  constexpr int axis = 14;
  const RooflineAxes axes = axes_of(report);
  Grid grid(std::min(canvas.width() - axis - 2, 84), plot_rows);
  draw_roofs(canvas, axes, report.roofline.loops.front(), grid);
  draw_names(axes, report.roofline.loops.front(), grid);
  draw_points(report, axes, grid);
  for (int row = 0; row < grid.rows(); ++row) {
    const bool named = row % 5 == 0;
    const double at = 1 - (row + 0.5) / grid.rows();
    const double rate = std::pow(10, axes.y_low + at * (axes.y_high - axes.y_low));
    canvas.line(canvas.right_cell(named ? rate_in_words(rate, "flop/s") : "", axis) + " " + canvas.sign("│", "|") +
                grid.line(row));
  }
  const std::string low = intensity_in_words(std::pow(10, axes.x_low));
  const std::string high = intensity_in_words(std::pow(10, axes.x_high)) + " flop/B";
  canvas.line(std::string(axis + 2, ' ') + low +
              pad_left(high, std::max(1, grid.columns() - static_cast<int>(low.size()))));
}

/// A row of the table; a narrow terminal lacks room for the bound.
std::string table_row(const Canvas& canvas, const std::string& number, const std::string& time, const std::string& loop,
                      const std::string& intensity, const std::string& rate, const std::string& bound,
                      const std::string& gain) {
  constexpr int numbers = 4 + 1 + 7 + 1 + 8 + 14 + 8;
  constexpr int bound_columns = 19;
  const bool with_bound = canvas.width() >= 80;
  const int loop_columns = canvas.width() - numbers - (with_bound ? bound_columns : 0);
  return pad_left(number, 4) + " " + pad_left(time, 7) + " " + canvas.cell(" " + loop, loop_columns) +
         pad_left(intensity, 8) + pad_left(rate, 14) +
         (with_bound ? "  " + canvas.cell(bound, bound_columns - 2) : std::string()) + pad_left(gain, 8);
}

void draw_table(Canvas& canvas, const RooflineReport& report) {
  canvas.line(table_row(canvas, "#", "time", "loop", "flop/B", "rate", "bound", "gain"));
  const auto& loops = report.roofline.loops;
  for (std::size_t i = 0; i < std::min(loops.size(), most_rows); ++i) {
    const RooflineLoop& loop = loops[i];
    canvas.line(table_row(canvas, std::to_string(i + 1), percent_text(report.share_of(loop.loop->self_s)),
                          loop_place(*loop.loop), intensity_in_words(loop.intensity.value()),
                          rate_in_words(loop.performance.value(), "flop/s"), bound_in_words(loop, report.model),
                          gain_in_words(loop, report.model)));
  }
  if (loops.size() > most_rows) {
    canvas.line(fmt::format("     {} more loops: --format json", loops.size() - most_rows));
  }
}

void draw_roof_list(Canvas& canvas, const RooflineReport& report) {
  const RooflineLoop& first = report.roofline.loops.front();
  std::string text;
  for (const auto& roof : first.bandwidths) {
    text += (text.empty() ? "" : ", ") + roof.name + " " + rate_in_words(roof.height.value(), "B/s");
  }
  text += ", FP units " + rate_in_words(first.compute.height.value(), "flop/s");
  canvas.paragraph("", fmt::format("Roofs of one thread of loop 1, of {} that run at once: {}.",
                                   static_cast<int>(std::lround(first.threads)), text));
}

void draw_sentences(Canvas& canvas, const RooflineReport& report) {
  const auto& loops = report.roofline.loops;
  for (std::size_t i = 0; i < std::min(loops.size(), most_sentences); ++i) {
    const RooflineLoop* before = former(report, loops[i]);
    const std::string change = before != nullptr ? " It is " + change_in_words(*before, loops[i]) + "." : std::string();
    canvas.paragraph(pad_left(std::to_string(i + 1), 4) + "  ", verdict_in_words(loops[i], report.model) + change);
  }
}

void draw_unplaced(Canvas& canvas, const RooflineReport& report) {
  constexpr std::size_t most = 4;
  const auto& unplaced = report.roofline.unplaced;
  for (std::size_t i = 0; i < std::min(unplaced.size(), most); ++i) {
    canvas.paragraph("  ", fmt::format("{} of the CPU time in {} loop{} without a place: {}.",
                                       percent_text(report.share_of(unplaced[i].self_s)), unplaced[i].loops,
                                       unplaced[i].loops == 1 ? "" : "s", unplaced[i].why));
  }
}

}  // namespace

std::string render_roofline_text(const RooflineReport& report, TextStyle style) {
  Canvas canvas(style);
  canvas.heading(report.model == RooflineModel::irm ? "Integrated roofline" : "Cache-aware roofline",
                 "floating-point operations of one thread");
  if (!report.roofline.loops.empty()) {
    draw_plot(canvas, report);
    canvas.blank();
    draw_roof_list(canvas, report);
    canvas.blank();
    draw_table(canvas, report);
    canvas.blank();
    draw_sentences(canvas, report);
  }
  if (!report.roofline.unplaced.empty()) {
    canvas.blank();
    draw_unplaced(canvas, report);
  }
  return canvas.take();
}

}  // namespace crosstalk::driver
