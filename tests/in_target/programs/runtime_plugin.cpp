// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <stdexcept>
#include <string>

/// Uses the C++ runtime, which only this library brought with it. 0: all is well.
extern "C" int plugin_uses_the_runtime() {
  std::map<int, std::string> names;
  for (int i = 0; i < 1000; ++i) {
    names[i] = std::string(static_cast<std::size_t>(i), 'x');
  }
  try {
    static_cast<void>(names.at(-1));
  } catch (const std::out_of_range&) {
    delete new int(3);
    return names[999].size() == 999 ? 0 : 1;
  }
  return 2;
}
