// SPDX-License-Identifier: Apache-2.0
#include "daemon/wait_rows.h"

#include <algorithm>

namespace crosstalk::daemon {
namespace {

using profile::ThreadWaitRow;
using profile::ThreadWaits;
using profile::WaitKind;

void add(std::vector<ThreadWaitRow>& rows, ThreadWaits::Place place, std::uint64_t waited_ns, std::uint64_t count) {
  const std::uint8_t number = ThreadWaits::kind_number_of(place);
  if (number == 0 || number > static_cast<std::uint8_t>(profile::last_wait_kind) || count == 0) {
    return;
  }
  const auto kind = static_cast<WaitKind>(number);
  const std::uint64_t site = ThreadWaits::site_of(place);
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const ThreadWaitRow& known) { return known.kind == kind && known.site == site; });
  if (row == rows.end()) {
    row = rows.insert(rows.end(), ThreadWaitRow{{}, kind, site, 0, 0});
  }
  row->waited_ns += waited_ns;
  row->count += count;
  rows.front().waited_ns += waited_ns;
  rows.front().count += count;
}

}  // namespace

std::vector<ThreadWaitRow> wait_rows(const ThreadWaits& table, std::uint64_t until_ns) {
  std::vector<ThreadWaitRow> rows;
  if (table.measured.load(std::memory_order_relaxed) == 0) {
    return rows;
  }
  rows.emplace_back();
  for (const ThreadWaits::Sum& sum : table.sum) {
    add(rows, sum.place.load(std::memory_order_relaxed), sum.waited_ns.load(std::memory_order_relaxed),
        sum.count.load(std::memory_order_relaxed));
  }
  const std::uint64_t since_ns = table.since_ns.load(std::memory_order_relaxed);
  if (since_ns != 0 && until_ns > since_ns) {
    add(rows, table.place.load(std::memory_order_relaxed), until_ns - since_ns, 1);
  }
  return rows;
}

}  // namespace crosstalk::daemon
