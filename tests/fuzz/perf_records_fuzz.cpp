// SPDX-License-Identifier: Apache-2.0
// Bytes of a perf ring, and of /proc/PID/maps: whatever they are, they are read or refused.
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

#include "collectors/observer/perf_records.h"
#include "collectors/observer/perf_ring.h"
#include "collectors/observer/process_maps.h"
#include "collectors/pmu/ibs_op.h"

namespace {

using namespace crosstalk::observer;

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
  const bool whole = copy_ring(ring, ends[1], tail, out);
  require(tail == ends[1] && out.size() <= ring.size() && (whole || out.empty()));
  parse_all(out, {});
  parse_all(out, measured);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  parse_all(bytes, {});
  parse_all(bytes, measured);
  read_ring(bytes);
  const std::vector<Mapping> maps = parse_maps({reinterpret_cast<const char*>(data), size});
  for (const Mapping& mapping : maps) {
    require(mapping.begin < mapping.end);
    static_cast<void>(mapping_at(maps, mapping.begin));
  }
  return 0;
}
