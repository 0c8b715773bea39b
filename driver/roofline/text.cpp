// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "driver/roofline/picture.h"
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
  Grid(int columns, int rows)
      : columns_(columns), cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows), " ") {}
  /// `x`, `y`: 0 to 1, y upwards. Nothing outside is drawn.
  void put(double x, double y, const std::string& cell) {
    const int column = static_cast<int>(std::floor(x * columns_));
    const int row = rows() - 1 - static_cast<int>(std::floor(y * rows()));
    if (x >= 0 && x < 1 && y >= 0 && y < 1) {
      cells_[index(row, column)] = cell;
    }
  }
  /// Outside nothing is empty.
  [[nodiscard]] bool empty(double x, double y) const {
    const int column = static_cast<int>(std::floor(x * columns_));
    const int row = rows() - 1 - static_cast<int>(std::floor(y * rows()));
    return x >= 0 && x < 1 && y >= 0 && y < 1 && cells_[index(row, column)] == " ";
  }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] int rows() const { return static_cast<int>(cells_.size()) / columns_; }
  [[nodiscard]] std::string line(int row) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      text += cells_[index(row, column)];
    }
    return text;
  }

 private:
  [[nodiscard]] std::size_t index(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column);
  }
  int columns_;
  std::vector<std::string> cells_;
};

/// The sign of a curve's cells.
const char* sign_of(const Canvas& canvas, const PictureCurve& curve) {
  if (curve.weight == PictureCurve::Weight::ceiling) {
    return canvas.sign("╌", "~");
  }
  return curve.shape == PictureCurve::Shape::horizontal ? canvas.sign("─", "-") : canvas.sign("·", ".");
}

void draw_curves(const Canvas& canvas, const Picture& picture, Grid& grid) {
  for (auto curve = picture.curves.rbegin(); curve != picture.curves.rend(); ++curve) {
    for (int column = 0; column < grid.columns(); ++column) {
      const double at = (column + 0.5) / grid.columns();
      const auto height = curve->at(std::pow(10, picture.axes.x_low + at * (picture.axes.x_high - picture.axes.x_low)));
      if (height && *height > 0) {
        grid.put(at, picture.axes.y(*height), sign_of(canvas, *curve));
      }
    }
  }
}

/// Writes the name where all its cells are empty; false: nowhere on this row.
bool write_name(const Canvas& canvas, const std::string& name, double x, double y, Grid& grid) {
  const double cell = 1.0 / grid.columns();
  const std::string words = canvas.clean(name);
  for (std::size_t i = 0; i <= words.size(); ++i) {
    if (!grid.empty(x + static_cast<double>(i) * cell, y)) {
      return false;
    }
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    grid.put(x + static_cast<double>(i) * cell, y, std::string(1, words[i]));
  }
  return true;
}

/// The names of roofs, above or below their lines, where there is room.
void draw_names(const Canvas& canvas, const Picture& picture, Grid& grid) {
  const double row = 1.0 / grid.rows(), column = 1.0 / grid.columns();
  for (const PictureCurve& curve : picture.curves) {
    const bool slanted = curve.shape == PictureCurve::Shape::slanted;
    const double begin = picture.axes.x(curve.begin);
    const double end = picture.axes.x(curve.end) - static_cast<double>(curve.name.size() + 1) * column;
    bool written = false;
    for (double part = slanted ? 0.02 : 0.98; !written && part >= 0 && part <= 1; part += slanted ? 0.06 : -0.06) {
      const double x = (std::floor((begin + part * std::max(0.0, end - begin)) / column) + 0.5) * column;
      const auto height = curve.at(std::pow(10, picture.axes.x_low + x * (picture.axes.x_high - picture.axes.x_low)));
      const double y = height && *height > 0 ? picture.axes.y(*height) : -1;
      for (const double rows : {1.0, 2.0, -1.0}) {
        written = written || (y >= 0 && write_name(canvas, curve.name, x, y + rows * row, grid));
      }
    }
  }
}

void draw_points(const RooflineReport& report, const Picture& picture, Grid& grid) {
  const auto& loops = report.roofline.loops;
  for (std::size_t i = std::min(loops.size(), most_in_plot); i-- > 0;) {
    if (const RooflineLoop* before = former(report, loops[i])) {
      const auto& point = report.place(*before).points.front();
      grid.put(picture.axes.x(point.x.value()), picture.axes.y(point.y.value()), "o");
    }
    for (const auto& point : report.place(loops[i]).points) {
      grid.put(picture.axes.x(point.x.value()), picture.axes.y(point.y.value()), std::to_string(i + 1));
    }
  }
}

AxisWords words_for(const RooflineReport& report) { return axis_words(report.model(), report.roofline.options.ops); }

void draw_plot(Canvas& canvas, const RooflineReport& report) {
  constexpr int axis = 14;
  Picture picture = picture_of(report, most_in_plot);
  const bool hills = report.model() == attribution::RooflineModel::mansard;  // with a line at each whole number
  std::erase_if(picture.curves, [&](const PictureCurve& curve) {
    return curve.weight == PictureCurve::Weight::other || (hills && curve.weight == PictureCurve::Weight::ceiling);
  });
  const PictureAxes& axes = picture.axes;
  Grid grid(std::min(canvas.width() - axis - 2, 84), plot_rows);
  draw_curves(canvas, picture, grid);
  draw_points(report, picture, grid);
  draw_names(canvas, picture, grid);
  for (int row = 0; row < grid.rows(); ++row) {
    const bool named = row % 5 == 0;
    const double at = 1 - (row + 0.5) / grid.rows();
    const double value = axes.y_low + at * (axes.y_high - axes.y_low);
    const double height = axes.y_linear ? value : std::pow(10, value);
    canvas.line(canvas.right_cell(named ? height_in_words(height, words_for(report).y_unit) : "", axis) + " " +
                canvas.sign("│", "|") + grid.line(row));
  }
  const std::string low = intensity_in_words(axes.least_x());
  const std::string high = intensity_in_words(axes.greatest_x());
  canvas.line(std::string(axis + 2, ' ') + low +
              pad_left(high, std::max(1, grid.columns() - static_cast<int>(low.size()))));
  canvas.line(std::string(axis + 2, ' ') + canvas.cell(words_for(report).x, grid.columns()));
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
  const AxisWords words = words_for(report);
  const bool instructions = report.model() == attribution::RooflineModel::mansard;
  canvas.line(table_row(canvas, "#", "time", "loop", instructions ? "other/M" : words.x, "rate", "bound", "gain"));
  const auto& loops = report.roofline.loops;
  for (std::size_t i = 0; i < std::min(loops.size(), most_rows); ++i) {
    const RooflineLoop& loop = loops[i];
    const auto& point = report.place(loop).points.back();
    canvas.line(table_row(canvas, std::to_string(i + 1), percent_text(report.share_of(loop.work.own_s)),
                          loop_place(report, loop), intensity_in_words(point.x.value()),
                          height_in_words(point.y.value(), words.y_unit), bound_in_words(loop, report.model()),
                          gain_in_words(loop, report.model())));
  }
  if (loops.size() > most_rows) {
    canvas.line(fmt::format("     {} more loops: --format json", loops.size() - most_rows));
  }
}

void draw_roof_list(Canvas& canvas, const RooflineReport& report) {
  const RooflineLoop& first = report.roofline.loops.front();
  std::string text;
  for (const PictureCurve& curve : picture_of(report, 1).curves) {
    const bool counted = curve.weight == PictureCurve::Weight::ceiling && curve.value.empty();  // 1RS, 2RS, ...
    if (curve.weight != PictureCurve::Weight::other && !counted) {
      text += (text.empty() ? "" : ", ") + curve.name + (curve.value.empty() ? "" : " " + curve.value) + curve.spread;
    }
  }
  if (canvas.style().charset == Charset::ascii) {
    for (std::size_t at = text.find("±"); at != std::string::npos; at = text.find("±")) {
      text.replace(at, std::string_view("±").size(), "+-");
    }
  }
  const char* const note = report.model() == attribution::RooflineModel::mansard
                               ? " In brackets: memory instructions a cycle, at the ridge and at most."
                               : "";
  canvas.paragraph("", fmt::format("Roofs of loop 1 ({}): {}.{}", roofs_of_whom(first), text, note));
}

void draw_sentences(Canvas& canvas, const RooflineReport& report) {
  const auto& loops = report.roofline.loops;
  for (std::size_t i = 0; i < std::min(loops.size(), most_sentences); ++i) {
    const RooflineLoop* before = former(report, loops[i]);
    const std::string change =
        before != nullptr ? " It is " + change_in_words(*before, loops[i], report.model()) + "." : std::string();
    canvas.paragraph(pad_left(std::to_string(i + 1), 4) + "  ", verdict_in_words(loops[i], report.model()) + change);
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

std::string heading_note(const RooflineReport& report) {
  static constexpr std::array<const char*, 4> counted = {"floating-point operations", "operations in double precision",
                                                         "operations in single precision",
                                                         "operations on whole numbers"};
  const auto& options = report.roofline.options;
  const std::string of = report.model() == attribution::RooflineModel::mansard
                             ? "instructions a cycle of a core"
                             : counted[static_cast<std::size_t>(options.ops)];
  return options.by_thread ? of + ", by thread" : of;
}

}  // namespace

std::string render_roofline_text(const RooflineReport& report, TextStyle style) {
  Canvas canvas(style);
  canvas.heading(model_title(report.model()), heading_note(report));
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
  for (const std::string& note : report.roofline.notes) {
    canvas.paragraph("  ", note);
  }
  return canvas.take();
}

}  // namespace crosstalk::driver
