// SPDX-License-Identifier: Apache-2.0
// The communication matrix as a heat map: rows produce, columns consume. With few threads each cell shows its value;
// with more, a shade; if they do not fit, neighbouring threads are folded into groups.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attribution/undetected_cost.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::Matrix;

constexpr int value_columns = 9;  // " 12.3ms f"
constexpr int shade_columns = 2;

/// Threads (or processors) that share one row and column of the picture.
struct Group {
  std::uint32_t first = 0, last = 0;
};

struct Picture {
  std::vector<Group> groups;
  std::vector<std::string> labels;
  std::map<std::pair<std::size_t, std::size_t>, Exchanged> cells;  // (row, column)
  bool by_cost = true;
  double greatest = 0;
  int label_columns = 0;
};

/// Folds `members` into at most `most` groups.
std::vector<Group> fold(const std::vector<std::uint32_t>& members, std::size_t most) {
  const std::size_t size = (members.size() + most - 1) / most;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < members.size(); i += size) {
    groups.push_back({members[i], members[std::min(i + size, members.size()) - 1]});
  }
  return groups;
}

std::size_t group_of(const std::vector<Group>& groups, std::uint32_t member) {
  const auto found = std::lower_bound(groups.begin(), groups.end(), member,
                                      [](const Group& group, std::uint32_t m) { return group.last < m; });
  return static_cast<std::size_t>(found - groups.begin());
}

/// Returns a member's label beside its row.
using Label = std::function<std::string(std::uint32_t)>;

Picture picture_of(const Matrix& matrix, const Label& label, int width) {
  Picture picture;
  std::set<std::uint32_t> members;
  for (const attribution::Cell& cell : matrix) {
    members.insert({cell.producer, cell.consumer});
  }
  constexpr int least_label = 8;
  constexpr int most_label = 18;
  const auto most = static_cast<std::size_t>(std::max(1, (width - most_label - 4) / shade_columns));
  picture.groups = fold({members.begin(), members.end()}, most);
  picture.label_columns = least_label;
  for (const Group& group : picture.groups) {
    picture.labels.push_back(group.first != group.last ? fmt::format("{}-{}", group.first, group.last)
                                                       : label(group.first));
    picture.label_columns = std::max(picture.label_columns, display_width(picture.labels.back()));
  }
  picture.label_columns = std::min(picture.label_columns, most_label);
  picture.by_cost = has_cost(matrix);
  for (const attribution::Cell& cell : matrix) {
    Exchanged& sum = picture.cells[{group_of(picture.groups, cell.producer), group_of(picture.groups, cell.consumer)}];
    sum.add(exchanged(cell, picture.by_cost));
    picture.greatest = std::max(picture.greatest, sum.total());
  }
  return picture;
}

bool is_rough(const Picture& picture, const Exchanged& amount) { return picture.by_cost && amount.is_rough(); }

std::string value_cell(const Canvas& canvas, const Picture& picture, const Exchanged* amount) {
  if (amount == nullptr || amount->total() <= 0) {
    return pad_left(canvas.sign("·", "."), value_columns - 2) + "  ";
  }
  const std::string value = is_rough(picture, *amount) ? rough_seconds_text(amount->total())
                            : picture.by_cost          ? short_seconds_text(amount->total())
                                                       : count_text(amount->total());
  const std::string text = pad_left(value, value_columns - 2) + " " + std::string(1, sharing_word(*amount)[0]);
  return canvas.heated(text, heat_level(amount->total(), picture.greatest), sharing_hue(*amount));
}

std::string shade_cell(const Canvas& canvas, const Picture& picture, const Exchanged* amount) {
  const int level = amount == nullptr ? 0 : heat_level(amount->total(), picture.greatest);
  if (level == 0) {
    return std::string(shade_columns, ' ');
  }
  if (canvas.style().color) {
    return canvas.heated("  ", level, sharing_hue(*amount));
  }
  return std::string(canvas.shade(level)) + canvas.shade(level);
}

/// Formats the numbers above the columns; only every fourth if columns are narrow.
std::string column_heads(const Canvas& canvas, const Picture& picture, bool values) {
  std::string heads = canvas.colored(pad_right("producer", picture.label_columns), Hue::faint) + "  ";
  constexpr std::size_t every = 4;
  for (std::size_t i = 0; i < picture.groups.size(); i += values ? 1 : every) {
    const std::string number = std::to_string(picture.groups[i].first);
    const auto left = static_cast<int>(std::min(every, picture.groups.size() - i)) * shade_columns;
    heads +=
        values ? pad_left(number, value_columns - 2) + "  " : pad_right(fit_end(number, left, Charset::ascii), left);
  }
  return heads;
}

void draw_legend(Canvas& canvas, const Picture& picture, bool values, const std::string& noun) {
  std::string legend =
      picture.by_cost ? "thread time spent in communicating accesses" : "detected " + noun + ", weighted";
  if (values) {
    legend += "; t true, f false, m mixed sharing";
    const bool rough =
        std::ranges::any_of(picture.cells, [&](const auto& cell) { return is_rough(picture, cell.second); });
    legend += rough ? "; ~ seen fewer than five times: its size is a guess" : "";
  } else {
    std::string scale;
    for (int level = 1; level <= heat_levels; ++level) {
      scale += canvas.style().color ? canvas.heated("  ", level, Hue::true_sharing) : canvas.shade(level);
    }
    canvas.line(
        "  " + scale +
        canvas.colored(fmt::format("  up to 2, 10, 25, 50, 100 % of {}",
                                   picture.by_cost ? seconds_text(picture.greatest) : count_text(picture.greatest)),
                       Hue::faint));
    if (canvas.style().color) {
      legend += "; blue true, orange false sharing";
    }
  }
  canvas.paragraph("  ", legend);
}

void draw_picture(Canvas& canvas, const Picture& picture, const std::string& noun) {
  const auto groups = static_cast<int>(picture.groups.size());
  const bool values = 2 + picture.label_columns + 2 + groups * value_columns <= canvas.width();
  const int indent = 2 + picture.label_columns + 2;
  canvas.line(std::string(static_cast<std::size_t>(indent), ' ') +
              canvas.colored(values ? "   consumer" : "consumer", Hue::faint));
  canvas.line("  " + column_heads(canvas, picture, values));
  for (std::size_t row = 0; row < picture.groups.size(); ++row) {
    std::string line = "  " + canvas.cell(picture.labels[row], picture.label_columns) + "  ";
    for (std::size_t column = 0; column < picture.groups.size(); ++column) {
      const auto found = picture.cells.find({row, column});
      const Exchanged* const amount = found == picture.cells.end() ? nullptr : &found->second;
      line += values ? value_cell(canvas, picture, amount) : shade_cell(canvas, picture, amount);
    }
    canvas.line(line);
  }
  draw_legend(canvas, picture, values, noun);
}

/// `noun`: the things that the matrix counts.
Picture draw(Canvas& canvas, const Matrix& matrix, const Label& label, const std::string& noun) {
  Picture picture = picture_of(matrix, label, canvas.width());
  draw_picture(canvas, picture, noun);
  return picture;
}

bool is_folded(const Picture& picture) {
  return std::any_of(picture.groups.begin(), picture.groups.end(),
                     [](const Group& group) { return group.first != group.last; });
}

void draw_folded(Canvas& canvas, const Picture& picture) {
  if (is_folded(picture)) {
    canvas.paragraph("  ", "Neighbours are folded into groups to fit; --format csv --view matrix lists every pair.");
  }
}

Label thread_labels(const Analysis& analysis) {
  return [&analysis](std::uint32_t thread) { return thread_label(analysis, thread); };
}

/// Puts the column's number before the name, unless the name ends with it, as "cpu 0" does.
Label group_labels(const attribution::Grouping& groups) {
  return [&groups](std::uint32_t index) {
    const std::string& name = groups.groups[index].name;
    const bool numbered = groups.of_processors() && name.ends_with(fmt::format(" {}", index));
    return numbered ? name : fmt::format("{} {}", index, name);
  };
}

void draw_undetected(Canvas& canvas, const Analysis& analysis) {
  if (const std::string limit = attribution::undetected_in_words(analysis); !limit.empty()) {
    canvas.paragraph("  ", limit);
  }
}

std::string nothing_seen_text(const Analysis& analysis) {
  if (analysis.sight.sees == attribution::WatchSight::Sees::nothing) {
    return "Not known: crosstalk could not watch memory here, so communication could not be seen.";
  }
  const char* const looked = profile::are_lines_probed(analysis.session) ? "probed" : "watched";
  return analysis.sampling.armed == 0
             ? fmt::format("Not known: no line was {}, so communication could not be seen.", looked)
             : fmt::format("No communication was seen on {} {} line{}.", analysis.sampling.armed, looked,
                           analysis.sampling.armed == 1 ? "" : "s");
}

void draw_nothing_seen(Canvas& canvas, const Analysis& analysis) {
  if (!analysis.filter.empty()) {
    canvas.paragraph("  ", "No pair fits the filter.");
    return;
  }
  if (analysis.communication.undetected.met) {
    canvas.paragraph("  ", nothing_seen_text(analysis));
  }
  draw_undetected(canvas, analysis);
}

const char* heading_of(attribution::GroupBy by) {
  switch (by) {
    case attribution::GroupBy::name:
      return "by name of threads; * stands for a number";
    case attribution::GroupBy::process:
      return "by process";
    case attribution::GroupBy::start_routine:
      return "by the function that threads began in";
    case attribution::GroupBy::core:
      return "by core; pairs on one processor left out";
    case attribution::GroupBy::socket:
      break;
  }
  return "by socket; pairs on one processor left out";
}

}  // namespace

void draw_matrix(Canvas& canvas, const Analysis& analysis) {
  const Matrix& matrix = analysis.communication.cells;
  canvas.heading("Who talks to whom", "by thread");
  if (matrix.empty()) {
    draw_nothing_seen(canvas, analysis);
    return;
  }
  const Picture picture = draw(canvas, matrix, thread_labels(analysis), "communications");
  if (const std::string rate = rate_of_exchange_text(matrix, analysis.duration_s); !rate.empty()) {
    canvas.paragraph("  ", "In all " + rate + ".");
  }
  draw_folded(canvas, picture);
  if (picture.groups.size() < analysis.threads.size() && !is_folded(picture) && analysis.filter.empty()) {
    const std::size_t silent = analysis.threads.size() - picture.groups.size();
    canvas.paragraph("  ", silent == 1 ? "One further thread was not seen to communicate."
                                       : fmt::format("{} further threads were not seen to communicate.", silent));
  }
  draw_undetected(canvas, analysis);
}

void draw_matrix(Canvas& canvas, const Analysis& analysis, const attribution::Grouping& groups) {
  canvas.heading("Who talks to whom", heading_of(groups.by));
  if (groups.cells.empty()) {
    if (analysis.communication.cells.empty()) {
      draw_nothing_seen(canvas, analysis);
    } else {
      canvas.paragraph("  ", "All communication seen was between threads on one processor.");
    }
    return;
  }
  draw_folded(canvas, draw(canvas, groups.cells, group_labels(groups), "communications"));
  const bool within = std::any_of(groups.cells.begin(), groups.cells.end(),
                                  [](const attribution::Cell& cell) { return cell.producer == cell.consumer; });
  if (within) {
    canvas.paragraph("  ", std::string("On the diagonal: within, between ") +
                               (groups.of_processors() ? "processors of one " : "threads of one group.") +
                               (groups.by == attribution::GroupBy::core     ? "core."
                                : groups.by == attribution::GroupBy::socket ? "socket."
                                                                            : ""));
  }
  draw_note(canvas, groups);
  draw_undetected(canvas, analysis);
}

void draw_invalidations(Canvas& canvas, const Analysis& analysis, const attribution::Grouping* groups) {
  const Matrix& matrix = groups == nullptr ? analysis.communication.invalidations : groups->invalidations;
  if (matrix.empty()) {
    return;
  }
  canvas.heading("Invalidations", "stores to lines that others had only read; counted apart");
  draw_folded(canvas, draw(canvas, matrix, groups == nullptr ? thread_labels(analysis) : group_labels(*groups),
                           "invalidations"));
}

}  // namespace crosstalk::driver
