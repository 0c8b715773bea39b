// SPDX-License-Identifier: Apache-2.0
// crosstalk-reference-resolve RAW JSON [ROWS]: raw counts of the plugin -> a reference.
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string_view>

#include "tests/reference/raw_counts.h"
#include "tests/reference/reference_json.h"
#include "tests/reference/resolver.h"

namespace {

using namespace crosstalk;

Result<bool> resolve_file(const char* from, const char* to, std::size_t most_rows) {
  std::ifstream in(from);
  if (!in) {
    return fail(ErrorCode::not_found, std::string("raw counts ") + from + " cannot be read: " + std::strerror(errno));
  }
  const auto raw = reference::read_raw_counts(in);
  if (!raw) {
    return tl::unexpected(raw.error());
  }
  std::ofstream out(to);
  out << reference::json_text(reference::resolve(*raw), most_rows);
  out.close();
  if (!out) {
    return fail(ErrorCode::system, std::string(to) + " cannot be written: " + std::strerror(errno));
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t most_rows = 1000;
  const std::string_view rows = argc == 4 ? argv[3] : "1000";
  const auto [end, error] = std::from_chars(rows.data(), rows.data() + rows.size(), most_rows);
  if (argc < 3 || argc > 4 || error != std::errc() || end != rows.data() + rows.size()) {
    std::cerr << "crosstalk: usage: crosstalk-reference-resolve RAW JSON [ROWS]\n";
    return 2;
  }
  const auto done = resolve_file(argv[1], argv[2], most_rows);
  if (!done) {
    std::cerr << "crosstalk: " << done.error().message << '\n';
    return 1;
  }
  return 0;
}
