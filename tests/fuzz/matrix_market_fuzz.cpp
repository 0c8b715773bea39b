// SPDX-License-Identifier: Apache-2.0
// Matrix Market files: read, or refused in one line. An accepted shape is consistent and has a place in the roofline.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "driver/roofline/matrix.h"
#include "driver/roofline/matrix_market.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace crosstalk::driver;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // A row takes memory by the size that the file promises, so promises are kept small here.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 64 || line.find_first_of("0123456789") == std::string::npos) {
      continue;
    }
    std::size_t digits = 0;
    for (const char c : line) {
      digits = c >= '0' && c <= '9' ? digits + 1 : 0;
      if (digits > 6) {
        return 0;
      }
    }
  }
  std::istringstream input(text);
  const auto shape = read_matrix_market(input, "A.mtx");
  if (!shape) {
    require(!shape.error().message.empty() && shape.error().message.find('\n') == std::string::npos);
    return 0;
  }
  require(shape->row_starts.size() == shape->size.rows + 1);
  require(shape->row_starts.back() == shape->size.nonzeros);
  const auto place = place_of_matrix(*shape, "A.mtx", nullptr);
  require(place && std::isfinite(place->requested_intensity) && place->requested_intensity > 0);
  require(!render_matrix_json(*place).empty());
  return 0;
}
