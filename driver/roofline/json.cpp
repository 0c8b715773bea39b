// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "driver/csv/table.h"
#include "driver/json/values.h"
#include "driver/roofline/report.h"
#include "driver/words/roofline_words.h"

namespace crosstalk::driver {
namespace {

using attribution::RooflineLoop;
using attribution::RooflineModel;
using attribution::RooflinePlace;
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

Json points_of(const RooflinePlace& place) {
  Json points = Json::array();
  for (const auto& point : place.points) {
    points.push_back({{"level", point.level ? Json(models::name(*point.level)) : Json(nullptr)},
                      {"x", estimate(point.x)},
                      {"y", estimate(point.y)}});
  }
  return points;
}

Json roofs_of(const std::vector<models::roofline::Roof>& roofs, attribution::CountedOperations ops) {
  using models::roofline::RoofKind;
  Json list = Json::array();
  for (const auto& roof : roofs) {
    const char* const operations = ops == attribution::CountedOperations::integer ? "op/s" : "flop/s";
    list.push_back({{"name", roof.name},
                    {"unit", roof.kind == RoofKind::bandwidth ? "B/s"
                             : roof.kind == RoofKind::compute ? operations
                                                              : "instructions/cycle"},
                    {"height", estimate(roof.height)},
                    {"threads", roof.threads},
                    {"width", roof.width ? Json(models::name(*roof.width)) : Json(nullptr)},
                    {"ceiling", roof.ceiling.has_value()}});
  }
  return list;
}

Json costs_of(const RooflinePlace& place) {
  Json list = Json::array();
  for (const auto& cost : place.costs) {
    list.push_back(
        {{"feature", feature_name(cost.feature)}, {"ceiling", estimate(cost.ceiling)}, {"cost", estimate(cost.cost)}});
  }
  return list;
}

Json hills_of(const RooflinePlace& place) {
  Json list = Json::array();
  if (place.hills) {
    for (const auto& hill : place.hills->hills()) {
      list.push_back({{"level", models::name(hill.level)},
                      {"most", estimate(hill.memory_most)},
                      {"at_ridge", estimate(hill.memory_at_ridge)}});
    }
  }
  return list;
}

Json band_of(const RooflinePlace& place) {
  if (!place.band) {
    return nullptr;
  }
  const auto& [band, verdict] = *place.band;
  return {{"level", models::name(band.level)},
          {"worst", estimate(band.worst)},
          {"best", estimate(band.best)},
          {"position", band_position_name(verdict.position)},
          {"gain_bound", estimate(verdict.gain_bound)}};
}

/// Members that only some models have.
void add_particulars(RooflineModel model, const RooflinePlace& place, Json& json) {
  switch (model) {
    case RooflineModel::hierarchical:
    case RooflineModel::irm:
      json["bottleneck"] = place.bottleneck ? Json(models::name(*place.bottleneck)) : Json(nullptr);
      json["bound"] = place.bound ? estimate(*place.bound) : Json(nullptr);
      break;
    case RooflineModel::orm:
      json["gathers"] = place.gathers
                            ? Json{{"worst", number(place.gathers->worst)}, {"best", number(place.gathers->best)}}
                            : Json(nullptr);
      break;
    case RooflineModel::runtime:
      json["costs"] = costs_of(place);
      json["held_by_issue"] = place.held_by_issue;
      break;
    case RooflineModel::sparse:
      json["band"] = band_of(place);
      break;
    case RooflineModel::mansard:
      json["hills"] = hills_of(place);
      break;
    case RooflineModel::carm:
      break;
  }
}

Json place_of(const RooflineLoop& loop, RooflineModel model) {
  const auto& place = loop.place(model);
  if (!place) {
    return {{"unknown", place.error().message}};
  }
  Json reached = Json::array();
  for (const Intersection& roof : place->verdict.reached) {
    reached.push_back(roof.name);
  }
  Json json = {{"unknown", nullptr},
               {"points", points_of(*place)},
               {"roofs", roofs_of(place->roofs, loop.work.ops)},
               {"region", region_name(place->verdict.region)},
               {"below", crossing(place->verdict.below)},
               {"above", crossing(place->verdict.above)},
               {"reached", std::move(reached)},
               {"gain_bound", estimate(place->verdict.gain_bound)},
               {"advice", advice(place->verdict.advice)},
               {"undecided", known_text(place->verdict.undecided)}};
  add_particulars(model, *place, json);
  return json;
}

Json before_of(const RooflineReport& report, const RooflineLoop& loop) {
  const RooflineLoop* before = former(report, loop);
  if (before == nullptr) {
    return nullptr;
  }
  const auto& point = report.place(*before).points.front();
  return {{"id", before->row().id}, {"x", estimate(point.x)}, {"y", estimate(point.y)}};
}

/// `all_models`: of each model, else of the chosen one.
Json loops(const RooflineReport& report, bool all_models) {
  Json list = Json::array();
  for (const RooflineLoop& at : report.roofline.loops) {
    const attribution::LoopRow& loop = at.row();
    Json json = {{"id", loop.id},
                 {"function", known_text(loop.function)},
                 {"file", known_text(loop.file)},
                 {"line_begin", known_line(loop.line_begin)},
                 {"line_end", known_line(loop.line_end)},
                 {"thread", at.work.thread != nullptr ? Json(at.work.thread->thread) : Json(nullptr)},
                 {"self_s", number(at.work.own_s)},
                 {"share", number(report.share_of(at.work.own_s))},
                 {"threads", at.work.members},
                 {"at_work", number(at.work.at_work)},
                 {"roofs_of_threads", at.work.threads.at_once},
                 {"performance", estimate(rate_of(at.work))},
                 {"intensity", estimate(models::roofline::intensity(at.work.point))}};
    for (const RooflineModel model : attribution::all_roofline_models) {
      if (all_models || model == report.model()) {
        json[model_name(model)] = place_of(at, model);
      }
    }
    json["before"] = before_of(report, at);
    json["verdict"] = verdict_in_words(at, report.model());
    list.push_back(std::move(json));
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
                         {"model", model_name(report.model())},
                         {"ops", ops_name(report.roofline.options.ops)},
                         {"by", report.roofline.options.by_thread ? "thread" : "loop"},
                         {"cpu_s", number(report.analysis->cpu_s)},
                         {"placed_s", number(report.roofline.placed_s)},
                         {"machine",
                          {{"name", report.machine->identity.name},
                           {"measured_at", report.machine->measured_at},
                           {"quick", report.machine->quick}}},
                         {"loops", loops(report, true)},
                         {"unplaced", unplaced(report)},
                         {"notes", report.roofline.notes}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string render_roofline_csv(const RooflineReport& report) {
  CsvTable table;
  for (const Json& row : loops(report, false)) {
    table.add(row);
  }
  return table.text();
}

}  // namespace crosstalk::driver
