// SPDX-License-Identifier: Apache-2.0
// Words that several parts of the text report share.
#include <algorithm>
#include <string>

#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

double amount_of(const attribution::Amount& amount, bool by_cost) {
  return by_cost ? amount.cost_s.value_or(0) : amount.detections;
}

}  // namespace

std::string source_text(const std::string& file, std::uint32_t line) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return name.empty() || line == 0 ? name : name + ":" + std::to_string(line);
}

std::string source_text(const std::string& file, std::uint32_t begin, std::uint32_t end) {
  const std::string at = source_text(file, begin);
  return at.empty() || end <= begin ? at : at + "-" + std::to_string(end);
}

std::string place_text(const std::string& function, const std::string& file, std::uint32_t line) {
  const std::string source = source_text(file, line);
  const std::string text = function + (function.empty() || source.empty() ? "" : "  ") + source;
  return text.empty() ? "unknown code" : text;
}

std::string place_cell(const Canvas& canvas, const std::string& function, const std::string& place, int columns) {
  constexpr int least_name = 6;
  const int room = columns - display_width(canvas.clean(place)) - 2;
  if (function.empty() || place.empty() || room < least_name) {
    const std::string& known = place.empty() ? function : place;
    return canvas.cell(known.empty() ? "unknown code" : known, columns);
  }
  return pad_right(fit_middle(canvas.clean(function), room, canvas.style().charset) + "  " + canvas.clean(place),
                   columns);
}

void draw_call_path(Canvas& canvas, const attribution::CallPath& path) {
  constexpr std::size_t most_frames = 6;
  std::string text;
  for (std::size_t f = 0; f < std::min(most_frames, path.frames.size()); ++f) {
    text += (text.empty() ? "" : canvas.sign(" ← ", " < ")) +
            (path.frames[f].function.empty() ? "?" : path.frames[f].function);
  }
  canvas.line(
      canvas.colored("      " + canvas.cell(percent_text(path.weight) + "  " + text, canvas.width() - 6), Hue::faint));
}

std::string thread_label(const attribution::Analysis& analysis, std::uint32_t thread) {
  const auto found = std::find_if(analysis.threads.begin(), analysis.threads.end(),
                                  [thread](const attribution::ThreadSummary& t) { return t.index == thread; });
  const bool named = found != analysis.threads.end() && !found->name.empty();
  return std::to_string(thread) + (named ? " " + found->name : "");
}

Exchanged exchanged(const attribution::Cell& cell, bool by_cost) {
  return {amount_of(cell.true_sharing, by_cost), amount_of(cell.false_sharing, by_cost),
          cell.true_sharing.seen + cell.false_sharing.seen};
}

void Exchanged::add(const Exchanged& other) {
  true_amount += other.true_amount;
  false_amount += other.false_amount;
  seen += other.seen;
}

Exchanged exchanged(const attribution::Matrix& cells, bool by_cost) {
  Exchanged sum;
  for (const attribution::Cell& cell : cells) {
    sum.add(exchanged(cell, by_cost));
  }
  return sum;
}

bool has_cost(const attribution::Matrix& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const attribution::Cell& cell) { return cell.cost() > 0; });
}

const char* sharing_word(const Exchanged& amount) {
  constexpr double least_pure_share = 0.9;
  if (amount.total() <= 0) {
    return "";
  }
  return amount.false_share() >= least_pure_share       ? "false"
         : amount.false_share() <= 1 - least_pure_share ? "true"
                                                        : "mixed";
}

Hue sharing_hue(const Exchanged& amount) {
  if (amount.total() <= 0) {
    return Hue::plain;
  }
  return amount.false_share() > 0.5 ? Hue::false_sharing : Hue::true_sharing;
}

std::string amount_text(const attribution::Matrix& cells) {
  if (has_cost(cells)) {
    return seconds_text(exchanged(cells, true).total());
  }
  std::uint64_t seen = 0;
  for (const attribution::Cell& cell : cells) {
    seen += cell.true_sharing.seen + cell.false_sharing.seen;
  }
  return seen == 0 ? "-" : count_text(static_cast<double>(seen)) + " seen";
}

std::string gain_text(const Canvas& canvas, const attribution::Sum& sum) {
  const auto gain = said_gain(sum);
  return !gain               ? "-"
         : gain->seconds > 0 ? (gain->at_most ? canvas.sign("≤ ", "<") : "") + seconds_text(gain->seconds)
                             : "none";
}

std::string rate_of_exchange_text(const attribution::Matrix& cells, double duration_s) {
  double count = 0;
  double seen = 0;
  double counted = 0;
  for (const attribution::Cell& cell : cells) {
    for (const attribution::Amount* amount : {&cell.true_sharing, &cell.false_sharing}) {
      seen += static_cast<double>(amount->seen);
      counted += amount->count ? static_cast<double>(amount->seen) : 0;
      count += amount->count.value_or(0);
    }
  }
  constexpr double nearly_all = 0.95;
  const bool known = count > 0 && counted >= nearly_all * seen && duration_s > 0;
  return known ? "about " + count_text(count / duration_s) + " hand-overs a second" : "";
}

}  // namespace crosstalk::driver
