// SPDX-License-Identifier: Apache-2.0
#include "driver/json_loop_figures.h"

#include <array>
#include <cmath>
#include <optional>

#include "attribution/busy/loop_figures.h"
#include "attribution/busy/wait_places.h"

namespace crosstalk::driver {
namespace {

using Json = nlohmann::ordered_json;
using models::Unit;

/// JSON has no infinities; what is not a number is not known.
Json known(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); }
Json known_text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

const char* unit_name(Unit unit) {
  static constexpr std::array<const char*, models::unit_count> names = {"memory", "l3", "l2", "l1d", "fpu"};
  return names[static_cast<std::size_t>(unit)];
}

Json busy(const attribution::LoopFigures& figures) {
  Json object = Json::object();
  Json reasons = Json::object();
  for (const Unit unit : models::all_units) {
    const models::BusyTime& time = figures.busy[unit];
    if (!time.seconds) {
      object[unit_name(unit)] = nullptr;
      reasons[unit_name(unit)] = time.exists ? known_text(figures.reasons[unit]) : Json("the machine has none");
      continue;
    }
    Json one = {{"seconds", known(time.seconds)},
                {"of_effective", known(time.of_effective)},
                {"of_theoretical", known(time.of_theoretical)},
                {"per_s", known(figures.per_s[unit])}};
    if (unit == Unit::fpu) {
      one["of_machine"] = known(figures.fpu_of_machine);
    }
    object[unit_name(unit)] = std::move(one);
  }
  object["bytes_to_flops"] = known(figures.bytes_to_flops);
  object["machine_balance"] = known(figures.balance);
  object["reasons"] = std::move(reasons);
  object["notes"] = figures.notes;
  return object;
}

/// Nothing was calibrated, so no unit's time can be known.
bool is_calibrated(const attribution::LoopFigures& figures) { return !figures.busy_class.evidence.empty(); }

Json application_classes(const models::ApplicationCandidates& found) {
  Json list = Json::array();
  for (const models::ApplicationCandidate& candidate : found.candidates) {
    list.push_back({{"class", application_class_name(candidate.which)},
                    {"number", static_cast<int>(candidate.which) + 1},
                    {"evidence", candidate.evidence}});
  }
  return list;
}

Json advice(const std::vector<models::Remedy>& remedies) {
  Json list = Json::array();
  for (const models::Remedy& remedy : remedies) {
    list.push_back(
        {{"title", remedy.title}, {"why", remedy.why}, {"evidence", remedy.evidence}, {"section", remedy.section}});
  }
  return list;
}

Json shape(const attribution::LoopFigures& figures) {
  return {{"threads", figures.threads},          {"imbalance", known(figures.imbalance)},
          {"simd_share", known(figures.packed)}, {"multiply_add_share", known(figures.multiply_adds)},
          {"gathers", figures.gathers},          {"scatters", figures.scatters}};
}

}  // namespace

Json waits_of(const models::CycleAccount& account) {
  Json object = Json::object();
  for (std::size_t i = 0; i < models::cycle_classes; ++i) {
    const auto which = static_cast<models::CycleClass>(i);
    object[models::cycle_class_name(which)] = known(account[which]);
  }
  object["notes"] = account.notes;
  return object;
}

const char* busy_class_name(models::BusyClass which) {
  static constexpr std::array<const char*, models::busy_classes> names = {"in_memory", "in_l3",  "in_l2",
                                                                          "in_l2_fpu", "in_l1d", "under_tuned"};
  return names[static_cast<std::size_t>(which)];
}

const char* application_class_name(models::ApplicationClass which) {
  static constexpr std::array<const char*, models::application_classes> names = {
      "matrix_multiplication", "low_bf_simple",  "cache_blocking",
      "low_bf_complex",        "high_bf_direct", "high_bf_indirect"};
  return names[static_cast<std::size_t>(which)];
}

Json wait_places(const attribution::Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::WaitPlace& place : analysis.wait_places) {
    Json threads = Json::array();
    for (const attribution::WaitPlace::Thread& thread : place.threads) {
      threads.push_back({{"thread", thread.thread}, {"waited_s", thread.waited_s}, {"count", thread.count}});
    }
    list.push_back({{"kind", attribution::wait_kind_name(place.kind)},
                    {"function", known_text(place.function)},
                    {"file", known_text(place.file)},
                    {"line", place.line != 0 ? Json(place.line) : Json(nullptr)},
                    {"loop", place.loop ? Json(*place.loop) : Json(nullptr)},
                    {"waited_s", place.waited_s},
                    {"count", place.count},
                    {"threads", std::move(threads)}});
  }
  return list;
}

void add_figures(Json& row, const attribution::LoopRow& loop) {
  row["waited"] = loop.waited ? Json{{"lock", loop.waited->lock_s},
                                     {"barrier", loop.waited->barrier_s},
                                     {"condition", loop.waited->condition_s},
                                     {"count", loop.waited->count}}
                              : Json(nullptr);
  for (const char* const name :
       {"busy", "waits", "class", "class_evidence", "application_classes", "application_unknown", "advice", "shape"}) {
    row[name] = nullptr;
  }
  if (!loop.figures) {
    return;
  }
  const attribution::LoopFigures& figures = *loop.figures;
  row["waits"] = waits_of(figures.waits);
  row["advice"] = advice(figures.advice);
  row["shape"] = shape(figures);
  if (is_calibrated(figures)) {
    row["busy"] = busy(figures);
    row["class"] = figures.busy_class.which ? Json(busy_class_name(*figures.busy_class.which)) : Json(nullptr);
    row["class_evidence"] = known_text(figures.busy_class.evidence);
    row["application_classes"] = application_classes(figures.application);
    row["application_unknown"] = known_text(figures.application.unknown);
  }
}

}  // namespace crosstalk::driver
