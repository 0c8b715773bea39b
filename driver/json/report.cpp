// SPDX-License-Identifier: Apache-2.0
#include "driver/json/report.h"

#include <utility>

#include "attribution/objects/sharing_kind.h"
#include "driver/json/counters.h"
#include "driver/json/loop_figures.h"
#include "driver/json/loops.h"
#include "driver/json/memory.h"
#include "driver/json/undetected.h"
#include "driver/json/values.h"
#include "driver/words/names.h"
#include "models/machine_json.h"
#include "profile/topology.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::Matrix;

Json amount(const attribution::Amount& amount) {
  return {{"count", known(amount.count)},
          {"count_ci95", interval(amount.count_ci95)},
          {"count_unknown", amount.count ? Json(nullptr) : known_text(amount.count_unknown)},
          {"cost_s", known(amount.cost_s)},
          {"cost_ci95", interval(amount.cost_ci95)},
          {"gain_s", known(amount.gain_s)},
          {"gain_ci95", interval(amount.gain_ci95)},
          {"detections", number(amount.detections)},
          {"seen", amount.seen}};
}

Json cells(const Matrix& matrix) {
  Json list = Json::array();
  for (const attribution::Cell& cell : matrix) {
    list.push_back({{"producer", cell.producer},
                    {"consumer", cell.consumer},
                    {"true", amount(cell.true_sharing)},
                    {"false", amount(cell.false_sharing)}});
  }
  return list;
}

/// Adds a row's cost interval and gain, true and false sharing together.
void add_gain(Json& row, const attribution::Amount& true_sharing, const attribution::Amount& false_sharing) {
  const attribution::Sum sum = attribution::sum_of(true_sharing, false_sharing);
  row["cost_ci95"] = interval(sum.cost_ci95);
  row["gain_s"] = known(sum.gain_s);
  row["gain_ci95"] = interval(sum.gain_ci95);
}

Json topology(const profile::Session& session) {
  const auto read = profile::Topology::parse(session.topology);
  if (!read || read->cpus().empty()) {
    return nullptr;
  }
  const auto place = [](std::int32_t value) { return value < 0 ? Json(nullptr) : Json(value); };
  Json list = Json::array();
  for (const profile::CpuPlace& cpu : read->cpus()) {
    list.push_back({{"cpu", cpu.cpu},
                    {"core", place(cpu.core)},
                    {"package", place(cpu.package)},
                    {"l2", place(cpu.l2)},
                    {"l3", place(cpu.l3)},
                    {"node", place(cpu.node)}});
  }
  return list;
}

Json calibration(const profile::Session& session) {
  const auto machine = models::parse_machine(session.machine);
  if (!machine) {
    return nullptr;
  }
  return {{"measured_at", machine->measured_at}, {"quick", machine->quick}};
}

Json machine(const profile::Session& session) {
  return {{"host", known_text(session.host)},
          {"kernel", known_text(session.kernel)},
          {"cpu_model", known_text(session.cpu_model)},
          {"cpus", session.cpus == 0 ? Json(nullptr) : Json(session.cpus)},
          {"topology", topology(session)},
          {"line_bytes", session.line_bytes},
          {"calibration", calibration(session)}};
}

Json processes(const Analysis& analysis) {
  Json list = Json::array();
  for (const profile::ProcessRow& process : analysis.processes) {
    list.push_back({{"pid", process.pid},
                    {"parent", process.parent_pid},
                    {"command", process.command},
                    {"exit_status", known(process.exit_status)},
                    {"observation", known_text(observation_name(process.observation))},
                    {"unobserved_because", known_text(process.unobserved_because)}});
  }
  return list;
}

Json threads(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::ThreadSummary& thread : analysis.threads) {
    list.push_back({{"index", thread.index},
                    {"pid", thread.pid},
                    {"tid", thread.tid},
                    {"name", thread.name},
                    {"cpu_s", known(thread.cpu_s)},
                    {"samples", thread.samples},
                    {"kernel_share", known(thread.kernel_share)},
                    {"communication_s", known(thread.communication_s)},
                    {"start_routine", known_text(thread.start_routine)},
                    {"brief", thread.brief},
                    {"listed", thread.listed},
                    {"waits", thread.waits ? waits_of(*thread.waits) : Json(nullptr)}});
  }
  return list;
}

Json threads_of(const attribution::RegionSummary& region) {
  Json list = Json::array();
  for (const attribution::RegionThread& thread : region.threads) {
    list.push_back({{"thread", thread.thread},
                    {"entries", thread.entries},
                    {"elapsed_s", number(thread.elapsed_s)},
                    {"cpu_s", known(thread.cpu_s)},
                    {"cpu_ci95", thread.cpu_s ? interval(thread.cpu_ci95) : Json(nullptr)},
                    {"samples", thread.samples},
                    {"waited_s", thread.waited ? number(thread.waited->total()) : Json(nullptr)},
                    {"waits", waits_of(thread.waits)}});
  }
  return list;
}

Json regions(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::RegionSummary& region : analysis.regions) {
    list.push_back({{"id", region.id},
                    {"parent", region.parent ? Json(*region.parent) : Json(nullptr)},
                    {"name", region.name},
                    {"path", region.path},
                    {"entries", region.entries},
                    {"elapsed_s", number(region.elapsed_s)},
                    {"cpu_s", known(region.cpu_s)},
                    {"cpu_ci95", region.cpu_s ? interval(region.cpu_ci95) : Json(nullptr)},
                    {"samples", region.samples},
                    {"imbalance", known(region.imbalance)},
                    {"waits", waits_of(region.waits)},
                    {"threads", threads_of(region)}});
  }
  return list;
}

Json processors(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::ProcessorSummary& processor : analysis.processors) {
    list.push_back({{"cpu", processor.cpu},
                    {"cpu_s", known(processor.cpu_s)},
                    {"samples", processor.samples},
                    {"kernel_share", number(processor.kernel_share)}});
  }
  return list;
}

Json warnings(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::Warning& warning : analysis.warnings) {
    list.push_back({{"code", warning.code}, {"message", warning.message}});
  }
  return list;
}

Json settings(const attribution::SamplingSummary& summary, const profile::SessionConfig& config) {
  if (!summary.settings_unknown.empty()) {
    return {{"period_s", nullptr}, {"budget", nullptr}, {"watchpoints", nullptr}, {"board_slots", nullptr}};
  }
  return {{"period_s", static_cast<double>(config.period_ns) * 1e-9},
          {"budget", config.budget},
          {"watchpoints", config.watchpoints},
          {"board_slots", config.board_slots}};
}

Json probes_skipped(const profile::Session& session) {
  if (!profile::are_lines_probed(session)) {
    return nullptr;
  }
  const profile::SkippedProbes& skipped = session.skipped_probes;
  return {{"unreadable", skipped.unreadable},
          {"in_handlers", skipped.in_handlers},
          {"beside_another", skipped.beside_another},
          {"went_on", skipped.went_on}};
}

Json sampling(const attribution::SamplingSummary& summary, const std::string& shares_of,
              const profile::Session& session) {
  Json events = Json::array();
  for (const auto& event : summary.events) {
    events.push_back(
        {{"name", event.name},
         {"period", event.period != 0 ? Json(event.period) : Json(nullptr)},
         {"unit", event.unit},
         {"samples", event.samples},
         {"source", known_text(event.source)},
         {"least_latency_cycles", event.least_latency_cycles != 0 ? Json(event.least_latency_cycles) : Json(nullptr)}});
  }
  const auto spent = [&](const auto& value) { return summary.settings_unknown.empty() ? Json(value) : Json(nullptr); };
  return {{"source", summary.source},
          {"source_choice", known_text(summary.source_choice)},
          {"shares_of", known_text(shares_of)},
          {"method", summary.method},
          {"method_choice", known_text(summary.method_choice)},
          {"partner", known_text(summary.partner)},
          {"estimator", known_text(summary.estimator)},
          {"samples", summary.samples},
          {"lost", summary.lost},
          {"armed", summary.armed},
          {"traps", summary.traps},
          {"with_address", summary.with_address},
          {"user_mode", summary.user_mode},
          {"unknown_frames", known(summary.unknown_frames)},
          {"probes_skipped", probes_skipped(session)},
          {"watchpoints", watch_trial(session.watch_trial)},
          {"events", events},
          {"settings", settings(summary, session.config)},
          {"settings_unknown", known_text(summary.settings_unknown)},
          {"overhead",
           {{"fraction", known(summary.overhead_fraction)},
            {"handlers_s", spent(number(summary.handlers_s))},
            {"switches_s", spent(number(summary.switches_s))},
            {"stand_ins_s", spent(number(summary.stand_ins_s))},
            {"recorder_s", spent(number(static_cast<double>(session.recorder_cpu_ns) * 1e-9))},
            {"memory_bytes", spent(summary.memory_bytes)}}}};
}

Json sampled_uses(const std::vector<attribution::SampledUse>& uses) {
  Json list = Json::array();
  for (const attribution::SampledUse& use : uses) {
    list.push_back(
        {{"object", use.object}, {"threads", use.threads}, {"time_s", number(use.time_s)}, {"samples", use.samples}});
  }
  return list;
}

Json communication(const attribution::Communication& found) {
  return {{"cells", cells(found.cells)},
          {"totals", {{"true_sharing", amount(found.true_sharing)}, {"false_sharing", amount(found.false_sharing)}}},
          {"cores", cells(found.cores)},
          {"unseen", unseen(found.unseen)},
          {"undetected", undetected(found.undetected)},
          {"sampled_uses", sampled_uses(found.sampled_uses)},
          {"invalidations", cells(found.invalidations)}};
}

/// Returns the cells of groups; unlike a thread, a group may exchange with itself.
Json group_cells(const Matrix& matrix) {
  Json list = cells(matrix);
  for (Json& cell : list) {
    cell["within"] = cell["producer"] == cell["consumer"];
  }
  return list;
}

Json grouped(const attribution::Grouping& grouping) {
  Json groups = Json::array();
  for (const attribution::Group& group : grouping.groups) {
    groups.push_back({{"name", group.name},
                      {grouping.of_processors() ? "processors" : "threads", group.members},
                      {"cpu_s", known(group.cpu_s)},
                      {"samples", group.samples},
                      {"kernel_share", known(group.kernel_share)},
                      {"communication_s", known(group.communication_s)}});
  }
  return {{"by", group_by_name(grouping.by)},
          {"note", known_text(grouping.note)},
          {"groups", groups},
          {"cells", group_cells(grouping.cells)},
          {"invalidations", grouping.of_processors() ? Json(nullptr) : group_cells(grouping.invalidations)}};
}

Json lines(const attribution::Communication& found) {
  Json list = Json::array();
  for (const attribution::LineRow& row : found.lines) {
    Json line = {{"file", known_text(row.file)},
                 {"line", known_line(row.line)},
                 {"function", known_text(row.function)},
                 {"through", known_text(row.through)},
                 {"role", role_name(row.role)},
                 {"cost_s", number(row.cost_s)},
                 {"cells", cells(row.cells)},
                 {"call_paths", call_paths(row.call_paths)},
                 {"module", known_text(row.module)},
                 {"caller_known", row.caller_known}};
    add_gain(line, row.true_sharing, row.false_sharing);
    list.push_back(std::move(line));
  }
  return list;
}

Json line_pairs(const attribution::Communication& found) {
  const auto end = [](const std::string& file, std::uint32_t line, const std::string& function,
                      const std::string& through, const std::string& module, bool caller_known) {
    return Json{{"file", known_text(file)},       {"line", known_line(line)},     {"function", known_text(function)},
                {"through", known_text(through)}, {"module", known_text(module)}, {"caller_known", caller_known}};
  };
  Json list = Json::array();
  for (const attribution::LinePair& pair : found.line_pairs) {
    Json row = {{"producer", end(pair.producer_file, pair.producer_line, pair.producer_function, pair.producer_through,
                                 pair.producer_module, pair.producer_caller_known)},
                {"consumer", end(pair.consumer_file, pair.consumer_line, pair.consumer_function, pair.consumer_through,
                                 pair.consumer_module, pair.consumer_caller_known)},
                {"object", known_text(pair.object)},
                {"cost_s", number(pair.cost_s)},
                {"cells", cells(pair.cells)}};
    add_gain(row, pair.true_sharing, pair.false_sharing);
    list.push_back(std::move(row));
  }
  return list;
}

Json objects(const attribution::Communication& found) {
  Json list = Json::array();
  for (const attribution::ObjectRow& row : found.objects) {
    Json offsets = Json::array();
    for (const attribution::OffsetRow& offset : row.offsets) {
      offsets.push_back({{"thread", offset.thread},
                         {"offset", offset.offset},
                         {"bytes", offset.bytes == 0 ? Json(nullptr) : Json(offset.bytes)},
                         {"loads", offset.loads},
                         {"stores", offset.stores},
                         {"field", known_text(offset.field)},
                         {"field_begin", offset.field.empty() ? Json(nullptr) : Json(offset.field_begin)},
                         {"type", known_text(offset.type)}});
    }
    Json sync_fields = Json::array();
    for (const attribution::SyncField& field : row.sync_fields) {
      sync_fields.push_back(
          {{"field", field.field}, {"sharing", sharing_kind_name(field.kind)}, {"cost_s", number(field.cost_s)}});
    }
    Json object = {{"name", row.name},
                   {"kind", known_text(object_kind_name(row.kind))},
                   {"size", known(row.size)},
                   {"field", known_text(row.field)},
                   {"allocated_at", known_text(row.allocated_at)},
                   {"site", known_text(row.site)},
                   {"blocks", row.blocks == 0 ? Json(nullptr) : Json(row.blocks)},
                   {"allocation_path", frames(row.allocation_path)},
                   {"sharing", sharing_kind_name(row.sharing.kind)},
                   {"sharing_perhaps", row.sharing.perhaps ? Json(sharing_kind_name(*row.sharing.perhaps)) : Json()},
                   {"cost_s", number(row.cost_s)},
                   {"cells", cells(row.cells)},
                   {"offsets", offsets},
                   {"sync_fields", sync_fields}};
    add_gain(object, row.true_sharing, row.false_sharing);
    list.push_back(std::move(object));
  }
  return list;
}

Json callers(const std::vector<attribution::CallerRow>& rows) {
  Json list = Json::array();
  for (const attribution::CallerRow& row : rows) {
    list.push_back({{"function", known_text(row.function)},
                    {"file", known_text(row.file)},
                    {"line", known_line(row.line)},
                    {"share", number(row.share)}});
  }
  return list;
}

Json kernel(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::KernelRow& row : analysis.kernel) {
    list.push_back({{"name", row.name},
                    {"system_call", row.system_call},
                    {"self_s", seconds(analysis, row.self_s)},
                    {"share", number(row.share)},
                    {"samples", row.samples},
                    {"callers", callers(row.callers)}});
  }
  return list;
}

Json functions(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::FunctionRow& row : analysis.functions) {
    list.push_back({{"function", known_text(row.function)},
                    {"file", known_text(row.file)},
                    {"line", known_line(row.line)},
                    {"module", known_text(row.module)},
                    {"self_s", seconds(analysis, row.self_s)},
                    {"share", number(row.share)},
                    {"kernel_s", seconds(analysis, row.kernel_s)},
                    {"samples", row.samples},
                    {"callers", callers(row.callers)}});
  }
  return list;
}

Json findings(const Analysis& analysis) {
  Json list = Json::array();
  for (const attribution::Finding& finding : analysis.findings) {
    list.push_back({{"sentence", finding.sentence},
                    {"kind", finding.kind},
                    {"cost_s", number(finding.cost_s)},
                    {"gain_s", known(finding.gain_s)},
                    {"gain_ci95", interval(finding.gain_ci95)},
                    {"object", known_text(finding.object)},
                    {"producer", known_text(finding.producer)},
                    {"consumer", known_text(finding.consumer)},
                    {"advice", known_text(finding.advice)}});
  }
  return list;
}

Json waits(const profile::ProcessorWaits& waits) {
  if (waits.threads == 0) {
    return nullptr;
  }
  const double ran_s = static_cast<double>(waits.ran_ns) * 1e-9;
  const double waited_s = static_cast<double>(waits.waited_ns) * 1e-9;
  return {{"threads", waits.threads},
          {"ran_s", number(ran_s)},
          {"waited_s", number(waited_s)},
          {"share", ran_s + waited_s > 0 ? number(waited_s / (ran_s + waited_s)) : Json(nullptr)}};
}

Json unobserved_cpu(const profile::Session& session) {
  return session.unobserved_cpu_ns ? number(static_cast<double>(*session.unobserved_cpu_ns) * 1e-9) : Json(nullptr);
}

Json head(const Analysis& analysis) {
  return {{"schema", "crosstalk.report/1"},
          {"command", analysis.session.command},
          {"exit_status", known(analysis.session.exit_status)},
          {"duration_s", number(analysis.duration_s)},
          {"cpu_s", cpu_time_known(analysis) ? number(analysis.cpu_s) : Json(nullptr)},
          {"unobserved_cpu_s", unobserved_cpu(analysis.session)},
          {"complete", analysis.session.complete},
          {"filter", known_text(analysis.filter)},
          {"machine", machine(analysis.session)},
          {"waits", waits(analysis.session.waits)},
          {"waits_measured", analysis.session.config.measure_waits != 0},
          {"processes", processes(analysis)},
          {"threads", threads(analysis)},
          {"processors", processors(analysis)},
          {"warnings", warnings(analysis)}};
}

}  // namespace

Json report_document(const Analysis& analysis, std::optional<View> view, const attribution::Grouping* groups) {
  const auto wants = [view](View part) { return !view || *view == part; };
  Json report = head(analysis);
  if (wants(View::summary)) {
    report["findings"] = findings(analysis);
    report["sampling"] = sampling(analysis.sampling, analysis.shares_of, analysis.session);
  }
  if (wants(View::matrix)) {
    report["communication"] = communication(analysis.communication);
  }
  if (groups != nullptr && (wants(View::matrix) || wants(View::threads))) {
    report["groups"] = grouped(*groups);
  }
  if (wants(View::lines)) {
    report["lines"] = lines(analysis.communication);
    report["line_pairs"] = line_pairs(analysis.communication);
  }
  if (wants(View::objects)) {
    report["objects"] = objects(analysis.communication);
  }
  if (wants(View::memory)) {
    report["memory"] = memory_json(analysis.memory);
  }
  if (wants(View::regions)) {
    report["regions"] = regions(analysis);
  }
  if (wants(View::loops) || wants(View::busy)) {
    report["loops"] = loops_json(analysis);
    report["counters"] = counters(analysis);
    report["functions"] = functions(analysis);
    report["kernel"] = kernel(analysis);
    report["waiting"] = wait_places(analysis);
  }
  return report;
}

std::string render_json(const Analysis& analysis, std::optional<View> view, const attribution::Grouping* groups) {
  // Names come from programs in any encoding: malformed UTF-8 becomes U+FFFD instead of an error.
  return report_document(analysis, view, groups).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace crosstalk::driver
