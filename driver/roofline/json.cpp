// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "driver/csv/table.h"
#include "driver/json/values.h"
#include "driver/roofline/report.h"
#include "driver/words/roofline_words.h"

namespace crosstalk::driver {
namespace {

using attribution::RooflineLoop;
using models::roofline::Estimate;
using models::roofline::Intersection;

Json estimate(const Estimate& of) {
  return {{"value", of.value()}, {"low", of.low()}, {"high", of.high()}, {"basis", basis_name(of.basis())}};
}

/// An object with the reason if the quantity is absent.
Json estimate(const Result<Estimate>& of) {
  return of ? estimate(*of) : Json{{"value", nullptr}, {"unknown", of.error().message}};
}

Json crossing(const std::optional<Intersection>& of) {
  return of ? Json{{"roof", of->name}, {"height", estimate(of->height)}} : Json(nullptr);
}

template <class Advice>
Json advice(const Advice& all) {
  Json list = Json::array();
  for (const auto each : all) {
    list.push_back(advice_name(each));
  }
  return list;
}

Json carm(const RooflineLoop& loop) {
  Json reached = Json::array();
  for (const Intersection& roof : loop.carm.reached) {
    reached.push_back(roof.name);
  }
  return {{"region", region_name(loop.carm.region)},      {"below", crossing(loop.carm.below)},
          {"above", crossing(loop.carm.above)},           {"reached", std::move(reached)},
          {"gain_bound", estimate(loop.carm.gain_bound)}, {"advice", advice(loop.carm.advice)},
          {"undecided", known_text(loop.carm.undecided)}};
}

Json irm(const RooflineLoop& loop) {
  if (!loop.irm) {
    return {{"unknown", loop.irm.error().message}};
  }
  Json points = Json::array();
  for (const auto& point : loop.irm->points) {
    points.push_back({{"level", models::name(point.level)},
                      {"intensity", estimate(point.intensity)},
                      {"bound", estimate(point.bound)}});
  }
  return {{"unknown", nullptr},
          {"points", std::move(points)},
          {"bound", estimate(loop.irm->bound)},
          {"bottleneck", loop.irm->bottleneck ? Json(models::name(*loop.irm->bottleneck)) : Json(nullptr)},
          {"region", region_name(loop.irm->region)},
          {"gain_bound", estimate(loop.irm->gain_bound)},
          {"advice", advice(loop.irm->advice)},
          {"undecided", known_text(loop.irm->undecided)}};
}

Json roofs(const RooflineLoop& loop) {
  Json list = Json::array();
  for (const auto& roof : loop.bandwidths) {
    list.push_back({{"name", roof.name}, {"unit", "B/s"}, {"height", estimate(roof.height)}});
  }
  list.push_back({{"name", loop.compute.name}, {"unit", "flop/s"}, {"height", estimate(loop.compute.height)}});
  return list;
}

Json before_of(const RooflineReport& report, const RooflineLoop& loop) {
  const RooflineLoop* before = former(report, loop);
  return before == nullptr ? Json(nullptr)
                           : Json{{"id", before->loop->id},
                                  {"intensity", estimate(before->intensity)},
                                  {"performance", estimate(before->performance)}};
}

Json loops(const RooflineReport& report) {
  Json list = Json::array();
  for (const RooflineLoop& at : report.roofline.loops) {
    const attribution::LoopRow& loop = *at.loop;
    list.push_back({{"id", loop.id},
                    {"function", known_text(loop.function)},
                    {"file", known_text(loop.file)},
                    {"line_begin", known_line(loop.line_begin)},
                    {"line_end", known_line(loop.line_end)},
                    {"self_s", number(loop.self_s)},
                    {"share", number(loop.share)},
                    {"threads", number(at.threads)},
                    {"intensity", estimate(at.intensity)},
                    {"performance", estimate(at.performance)},
                    {"roofs", roofs(at)},
                    {"carm", carm(at)},
                    {"irm", irm(at)},
                    {"before", before_of(report, at)},
                    {"verdict", verdict_in_words(at, report.model)}});
  }
  return list;
}

Json unplaced(const RooflineReport& report) {
  Json list = Json::array();
  for (const attribution::Unplaced& of : report.roofline.unplaced) {
    list.push_back({{"why", of.why}, {"self_s", number(of.self_s)}, {"loops", of.loops}});
  }
  return list;
}

}  // namespace

std::string render_roofline_json(const RooflineReport& report) {
  const Json document = {{"schema", "crosstalk.roofline/1"},
                         {"command", report.analysis->session.command},
                         {"model", report.model == RooflineModel::irm ? "irm" : "carm"},
                         {"cpu_s", number(report.analysis->cpu_s)},
                         {"placed_s", number(report.roofline.placed_s)},
                         {"machine",
                          {{"name", report.machine->identity.name},
                           {"measured_at", report.machine->measured_at},
                           {"quick", report.machine->quick}}},
                         {"loops", loops(report)},
                         {"unplaced", unplaced(report)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string render_roofline_csv(const RooflineReport& report) {
  CsvTable table;
  for (const Json& row : loops(report)) {
    table.add(row);
  }
  return table.text();
}

}  // namespace crosstalk::driver
