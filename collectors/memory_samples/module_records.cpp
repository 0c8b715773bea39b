// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/module_records.h"

#include <algorithm>
#include <cstring>

#include "collectors/memory_samples/event_pace.h"

namespace crosstalk::collectors {
namespace {

std::size_t put(std::span<std::byte> raw, std::size_t at, std::uint64_t word) {
  std::memcpy(raw.data() + at, &word, sizeof word);
  return at + sizeof word;
}

}  // namespace

crosstalk_ibs_period drawn_around(const crosstalk_ibs_info& info, std::uint64_t period) {
  const std::uint64_t least = info.op_period_min;
  const std::uint64_t most = info.op_period_max;
  const std::uint64_t kept = std::clamp(period, least, most);
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(kept) * period_spread);
  return {kept, std::min({wanted, kept - least, most - kept})};
}

crosstalk_ibs_setup module_setup(const crosstalk_ibs_info& info, std::uint64_t period, std::size_t records) {
  const crosstalk_ibs_period drawn = drawn_around(info, period);
  crosstalk_ibs_setup setup{};
  setup.size = sizeof setup;
  setup.flavour = CROSSTALK_IBS_OP;
  setup.flags = (info.features & CROSSTALK_IBS_HAS_COUNT_OPS) != 0 ? CROSSTALK_IBS_COUNT_OPS : 0;
  setup.period = drawn.period;
  setup.random = drawn.random;
  setup.records = std::clamp(static_cast<std::uint32_t>(records), info.records_min, info.records_max);
  return setup;
}

PerfSample perf_sample_of(const crosstalk_ibs_sample& record, std::span<std::byte, ibs_raw_bytes> raw) {
  constexpr std::uint64_t rip_invalid = std::uint64_t{1} << 38U;  // of data 1; not all processors have it
  const auto has = [&](std::uint32_t flag) { return (record.flags & flag) != 0; };
  std::memset(raw.data(), 0, raw.size());
  std::size_t at = sizeof(std::uint32_t) + sizeof(std::uint64_t);  // capabilities and control are nobody's business
  at = put(raw, at, record.ip);
  at = put(raw, at, record.data[0] | (has(CROSSTALK_IBS_S_IP) ? 0 : rip_invalid));
  at = put(raw, at, record.data[1]);
  at = put(raw, at, record.data[2]);
  put(raw, at, record.address);
  PerfSample sample;
  sample.ip = record.ip;
  sample.pid = static_cast<std::int32_t>(record.pid);
  sample.tid = static_cast<std::int32_t>(record.tid);
  sample.time_ns = record.time;
  sample.address = record.address;
  sample.cpu = record.cpu;
  sample.in_kernel = !has(CROSSTALK_IBS_S_USER);
  sample.exact_ip = has(CROSSTALK_IBS_S_IP);
  sample.period = record.period;
  sample.raw = raw;
  return sample;
}

}  // namespace crosstalk::collectors
