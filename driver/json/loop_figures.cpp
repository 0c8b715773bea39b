// SPDX-License-Identifier: Apache-2.0
#include "driver/json/loop_figures.h"

#include <array>
#include <optional>

#include "attribution/busy/loop_figures.h"
#include "attribution/busy/wait_places.h"
#include "driver/json/counters.h"
#include "driver/json/values.h"
#include "driver/words/names.h"

namespace crosstalk::driver {
namespace {

Json busy(const attribution::LoopFigures& figures) {
  Json object = Json::object();
  Json reasons = Json::object();
  for (const models::Unit unit : models::all_units) {
    const models::BusyTime& time = figures.busy[unit];
    if (!time.seconds) {
      object[unit_name(unit)] = nullptr;
      reasons[unit_name(unit)] = time.exists ? known_text(figures.reasons[unit]) : Json("the machine has none");
      continue;
    }
    Json one = {{"seconds", known(time.seconds)},
                {"of_effective", known(time.of_effective)},
                {"of_effective_most", known(time.of_effective_most)},
                {"of_theoretical", known(time.of_theoretical)},
                {"per_s", known(figures.per_s[unit])},
                {"basis", figures.counted[unit] ? "counters" : "code"}};
    if (unit == models::Unit::fpu) {
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

/// False if the machine is not calibrated: no unit's time is known then.
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

/// Returns operations per second of CPU time by instruction kind.
Json flops_by_kind(const std::optional<models::FlopMix>& mix) {
  if (!mix) {
    return nullptr;
  }
  Json kinds = Json::array();
  models::for_each_kind([&](models::Width width, models::Precision precision, models::Operation operation) {
    if (const double per_s = mix->of[models::FlopMix::index(width, precision, operation)]; per_s > 0) {
      kinds.push_back({{"width", models::name(width)},
                       {"precision", models::name(precision)},
                       {"operation", models::name(operation)},
                       {"per_s", per_s}});
    }
  });
  if (mix->other > 0) {
    kinds.push_back({{"width", nullptr}, {"precision", nullptr}, {"operation", "other"}, {"per_s", mix->other}});
  }
  return kinds;
}

/// Returns the amounts of all threads together.
Json performance(const attribution::LoopRow& loop, const attribution::LoopFigures& figures) {
  const auto amount = [&loop](const std::optional<double>& per_s, double divisor = 1) {
    return known(per_s ? std::optional(*per_s * loop.cpu_s / divisor) : std::nullopt);
  };
  constexpr double line_bytes = 64;
  return {{"elapsed_s", figures.elapsed_s(loop.cpu_s)},
          {"flops", amount(loop.rates.flops.per_s)},
          {"instructions", amount(loop.rates.instructions.per_s)},
          {"loads", amount(loop.rates.loads.per_s)},
          {"stores", amount(loop.rates.stores.per_s)},
          {"access_bytes", known(figures.access_bytes)},
          {"l1d_bytes", amount(loop.rates.bytes.per_s)},
          {"memory_bytes", amount(figures.per_s[models::Unit::memory])},
          {"lines",
           {{"l2", amount(figures.per_s[models::Unit::l2], line_bytes)},
            {"l3", amount(figures.per_s[models::Unit::l3], line_bytes)},
            {"memory", amount(figures.per_s[models::Unit::memory], line_bytes)}}},
          {"served", by_level(figures.served)},
          {"flops_by_kind", flops_by_kind(figures.flops)}};
}

Json awaited_objects(const attribution::WaitPlace& place) {
  if (place.objects.empty()) {
    return nullptr;
  }
  Json list = Json::array();
  for (const attribution::WaitPlace::Object& object : place.objects) {
    list.push_back({{"object", object.name}, {"field", known_text(object.field)}, {"waited_s", object.waited_s}});
  }
  return list;
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

const char* application_class_name(models::ApplicationClass which) {
  static constexpr std::array<const char*, models::application_classes> names = {
      "matrix_multiplication", "low_bf_simple",  "cache_blocking",
      "low_bf_complex",        "high_bf_direct", "high_bf_indirect"};
  return names[static_cast<std::size_t>(which)];
}

Json wait_places(const attribution::Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::WaitPlace& place : analysis.wait_places) {
    const auto count = [&place](std::uint64_t waits) { return place.sampled ? Json(nullptr) : Json(waits); };
    Json threads = Json::array();
    for (const attribution::WaitPlace::Thread& thread : place.threads) {
      threads.push_back({{"thread", thread.thread}, {"waited_s", thread.waited_s}, {"count", count(thread.count)}});
    }
    list.push_back({{"kind", attribution::wait_kind_name(place.kind)},
                    {"function", known_text(place.function)},
                    {"file", known_text(place.file)},
                    {"line", place.line != 0 ? Json(place.line) : Json(nullptr)},
                    {"loop", place.loop ? Json(*place.loop) : Json(nullptr)},
                    {"waited_s", place.waited_s},
                    {"count", count(place.count)},
                    {"threads", std::move(threads)},
                    {"looks", place.sampled ? Json(place.looks) : Json(nullptr)},
                    {"waited_ci95", place.sampled ? interval(place.waited_ci95) : Json(nullptr)},
                    {"through", known_text(place.through)},
                    {"objects", awaited_objects(place)}});
  }
  return list;
}

void add_figures(Json& row, const attribution::LoopRow& loop) {
  row["waited"] = loop.waited ? Json{{"lock", loop.waited->lock_s},
                                     {"barrier", loop.waited->barrier_s},
                                     {"condition", loop.waited->condition_s},
                                     {"count", loop.waited->sampled ? Json(nullptr) : Json(loop.waited->count)}}
                              : Json(nullptr);
  for (const char* const name : {"busy", "waits", "class", "class_evidence", "application_classes",
                                 "application_unknown", "advice", "shape", "performance", "counters"}) {
    row[name] = nullptr;
  }
  if (!loop.figures) {
    return;
  }
  const attribution::LoopFigures& figures = *loop.figures;
  row["waits"] = waits_of(figures.waits);
  row["advice"] = advice(figures.advice);
  row["shape"] = shape(figures);
  row["performance"] = performance(loop, figures);
  row["counters"] = figures.counters ? counter_rates(*figures.counters) : Json(nullptr);
  if (is_calibrated(figures)) {
    row["busy"] = busy(figures);
    row["class"] = figures.busy_class.which ? Json(busy_class_name(*figures.busy_class.which)) : Json(nullptr);
    row["class_evidence"] = known_text(figures.busy_class.evidence);
    row["application_classes"] = application_classes(figures.application);
    row["application_unknown"] = known_text(figures.application.unknown);
  }
}

}  // namespace crosstalk::driver
