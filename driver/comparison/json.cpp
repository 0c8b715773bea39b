// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <nlohmann/json.hpp>

#include "attribution/objects/sharing_kind.h"
#include "driver/comparison/report.h"
#include "driver/json/values.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::comparison::Comparison;
using attribution::comparison::Costs;
using attribution::comparison::Figure;
using attribution::comparison::LoopChange;
using attribution::comparison::LoopFigures;
using attribution::comparison::Matched;
using attribution::comparison::Place;
using attribution::comparison::Row;
using attribution::comparison::Subject;
using attribution::comparison::Unit;

Json value_of(const Figure& figure) { return known(figure.value); }
Json interval_of(const Figure& figure) { return interval(figure.ci95); }

/// Adds "cost_s" and "cost_ci95": only the value's name has the unit, as in a report.
void add(Json& to, const std::string& name, const std::string& unit, const Figure& figure) {
  to[name + unit] = value_of(figure);
  to[name + "_ci95"] = interval_of(figure);
}

Figure share_of(const Figure& figure, double cpu_s) {
  return cpu_s > 0 ? attribution::comparison::scaled(figure, 1 / cpu_s) : Figure{};
}

Json costs(const Costs& costs, double cpu_s) {
  Json json = Json::object();
  add(json, "cost", "_s", costs.cost);
  add(json, "cost_share", "", share_of(costs.cost, cpu_s));
  add(json, "gain", "_s", costs.gain);
  add(json, "count", "", costs.count);
  json["seen"] = costs.seen;
  return json;
}

Json change(const Row& row) {
  Json json = Json::object();
  add(json, "cost", "_s", row.change.cost);
  add(json, "cost_share", "", row.share_change);
  add(json, "gain", "_s", row.change.gain);
  add(json, "gain_share", "", row.gain_share_change);
  add(json, "count", "", row.change.count);
  return json;
}

Json place(const Place& place) {
  return {{"function", known_text(place.function)},
          {"file", known_text(place.file)},
          {"line", place.line == 0 ? Json(nullptr) : Json(place.line)}};
}

enum class About { everything, object, lines, threads };

Json subject(const Subject& subject, About about) {
  switch (about) {
    case About::object:
      return {{"name", known_text(subject.name)},
              {"sharing", subject.sharing ? Json(sharing_kind_name(*subject.sharing)) : Json(nullptr)},
              {"producer", place(subject.producer_at)},
              {"consumer", place(subject.consumer_at)}};
    case About::lines:
      return {{"producer", place(subject.producer_at)},
              {"consumer", place(subject.consumer_at)},
              {"object", known_text(subject.name)}};
    case About::threads:
      return {{"producer", subject.producer}, {"consumer", subject.name}};
    case About::everything:
      break;
  }
  return Json::object();
}

Json side(const Subject& about, About kind, const Costs& figures, double cpu_s) {
  Json json = subject(about, kind);
  json.update(costs(figures, cpu_s));
  return json;
}

Json row(const Row& row, About about, const Comparison& c) {
  return {{"verdict", verdict_name(row.verdict)},
          {"matched", matched_name(row.matched)},
          {"before", side(row.matched == Matched::appeared ? Subject{} : row.was, about, row.before, c.before_cpu_s)},
          {"after", side(row.matched == Matched::gone ? Subject{} : row.subject, about, row.after, c.after_cpu_s)},
          {"change", change(row)}};
}

Json rows(const std::vector<Row>& all, About about, const Comparison& c) {
  Json list = Json::array();
  for (const Row& each : all) {
    list.push_back(row(each, about, c));
  }
  return list;
}

Json loop_figures(const LoopFigures& figures) {
  Json json = Json::object();
  add(json, "cpu", "_s", figures.cpu_s);
  add(json, "share", "", figures.share);
  add(json, "iteration", "_s", figures.iteration_s);
  return json;
}

Json loops(const Comparison& c) {
  Json list = Json::array();
  for (const LoopChange& loop : c.loops) {
    Json before = place(loop.matched == Matched::appeared ? Place{} : loop.was);
    Json after = place(loop.matched == Matched::gone ? Place{} : loop.subject);
    before.update(loop_figures(loop.before));
    after.update(loop_figures(loop.after));
    list.push_back({{"verdict", verdict_name(loop.verdict)},
                    {"matched", matched_name(loop.matched)},
                    {"before", before},
                    {"after", after},
                    {"change", loop_figures(loop.change)}});
  }
  return list;
}

Json waits(const Comparison& c) {
  static constexpr std::array<const char*, profile::wait_classes> names = {"lock", "barrier", "condition"};
  Json list = Json::array();
  for (const attribution::comparison::WaitRow& row : c.waits) {
    Json json = {{"class", names.at(static_cast<std::size_t>(row.what))}, {"verdict", verdict_name(row.verdict)}};
    add(json, "before", "_s", row.before);
    add(json, "after", "_s", row.after);
    add(json, "change", "_s", row.change);
    list.push_back(std::move(json));
  }
  return list;
}

Json profile(const std::string& file, const Analysis& analysis) {
  const profile::Session& session = analysis.session;
  return {{"profile", file},
          {"command", session.command},
          {"exit_status", session.exit_status ? Json(*session.exit_status) : Json(nullptr)},
          {"complete", session.complete},
          {"duration_s", number(analysis.duration_s)},
          {"cpu_s", number(analysis.cpu_s)},
          {"threads", analysis.threads.size()},
          {"samples", analysis.sampling.samples},
          {"machine",
           {{"host", known_text(session.host)},
            {"kernel", known_text(session.kernel)},
            {"cpu_model", known_text(session.cpu_model)},
            {"cpus", session.cpus == 0 ? Json(nullptr) : Json(session.cpus)}}},
          {"version", known_text(session.version)}};
}

Json statements(const Comparison& c) {
  Json list = Json::array();
  for (const auto& statement : c.statements) {
    list.push_back({{"sentence", statement.sentence}, {"verdict", verdict_name(statement.verdict)}});
  }
  return list;
}

Json warnings(const Comparison& c) {
  Json list = Json::array();
  for (const attribution::Warning& warning : c.warnings) {
    list.push_back({{"code", warning.code}, {"message", warning.message}});
  }
  return list;
}

const char* verdict_of(const attribution::comparison::Judgement& judgement) {
  return judgement.judged          ? judgement.holds ? "holds" : "does_not_hold"
         : judgement.blind.empty() ? "not_judged"
                                   : "undecided";
}

Json conditions(const DiffReport& report) {
  Json list = Json::array();
  for (const JudgedCondition& judged : report.conditions) {
    Json json = {{"condition", judged.condition.text},
                 {"verdict", verdict_of(judged.judgement)},
                 {"holds", judged.judgement.judged ? Json(judged.judgement.holds) : Json(nullptr)},
                 {"undecided_because", known_text(judged.judgement.blind)},
                 {"record_s", judged.judgement.record_s ? number(*judged.judgement.record_s) : Json(nullptr)},
                 {"of", known_text(judged.judgement.of)},
                 {"threshold", number(judged.condition.threshold)}};
    add(json, "value", "", judged.judgement.figure);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string render_diff_json(const DiffReport& report) {
  const Comparison& c = report.comparison;
  Json cpu = Json::object();
  add(cpu, "cpu", "_s", c.cpu_change);
  const Json json = {{"schema", "crosstalk.diff/1"},
                     {"before", profile(report.before_file, *report.before)},
                     {"after", profile(report.after_file, *report.after)},
                     {"unit", c.unit == Unit::seconds ? "seconds" : "share"},
                     {"unit_reason", c.unit_reason},
                     {"run_to_run", number(c.run_to_run)},
                     {"warnings", warnings(c)},
                     {"statements", statements(c)},
                     {"conditions", conditions(report)},
                     {"change", cpu},
                     {"total", row(c.total, About::everything, c)},
                     {"objects", rows(c.objects, About::object, c)},
                     {"lines", rows(c.lines, About::lines, c)},
                     {"threads", rows(c.threads, About::threads, c)},
                     {"waits", waits(c)},
                     {"loops", loops(c)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace crosstalk::driver
