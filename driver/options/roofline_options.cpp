// SPDX-License-Identifier: Apache-2.0
#include "driver/options/roofline_options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "base/number.h"
#include "driver/options/named_value.h"

namespace crosstalk::driver {
namespace {

constexpr const char* roofline_examples =
    "Examples:\n"
    "  crosstalk calibrate                        measures the machine's roofs, once\n"
    "  crosstalk record ./solver && crosstalk roofline\n"
    "  crosstalk roofline --model irm run.db      by the traffic of each level of the caches\n"
    "  crosstalk roofline --by thread --ops fp32  each thread of a loop, single precision\n"
    "  crosstalk roofline --format svg -o roofline.svg\n"
    "  crosstalk roofline --against old.db new.db   what a change has won\n"
    "  crosstalk roofline --matrix A.mtx          what a multiplication with this matrix may reach\n"
    "\n"
    "Models:\n"
    "  carm          cache-aware: by the bytes that a loop's instructions load and store\n"
    "  orm           of memory: by the bytes that memory moves, with ceilings of what a loop may lack\n"
    "  hierarchical  a point for each level of the caches, at the bytes that it moves\n"
    "  irm           integrated: the same points, by the bandwidths that a core gets from each level\n"
    "  runtime       what vectors, multiply-adds and independent operations would gain this loop\n"
    "  sparse        loops that gather: roofs of sparse products, and what reordering may change\n"
    "  mansard       instructions a cycle, by the limits of retirement and of the re-order buffer\n"
    "\n"
    "The exit status is 0, 1 when there is nothing to draw or a file cannot be read or written, 125 for a\n"
    "bad command line.\n"
    "More: man crosstalk-roofline\n";

using attribution::CountedOperations;
using attribution::RooflineModel;
using models::roofline::ImbalanceOrder;

const std::map<std::string, RooflineModel> known_models = {{"carm", RooflineModel::carm},
                                                           {"orm", RooflineModel::orm},
                                                           {"hierarchical", RooflineModel::hierarchical},
                                                           {"irm", RooflineModel::irm},
                                                           {"runtime", RooflineModel::runtime},
                                                           {"sparse", RooflineModel::sparse},
                                                           {"mansard", RooflineModel::mansard}};
const std::map<std::string, CountedOperations> known_operations = {{"float", CountedOperations::floating},
                                                                   {"fp64", CountedOperations::fp64},
                                                                   {"fp32", CountedOperations::fp32},
                                                                   {"int", CountedOperations::integer}};
const std::map<std::string, bool> by_thread = {{"loop", false}, {"thread", true}};
const std::map<std::string, std::optional<ImbalanceOrder>> imbalance_orders = {
    {"", std::nullopt}, {"first", ImbalanceOrder::first}, {"last", ImbalanceOrder::last}};
const std::map<std::string, Format> roofline_formats = {
    {"csv", Format::csv}, {"json", Format::json}, {"svg", Format::svg}, {"text", Format::text}};

struct Texts : ViewTexts {
  std::string model = "carm", ops = "float", by = "loop", threads, imbalance, loop, input, positional;
};

void add_options(CLI::App& app, RooflineRequest& request, Texts& texts) {
  app.add_option("FILE", texts.positional, "Profile to read [crosstalk.db]");
  app.add_option("-i,--input", texts.input, "Profile to read, like FILE [crosstalk.db]")->type_name("FILE");
  app.add_option("--machine", request.machine, "Machine file with the roofs [the profile's, else yours]")
      ->type_name("FILE");
  app.add_option("--model", texts.model,
                 "Roofline model: carm, orm, hierarchical, irm, runtime, sparse, mansard [carm]")
      ->type_name("MODEL");
  app.add_option("--ops", texts.ops, "Operations to count: float, fp64, fp32, int [float]")->type_name("KIND");
  app.add_option("--by", texts.by, "A point for each: loop, thread [loop]")->type_name("WHAT");
  app.add_option("--threads", texts.threads, "Draw the roofs of so many threads [as many as execute the loop]")
      ->type_name("N");
  app.add_option("--imbalance", texts.imbalance, "Ceilings of fewer threads, below all others or the roof: first, last")
      ->type_name("ORDER");
  app.add_option("--loop", texts.loop, "Show only this loop, by its id in the JSON report")->type_name("ID");
  app.add_option("--against", request.against, "Also show the places of loops in this earlier profile")
      ->type_name("FILE");
  app.add_option("--matrix", request.matrix,
                 "Place this sparse matrix (Matrix Market) instead of loops; text and json only")
      ->type_name("FILE");
  app.add_option("-o,--output", request.output, "File to write [standard output]")->type_name("FILE");
  add_format_option(app, texts, "text, svg, json, csv");
  add_view_options(app, texts, request.sysroot, request.verbosity);
}

Result<std::optional<std::uint32_t>> parse_loop(const std::string& text) {
  const auto id = whole_number<std::uint32_t>(text);
  if (!text.empty() && !id) {
    return fail(ErrorCode::invalid_argument,
                "--loop: '" + text + "' is no id of a loop; take one from --format json, or leave it out");
  }
  return id;
}

Result<std::optional<std::uint32_t>> parse_threads(const std::string& text) {
  constexpr std::uint32_t most = 65536;
  const auto count = whole_number<std::uint32_t>(text);
  if (!text.empty() && (!count || *count == 0 || *count > most)) {
    return fail(ErrorCode::invalid_argument,
                "--threads: '" + text + "' is no number of threads; give one from 1 to " + std::to_string(most));
  }
  return count;
}

/// The operations that are counted and compared.
Result<attribution::RooflineOptions> parse_roofs(const Texts& texts) {
  const auto ops = named("--ops", known_operations, texts.ops);
  const auto by = named("--by", by_thread, texts.by);
  const auto threads = parse_threads(texts.threads);
  const auto imbalance = named("--imbalance", imbalance_orders, texts.imbalance);
  if (const auto checked = check_all(ops, by, threads, imbalance); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return attribution::RooflineOptions{*ops, *by, *threads, *imbalance};
}

Result<void> judge(const Texts& texts, RooflineRequest& request) {
  const auto format = named("--format", roofline_formats, texts.format);
  const auto color = named("--color", color_names, texts.color);
  const auto model = named("--model", known_models, texts.model);
  const auto roofs = parse_roofs(texts);
  const auto loop = parse_loop(texts.loop);
  if (const auto checked = check_all(format, color, model, roofs, loop); !checked) {
    return checked;
  }
  if (const auto chosen = choose_profile(texts.input, texts.positional, request.input); !chosen) {
    return chosen;
  }
  if (roofs->imbalance && *model != RooflineModel::orm) {
    return fail(ErrorCode::invalid_argument,
                "--imbalance: --model " + texts.model + " has no such ceilings; choose --model orm");
  }
  if (!request.matrix.empty() && (*format == Format::svg || *format == Format::csv)) {
    return fail(ErrorCode::invalid_argument,
                "--matrix: there is no --format " + texts.format + " of it; choose text or json");
  }
  request.format = *format;
  request.color = *color;
  request.model = *model;
  request.roofs = *roofs;
  request.loop = *loop;
  request.pager = !texts.no_pager;
  return {};
}

}  // namespace

Result<Parsed<RooflineRequest>> parse_roofline(const Arguments& arguments) {
  CLI::App app(
      "Compares loops with the limits of the machine: their floating-point operations per second, and\n"
      "the roofs of caches, memory and units. Names the limit of each loop and the most that it may gain.\n",
      "crosstalk roofline");
  describe(app, "crosstalk roofline [OPTION]... [[-i] FILE]", roofline_examples);
  RooflineRequest request;
  Texts texts;
  add_options(app, request, texts);
  return parse_request(app, arguments, request, [&] { return judge(texts, request); });
}

}  // namespace crosstalk::driver
