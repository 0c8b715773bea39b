// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "attribution/comparison/wait_rows.h"
#include "attribution/objects/sharing_kind.h"
#include "driver/comparison/report.h"
#include "driver/csv/field.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::comparison::Comparison;
using attribution::comparison::Figure;
using attribution::comparison::LoopChange;
using attribution::comparison::Place;
using attribution::comparison::Row;
using attribution::comparison::WaitRow;
using attribution::comparison::waits_in_words;
using DiffFields = std::vector<std::string>;

std::string number_field(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

void add(DiffFields& fields, const Figure& figure) {
  fields.push_back(figure.value ? number_field(*figure.value) : "");
  fields.push_back(figure.ci95 ? number_field(figure.ci95->low) : "");
  fields.push_back(figure.ci95 ? number_field(figure.ci95->high) : "");
}

void write(std::string& text, const DiffFields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    text += (i == 0 ? "" : ",") + csv_field(fields[i]);
  }
  text += '\n';
}

DiffFields header() {
  DiffFields fields = {"part", "name", "was", "producer", "consumer", "sharing", "matched", "verdict"};
  for (const std::string figure : {"cost_s", "gain_s", "count", "cpu_s", "iteration_s", "waited_s"}) {
    for (const std::string side : {"before.", "after.", "change."}) {
      const std::string interval = figure.substr(0, figure.rfind("_s")) + "_ci95";
      fields.push_back(side + figure);
      fields.push_back(side + interval + ".low");
      fields.push_back(side + interval + ".high");
    }
  }
  return fields;
}

void add_three(DiffFields& fields, const Figure& before, const Figure& after, const Figure& change) {
  add(fields, before);
  add(fields, after);
  add(fields, change);
}

std::string place_field(const Place& place) { return source_text(place.file, place.line); }

void write_row(std::string& text, const std::string& part, const Row& row) {
  const bool threads = part == "threads";
  DiffFields fields = {part,
                       threads ? "" : row.subject.name,
                       threads ? "" : row.was.name,
                       threads ? row.subject.producer : place_field(row.subject.producer_at),
                       threads ? row.subject.name : place_field(row.subject.consumer_at),
                       row.subject.sharing ? sharing_kind_name(*row.subject.sharing) : "",
                       matched_name(row.matched),
                       verdict_name(row.verdict)};
  add_three(fields, row.before.cost, row.after.cost, row.change.cost);
  add_three(fields, row.before.gain, row.after.gain, row.change.gain);
  add_three(fields, row.before.count, row.after.count, row.change.count);
  for (int i = 0; i < 3; ++i) {
    add_three(fields, {}, {}, {});
  }
  write(text, fields);
}

void write_loop(std::string& text, const LoopChange& loop) {
  DiffFields fields = {"loops",
                       place_text(loop.subject.function, loop.subject.file, loop.subject.line),
                       loop.was.function.empty() ? "" : place_text(loop.was.function, loop.was.file, loop.was.line),
                       "",
                       "",
                       "",
                       matched_name(loop.matched),
                       verdict_name(loop.verdict)};
  for (int i = 0; i < 3; ++i) {
    add_three(fields, {}, {}, {});
  }
  add_three(fields, loop.before.cpu_s, loop.after.cpu_s, loop.change.cpu_s);
  add_three(fields, loop.before.iteration_s, loop.after.iteration_s, loop.change.iteration_s);
  add_three(fields, {}, {}, {});
  write(text, fields);
}

void write_waits(std::string& text, const WaitRow& row) {
  DiffFields fields = {"waits", waits_in_words(row.what), "", "", "", "", "both", verdict_name(row.verdict)};
  for (int i = 0; i < 5; ++i) {
    add_three(fields, {}, {}, {});
  }
  add_three(fields, row.before, row.after, row.change);
  write(text, fields);
}

}  // namespace

std::string render_diff_csv(const DiffReport& report) {
  const Comparison& c = report.comparison;
  std::string text;
  write(text, header());
  Row total = c.total;
  write_row(text, "total", total);
  for (const auto& [part, rows] :
       {std::pair{"objects", &c.objects}, std::pair{"lines", &c.lines}, std::pair{"threads", &c.threads}}) {
    for (const Row& row : *rows) {
      write_row(text, part, row);
    }
  }
  for (const LoopChange& loop : c.loops) {
    write_loop(text, loop);
  }
  for (const WaitRow& row : c.waits) {
    write_waits(text, row);
  }
  return text;
}

}  // namespace crosstalk::driver
