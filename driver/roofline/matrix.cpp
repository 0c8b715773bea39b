// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "driver/json/values.h"
#include "driver/words/roofline_words.h"
#include "models/roofline/ceilings.h"
#include "models/roofline/machine_roofs.h"

namespace crosstalk::driver {
namespace {

using models::roofline::MatrixSize;

constexpr double value_bytes = 8, index_bytes = 4;
// An entry takes its value, its column and an element of x; a row two pointers, and y loaded and stored.
constexpr double bytes_per_access = (2 * value_bytes + index_bytes) / 3;

models::roofline::Roof const* memory_of(const std::vector<models::roofline::Roof>& roofs) {
  const auto found =
      std::find_if(roofs.begin(), roofs.end(), [](const auto& roof) { return roof.level == models::Level::memory; });
  return found != roofs.end() ? &*found : nullptr;
}

/// By the bandwidth that all cores have together.
void add_rates(const models::Machine& machine, MatrixPlace& place) {
  const auto roofs = models::roofline::moved_roofs(machine, {}, {place.threads});
  if (const auto* memory = memory_of(roofs)) {
    const double bandwidth = memory->height.value();
    place.best_rate = bandwidth * place.memory_intensity.best;
    place.worst_rate = bandwidth * place.memory_intensity.worst;
  }
}

void add_level(const models::Machine& machine, MatrixPlace& place) {
  const auto bytes_of = [&](std::uint32_t level) {
    const models::Cache* cache = machine.cache_of(level);
    return cache != nullptr ? cache->bytes : 0;
  };
  if (const auto level = models::roofline::level_holding(place.bytes, {bytes_of(1), bytes_of(2), bytes_of(3)})) {
    place.held_in = *level;
  }
}

Result<void> add_balance(const SparseShape& shape, MatrixPlace& place) {
  const auto work = models::roofline::nonzeros_by_thread(shape.row_starts, place.threads);
  if (!work) {
    return tl::unexpected<Error>(work.error());
  }
  const auto used = models::roofline::utilisation(*work);
  if (!used) {
    return tl::unexpected<Error>(used.error());
  }
  place.utilisation = *used;
  return {};
}

std::string gain_sentence(const MatrixPlace& place) {
  if (place.held_in && *place.held_in != models::Level::memory) {
    return fmt::format("Matrix and vectors fit into {}, so memory does not bound it once they are there.",
                       models::roofline::level_in_words(*place.held_in));
  }
  return fmt::format(
      "By the traffic of memory, an order of rows and columns may change its rate {:.1f}-fold at most. An "
      "order is no promise: it may unbalance threads.",
      place.memory_intensity.best / place.memory_intensity.worst);
}

}  // namespace

Result<MatrixPlace> place_of_matrix(const SparseShape& shape, const std::string& name, const models::Machine* machine,
                                    std::optional<std::uint32_t> threads) {
  MatrixPlace place;
  place.name = name;
  place.size = shape.size;
  place.mean_row = static_cast<double>(shape.size.nonzeros) / static_cast<double>(shape.size.rows);
  for (std::size_t row = 0; row + 1 < shape.row_starts.size(); ++row) {
    place.longest_row =
        std::max(place.longest_row, static_cast<double>(shape.row_starts[row + 1] - shape.row_starts[row]));
  }
  const auto bytes = models::roofline::csr_bytes(shape.size, value_bytes);
  const auto requested = models::roofline::spmv_intensity(shape.size, bytes_per_access);
  const auto loop = models::roofline::spmv_of_doubles(std::max(1.0, place.mean_row));
  const auto bracket = loop ? models::roofline::gather_bracket(*loop) : tl::unexpected<Error>(loop.error());
  if (!bytes || !requested || !bracket) {
    return tl::unexpected<Error>(!bytes ? bytes.error() : !requested ? requested.error() : bracket.error());
  }
  place.bytes = *bytes;
  place.requested_intensity = *requested;
  place.memory_intensity = *bracket;
  if (machine != nullptr) {
    add_level(*machine, place);
  }
  const std::size_t cores = machine != nullptr ? models::cores_of(*machine) : 1;
  place.threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads.value_or(cores), shape.size.rows));
  if (machine != nullptr && place.threads <= cores) {
    add_rates(*machine, place);
  }
  auto balanced = add_balance(shape, place);
  return balanced ? Result<MatrixPlace>(std::move(place)) : tl::unexpected<Error>(balanced.error());
}

std::string render_matrix_text(const MatrixPlace& place, TextStyle style) {
  Canvas canvas(style);
  canvas.heading("Sparse matrix in the roofline", "one multiplication with a vector, CSR, double values");
  canvas.paragraph(
      "", fmt::format("{}: {} rows, {} columns, {} entries; {:.3g} entries a row, {:.0f} in the longest.", place.name,
                      place.size.rows, place.size.columns, place.size.nonzeros, place.mean_row, place.longest_row));
  canvas.paragraph("", fmt::format("Matrix and vectors take {}{}.", bytes_text(static_cast<std::uint64_t>(place.bytes)),
                                   place.held_in ? std::string(", which the caches of one core hold in ") +
                                                       models::roofline::level_in_words(*place.held_in)
                                                 : std::string()));
  canvas.paragraph("",
                   fmt::format("Intensity: {:.4f} flop/B of what the core requests; from memory {:.4f} if the vector "
                               "is in a cache, {:.4f} if each entry brings a line of its own.",
                               place.requested_intensity, place.memory_intensity.best, place.memory_intensity.worst));
  if (place.best_rate && place.worst_rate) {
    canvas.paragraph(
        "", fmt::format("Memory allows {} threads {} to {}.", place.threads, rate_in_words(*place.worst_rate, "flop/s"),
                        rate_in_words(*place.best_rate, "flop/s")));
  }
  canvas.paragraph("", gain_sentence(place));
  if (place.threads > 1) {
    canvas.paragraph(
        "", fmt::format("Equal numbers of rows keep {:.2f} of {} threads at work.", place.utilisation, place.threads));
  }
  return canvas.take();
}

std::string render_matrix_json(const MatrixPlace& place) {
  const Json document = {
      {"schema", "crosstalk.matrix/1"},
      {"name", place.name},
      {"rows", place.size.rows},
      {"columns", place.size.columns},
      {"nonzeros", place.size.nonzeros},
      {"mean_row", place.mean_row},
      {"longest_row", place.longest_row},
      {"bytes", place.bytes},
      {"held_in", place.held_in ? Json(models::name(*place.held_in)) : Json(nullptr)},
      {"requested_intensity", place.requested_intensity},
      {"memory_intensity", {{"worst", place.memory_intensity.worst}, {"best", place.memory_intensity.best}}},
      {"threads", place.threads},
      {"utilisation", place.utilisation},
      {"memory_rate", {{"worst", known(place.worst_rate)}, {"best", known(place.best_rate)}}}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace crosstalk::driver
