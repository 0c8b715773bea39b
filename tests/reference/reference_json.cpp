// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/reference_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace crosstalk::reference {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json line_or_null(std::uint32_t line) { return line == 0 ? Json() : Json(line); }

Json cells_json(const Cells& cells) {
  Json list = Json::array();
  for (const auto& [threads, counts] : cells) {
    list.push_back({{"producer", threads.first},
                    {"consumer", threads.second},
                    {"true", counts.true_sharing},
                    {"false", counts.false_sharing}});
  }
  return list;
}

Json site_json(const SourceSite& site) {
  return {
      {"file", text_or_null(site.file)}, {"line", line_or_null(site.line)}, {"function", text_or_null(site.function)}};
}

Json work_json(const Work& work) {
  return {{"instructions", work.instructions},
          {"flops", work.flops},
          {"loads", work.loads},
          {"stores", work.stores},
          {"load_bytes", work.load_bytes},
          {"store_bytes", work.store_bytes}};
}

template <class Rows, class Make>
Json list_json(const Rows& rows, std::size_t most, Make make) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    Json row = make(rows[i]);
    list.push_back(std::move(row));
  }
  return list;
}

template <class Row>
Json with_cells(Json row, const Row& from) {
  row["count"] = total(from.cells);
  row["cells"] = cells_json(from.cells);
  return row;
}

Json lines_json(const Reference& reference, std::size_t most) {
  return list_json(reference.sites, most, [](const SiteRow& row) {
    Json json = site_json(row.site);
    json["role"] = row.is_producer ? "producer" : "consumer";
    return with_cells(std::move(json), row);
  });
}

Json objects_json(const Reference& reference, std::size_t most) {
  return list_json(reference.objects, most, [](const ObjectRow& row) {
    Json json = {{"name", row.object.name},
                 {"kind", text_or_null(row.object.kind)},
                 {"size", row.object.bytes ? Json(*row.object.bytes) : Json()}};
    return with_cells(std::move(json), row);
  });
}

Json loops_json(const Reference& reference, std::size_t most) {
  std::size_t id = 0;
  return list_json(reference.loops, most, [&](const LoopRow& row) {
    return Json{{"id", id++},
                {"parent", row.parent ? Json(*row.parent) : Json()},
                {"function", text_or_null(row.function)},
                {"file", text_or_null(row.file)},
                {"module", row.module},
                {"line_begin", line_or_null(row.line_begin)},
                {"line_end", line_or_null(row.line_end)},
                {"depth", row.depth},
                {"iterations", row.iterations},
                {"work", work_json(row.work)},
                {"self", work_json(row.self)}};
  });
}

}  // namespace

std::string json_text(const Reference& reference, std::size_t most_rows) {
  Json json = {{"schema", "crosstalk.reference/1"},      {"threads", reference.threads},
               {"quantum", reference.quantum},           {"seed", reference.seed},
               {"stolen_turns", reference.stolen_turns}, {"work", work_json(reference.work)},
               {"cells", cells_json(reference.cells)}};
  Json& invalidations = json["invalidations"] = Json::array();
  for (const auto& [threads, count] : reference.invalidations) {
    invalidations.push_back({{"producer", threads.first}, {"consumer", threads.second}, {"count", count}});
  }
  json["rows"] = {{"lines", reference.sites.size()},
                  {"line_pairs", reference.pairs.size()},
                  {"objects", reference.objects.size()},
                  {"cache_lines", reference.lines.size()},
                  {"loops", reference.loops.size()}};
  json["lines"] = lines_json(reference, most_rows);
  json["line_pairs"] = list_json(reference.pairs, most_rows, [](const SitePairRow& row) {
    return with_cells({{"producer", site_json(row.producer)}, {"consumer", site_json(row.consumer)}}, row);
  });
  json["objects"] = objects_json(reference, most_rows);
  json["cache_lines"] = list_json(reference.lines, most_rows, [](const LineRow& row) {
    return with_cells({{"address", row.address}, {"object", row.object}}, row);
  });
  json["loops"] = loops_json(reference, most_rows);
  // Names are bytes; those that are no UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace crosstalk::reference
