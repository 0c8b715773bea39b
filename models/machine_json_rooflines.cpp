// SPDX-License-Identifier: Apache-2.0
// The figures of rooflines in a machine file. Files of an older crosstalk lack their members.
#include "models/machine_json_parts.h"

namespace crosstalk::models::machine_json {
namespace {

Json sparse_json(const Machine& m) {
  Json roofs = Json::array(), bands = Json::array();
  for (const SparseRoof& s : m.sparse_roofs) {
    const Json key = {
        {"matrix", name(s.matrix)}, {"vector", name(s.vector)}, {"scope", name(s.scope)}, {"columns", s.columns}};
    roofs.push_back(with(key, s.bytes_per_s, bytes_per_second));
  }
  for (const SparseBand& s : m.sparse_bands) {
    bands.push_back({{"matrix", name(s.matrix)},
                     {"row_nonzeros", s.row_nonzeros},
                     {"scope", name(s.scope)},
                     {"columns", s.columns},
                     {"rows", s.rows},
                     {"worst", with(Json::object(), s.worst, flops_per_second)},
                     {"best", with(Json::object(), s.best, flops_per_second)}});
  }
  return {{"sparse_roofs", roofs}, {"sparse_bands", bands}};
}

void add_compute_roofs(const Machine& m, Json& file) {
  Json& thread_flops = file["thread_flops"] = Json::array();
  for (const ThreadFlops& f : m.thread_flops) {
    const Json key = {{"width", name(f.width)},
                      {"precision", name(f.precision)},
                      {"operation", name(f.operation)},
                      {"threads", f.threads}};
    thread_flops.push_back(with(key, f.flops_per_s, flops_per_second));
  }
  Json& flop_latencies = file["flop_latencies"] = Json::array();
  for (const FlopLatency& f : m.flop_latencies) {
    const Json key = {{"width", name(f.width)}, {"precision", name(f.precision)}, {"operation", name(f.operation)}};
    flop_latencies.push_back(with(key, f.seconds, seconds));
  }
  Json& integers = file["integers"] = Json::array();
  for (const IntegerPeak& i : m.integers) {
    const Json key = {{"width", name(i.width)},
                      {"element", name(i.element)},
                      {"operation", name(i.operation)},
                      {"scope", name(i.scope)}};
    integers.push_back(with(key, i.per_s, operations_per_second));
  }
}

void read_compute_roofs(Reader& r, const Json& file, Machine& m) {
  r.each_of_newer(file, "thread_flops", [&](const Json& row, const std::string& path) {
    m.thread_flops.push_back({r.one_of<Width>(row, path, "width"), r.one_of<Precision>(row, path, "precision"),
                              r.one_of<Operation>(row, path, "operation"), r.whole<std::uint32_t>(row, path, "threads"),
                              r.figure(row, path, flops_per_second)});
  });
  r.each_of_newer(file, "flop_latencies", [&](const Json& row, const std::string& path) {
    m.flop_latencies.push_back({r.one_of<Width>(row, path, "width"), r.one_of<Precision>(row, path, "precision"),
                                r.one_of<Operation>(row, path, "operation"), r.figure(row, path, seconds)});
  });
  r.each_of_newer(file, "integers", [&](const Json& row, const std::string& path) {
    m.integers.push_back({r.one_of<Width>(row, path, "width"), r.one_of<Element>(row, path, "element"),
                          r.one_of<Operation>(row, path, "operation"), r.one_of<Scope>(row, path, "scope"),
                          r.figure(row, path, operations_per_second)});
  });
}

void read_sparse(Reader& r, const Json& file, Machine& m) {
  r.each_of_newer(file, "sparse_roofs", [&](const Json& row, const std::string& path) {
    m.sparse_roofs.push_back({r.one_of<Level>(row, path, "matrix"), r.one_of<Level>(row, path, "vector"),
                              r.one_of<Scope>(row, path, "scope"), r.whole<std::uint32_t>(row, path, "columns"),
                              r.figure(row, path, bytes_per_second)});
  });
  r.each_of_newer(file, "sparse_bands", [&](const Json& row, const std::string& path) {
    m.sparse_bands.push_back({r.one_of<Level>(row, path, "matrix"), r.whole<std::uint32_t>(row, path, "row_nonzeros"),
                              r.one_of<Scope>(row, path, "scope"), r.whole<std::uint32_t>(row, path, "columns"),
                              r.whole<std::uint32_t>(row, path, "rows"),
                              r.figure_member(row, path, "worst", flops_per_second),
                              r.figure_member(row, path, "best", flops_per_second)});
  });
}

}  // namespace

void add_rooflines(const Machine& m, Json& file) {
  Json& accesses = file["accesses"] = Json::array();
  for (const AccessRate& a : m.accesses) {
    const Json key = {
        {"level", name(a.level)}, {"width", name(a.width)}, {"loads_to_stores", name(a.mix)}, {"threads", a.threads}};
    accesses.push_back(with(key, a.bytes_per_s, bytes_per_second));
  }
  add_compute_roofs(m, file);
  Json& kinds = file["kinds"] = Json::array();
  for (const KindLimits& k : m.kinds) {
    kinds.push_back({{"kind", name(k.kind)},
                     {"per_cycle", with(Json::object(), k.per_cycle, instructions_per_cycle)},
                     {"buffer", with(Json::object(), k.buffer, instructions_count)}});
  }
  Json& groups = file["groups"] = Json::array();
  for (const GroupRate& g : m.groups) {
    const Json key = {{"level", name(g.level)}, {"width", name(g.width)}, {"fillers", g.fillers}};
    groups.push_back(with(key, g.per_cycle, instructions_per_cycle));
  }
  Json& ridges = file["ridges"] = Json::array();
  for (const RidgeRate& each : m.ridges) {
    const Json key = {
        {"level", name(each.level)}, {"width", name(each.width)}, {"kind", name(each.kind)}, {"fillers", each.fillers}};
    ridges.push_back(with(key, each.per_cycle, instructions_per_cycle));
  }
  file.update(sparse_json(m));
}

void read_rooflines(Reader& r, const Json& file, Machine& m) {
  r.each_of_newer(file, "accesses", [&](const Json& row, const std::string& path) {
    m.accesses.push_back({r.one_of<Level>(row, path, "level"), r.one_of<Width>(row, path, "width"),
                          r.one_of<Mix>(row, path, "loads_to_stores"), r.whole<std::uint32_t>(row, path, "threads"),
                          r.figure(row, path, bytes_per_second)});
  });
  read_compute_roofs(r, file, m);
  r.each_of_newer(file, "kinds", [&](const Json& row, const std::string& path) {
    m.kinds.push_back({r.one_of<Kind>(row, path, "kind"),
                       r.figure_member(row, path, "per_cycle", instructions_per_cycle),
                       r.figure_member(row, path, "buffer", instructions_count)});
  });
  r.each_of_newer(file, "groups", [&](const Json& row, const std::string& path) {
    m.groups.push_back({r.one_of<Level>(row, path, "level"), r.one_of<Width>(row, path, "width"),
                        r.whole<std::uint32_t>(row, path, "fillers"), r.figure(row, path, instructions_per_cycle)});
  });
  r.each_of_newer(file, "ridges", [&](const Json& row, const std::string& path) {
    m.ridges.push_back({r.one_of<Level>(row, path, "level"), r.one_of<Width>(row, path, "width"),
                        r.one_of<Kind>(row, path, "kind"), r.whole<std::uint32_t>(row, path, "fillers"),
                        r.figure(row, path, instructions_per_cycle)});
  });
  read_sparse(r, file, m);
}

}  // namespace crosstalk::models::machine_json
