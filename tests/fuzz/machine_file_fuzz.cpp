// SPDX-License-Identifier: Apache-2.0
// Machine files: read, or refused in one line. An accepted file is valid and round-trips.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "models/machine_json.h"

namespace {

using namespace crosstalk::models;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto machine = parse_machine(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!machine) {
    require(!machine.error().message.empty());
    return 0;
  }
  require(validate(*machine).has_value());
  require(check_same_machine(*machine, *machine).has_value());
  static_cast<void>(machine->peak_flops(Precision::double_precision, Scope::one_core));
  static_cast<void>(machine->peak_bandwidth(Level::memory, Scope::all_cores));
  const std::string text = to_json(*machine);
  const auto again = parse_machine(text);
  require(again.has_value() && to_json(*again) == text);
  return 0;
}
