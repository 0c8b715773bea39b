// SPDX-License-Identifier: Apache-2.0
// Streams of `crosstalk top --json` from anywhere: lines are cut, read or refused, and drawn while keys are pressed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "driver/live/picture.h"
#include "driver/live/stream.h"
#include "driver/live/view_state.h"

namespace {

using namespace crosstalk::driver;
using namespace crosstalk::driver::live;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void look_at(const Snapshot& snapshot, std::string_view keys) {
  ViewState state([](const std::string&) { return std::optional(std::vector<std::string>(3, "text")); });
  state.take(snapshot);
  for (const char key : keys.substr(0, 16)) {
    const auto kind = static_cast<unsigned char>(key) % 16;
    state.press(kind < 14 ? KeyPress{static_cast<Key>(kind), U'm'}
                          : KeyPress{Key::character, static_cast<char32_t>(key)});
    const CellBuffer cells = picture_of(state, 24, 80, Charset::utf8, true);
    require(cells.rows() == 24 && cells.columns() == 80);
  }
  static_cast<void>(page_of(snapshot, 100, Charset::ascii, false).text(true));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  LineCutter cutter;
  for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), 777))) {
    require(cutter.add(rest.substr(0, 777)).has_value());
    while (const auto line = cutter.next()) {
      const auto snapshot = read_snapshot(*line);
      if (!snapshot) {
        require(!snapshot.error().message.empty());
        require(snapshot.error().message.find('\n') == std::string::npos);
        continue;
      }
      require(read_snapshot(line_of(*snapshot)).has_value());
      look_at(*snapshot, bytes.substr(size - std::min<std::size_t>(size, 16)));
    }
  }
  return 0;
}
