// SPDX-License-Identifier: Apache-2.0
#include "driver/export/collapsed.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "driver/export/columns.h"
#include "driver/terminal/layout.h"

namespace crosstalk::driver {
namespace {

using attribution::Analysis;
using attribution::CommunicationStack;
using attribution::StackPlace;
using attribution::TimeStack;

/// A name as UTF-8, without the characters that part frames and lines.
std::string frame_text(const std::string& text) {
  std::string name = as_utf8(text);
  for (char& letter : name) {
    if (letter == ';') {
      letter = ':';
    } else if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') {
      letter = '?';
    }
  }
  return name;
}

class Collapser {
 public:
  Collapser(const Analysis& analysis, const CollapsedView& view) : analysis_(analysis), view_(view) {
    for (const StackPlace& place : analysis.stacks->places) {
      texts_.push_back(text_of(place));
    }
  }
  void add(std::uint32_t thread, const std::vector<std::uint32_t>& places, double amount) {
    std::string line = view_.by_thread && thread < analysis_.threads.size() ? root_of(thread) : std::string();
    std::for_each(places.rbegin(), places.rend(),
                  [&](std::uint32_t place) { line += (line.empty() ? "" : ";") + texts_[place]; });
    counts_[line] += amount;
  }
  [[nodiscard]] std::string finish() const {
    std::string text;
    for (const auto& [line, amount] : counts_) {
      if (const long long count = std::llround(amount); count > 0) {
        text += line + ' ' + std::to_string(count) + '\n';
      }
    }
    return text;
  }

 private:
  /// The functions of a place, outermost first.
  static std::string text_of(const StackPlace& place) {
    std::string text;
    for (auto frame = place.frames.rbegin(); frame != place.frames.rend(); ++frame) {
      text += (text.empty() ? "" : ";") + frame_text(function_name(place, *frame));
    }
    return text;
  }
  [[nodiscard]] std::string root_of(std::uint32_t thread) const {
    const attribution::ThreadSummary& summary = analysis_.threads[thread];
    return frame_text(summary.name + " (tid " + std::to_string(summary.tid) + ")");
  }

  const Analysis& analysis_;
  const CollapsedView& view_;
  std::vector<std::string> texts_;  // by place
  std::map<std::string, double> counts_;
};

}  // namespace

std::string render_collapsed(const Analysis& analysis, const CollapsedView& view) {
  constexpr double us_per_ns = 1e-3;
  constexpr double us_per_s = 1e6;
  Collapser collapser(analysis, view);
  if (view.value == StackValue::cpu) {
    const double unit = analysis.shares_of.empty() ? us_per_ns : 1;
    for (const TimeStack& row : analysis.stacks->time) {
      collapser.add(row.thread, row.places, static_cast<double>(row.weight) * unit);
    }
  } else {
    for (const CommunicationStack& row : analysis.stacks->communication) {
      collapser.add(row.thread, row.places, (view.value == StackValue::gain ? row.gain_s : row.cost_s) * us_per_s);
    }
  }
  return collapser.finish();
}

}  // namespace crosstalk::driver
