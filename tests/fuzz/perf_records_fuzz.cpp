// SPDX-License-Identifier: Apache-2.0
// Bytes of a perf ring, and of /proc/PID/maps: any bytes are read or refused.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "collectors/memory_samples/ibs_op.h"
#include "collectors/memory_samples/ring_cursor.h"
#include "collectors/observer/counter_records.h"
#include "collectors/observer/perf_ring.h"
#include "collectors/observer/perf_types.h"
#include "collectors/observer/process_maps.h"
#include "profile/counter_reading.h"

namespace {

using namespace crosstalk::observer;
using crosstalk::collectors::Accesses;
using crosstalk::profile::SourceKind;
using crosstalk::profile::WeightUnit;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

/// Memory events say more of a sample than clocks do.
constexpr SampleLayout measured{
    sample_fields | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC, true};

void parse_all(std::span<const std::byte> bytes, const SampleLayout& layout) {
  while (const auto parsed = parse_perf_record(bytes, layout)) {
    require(parsed->bytes > 0 && parsed->bytes <= bytes.size());
    if (const auto* sample = std::get_if<PerfSample>(&parsed->record); sample != nullptr && !sample->raw.empty()) {
      require(sample->raw.data() >= bytes.data() &&
              sample->raw.data() + sample->raw.size() <= bytes.data() + parsed->bytes);
      static_cast<void>(crosstalk::collectors::decode_ibs_op(sample->raw));
    }
    if (const auto* sample = std::get_if<PerfSample>(&parsed->record); sample != nullptr && !sample->stack.empty()) {
      require(sample->stack.data() >= bytes.data() &&
              sample->stack.data() + sample->stack.size() <= bytes.data() + parsed->bytes);
    }
    bytes = bytes.subspan(parsed->bytes);
  }
}

/// Rings of counters have records of a layout of their own.
void parse_all_of_counters(std::span<const std::byte> bytes) {
  while (const auto parsed = parse_counter_record(bytes)) {
    require(parsed->bytes > 0 && parsed->bytes <= bytes.size());
    if (const auto* sample = std::get_if<CounterSample>(&parsed->record)) {
      require(sample->counts.size() <= crosstalk::profile::most_group_counters);
      require(sample->counts.size() * sizeof(std::uint64_t) < parsed->bytes);
    }
    bytes = bytes.subspan(parsed->bytes);
  }
}

/// Code as it happens to be, for every address; no data.
bool any_code(void* /*context*/, std::uint64_t address, void* out, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    static_cast<std::uint8_t*>(out)[i] = static_cast<std::uint8_t>((address + i) * 0x9d);
  }
  return true;
}
bool no_data(void* /*context*/, std::uint64_t /*address*/, void* /*out*/, std::size_t /*bytes*/) { return false; }

/// As a thread reads its own ring: one record after the other, each checked, without memory of its own.
void read_one_by_one(std::span<const std::byte> ring, std::uint64_t head, std::uint64_t tail) {
  static crosstalk::in_target::AccessFinder finder;
  static crosstalk::collectors::EventPace pace({SourceKind::ibs, WeightUnit::micro_ops, Accesses::both, false, false},
                                               4096);
  alignas(8) std::array<std::byte, 128> out{};
  std::uint64_t random = 1;
  const std::uint64_t begin = tail;
  while (tail != head) {
    const std::uint64_t before = tail;
    const auto record = crosstalk::collectors::take_ring_record(ring, head, tail, out);
    require(tail == head || (tail == before + record.size() && !record.empty()));
    require(record.size() <= out.size() && (record.empty() || tail - begin <= ring.size()));
    const auto parsed = parse_perf_record(record, measured);
    const auto* sample = parsed ? std::get_if<PerfSample>(&parsed->record) : nullptr;
    if (sample == nullptr) {
      continue;
    }
    static_cast<void>(pace.weigh(*sample, true));
    const std::uint64_t period =
        pace.next_period(sample->time_ns, 4'000'000, sample->count, sample->running_ns, random);
    require(period >= 1024);
    crosstalk::collectors::Observation seen;
    const auto what =
        crosstalk::collectors::measured_access(*sample, pace.event(), {finder, {nullptr, any_code, no_data}}, seen);
    require(what != crosstalk::collectors::Measured::access || seen.address != 0);
  }
}

void read_ring(std::span<const std::byte> bytes) {
  std::array<std::byte, 256> ring{};
  std::array<std::uint64_t, 2> ends{};  // tail, head
  if (bytes.size() < sizeof ends) {
    return;
  }
  std::memcpy(ends.data(), bytes.data(), sizeof ends);
  const auto content = bytes.subspan(sizeof ends).first(std::min(bytes.size() - sizeof ends, ring.size()));
  std::copy(content.begin(), content.end(), ring.begin());
  std::vector<std::byte> out;
  std::uint64_t tail = ends[0];
  read_one_by_one(ring, ends[1], ends[0]);
  const bool whole = copy_ring(ring, ends[1], tail, out);
  require(tail == ends[1] && out.size() <= ring.size() && (whole || out.empty()));
  parse_all(out, {});
  parse_all(out, measured);
  parse_all_of_counters(out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  parse_all(bytes, {});
  parse_all(bytes, measured);
  parse_all_of_counters(bytes);
  read_ring(bytes);
  const std::vector<Mapping> maps = parse_maps({reinterpret_cast<const char*>(data), size});
  for (const Mapping& mapping : maps) {
    require(mapping.begin < mapping.end);
    static_cast<void>(mapping_at(maps, mapping.begin));
  }
  return 0;
}
