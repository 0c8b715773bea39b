// SPDX-License-Identifier: Apache-2.0
// Each use of a shared object takes and drops a reference. Advised: each thread holds one for as long as it runs.
#include <memory>

#include "bench/advice/common.h"

struct Settings {
  std::uint64_t factor = 3;
};
static std::shared_ptr<Settings> settings;

static std::uint64_t use(const std::shared_ptr<Settings>& given, std::uint64_t value) {
  return work(value, 8) * given->factor;
}

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 12'000'000);
  settings = std::make_shared<Settings>();
  together(2, [&](unsigned me) {
    std::uint64_t value = me;
    const std::shared_ptr<Settings> held = settings;
    for (long i = 0; i < n; ++i) {
      if (as_advised) {
        value = use(held, value);
      } else {
        const std::shared_ptr<Settings> mine = settings;
        value = use(mine, value);
      }
    }
    keep(value);
  });
  return 0;
}
