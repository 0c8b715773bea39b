// SPDX-License-Identifier: Apache-2.0
// Hostile bytes in a ring, with hostile heads: drained, parsed and interpreted. The input is a list of steps:
// bytes to put into the ring, and where head then is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "daemon/record_decoder.h"
#include "profile/branch_trace.h"
#include "profile/ring.h"
#include "profile/ring_reader.h"

namespace {

namespace profile = crosstalk::profile;
namespace daemon_room = crosstalk::daemon;

constexpr std::uint32_t ring_bytes = 4096;

/// Checks the guarantees of rows for their writer.
struct CheckingSink final : daemon_room::RowSink {
  std::uint32_t last_stack = 0;
  static void check(bool holds) {
    if (!holds) {
      std::abort();
    }
  }
  void put(const profile::ProcessRow&) override {}
  void put(const profile::ThreadRow& row) override { check(row.clock <= profile::ClockKind::perf); }
  void put(const profile::ModuleRow& row) override { check(row.begin <= row.end && row.build_id.size() <= 40); }
  void put(const profile::SampleRow& row) override {
    check(row.access <= crosstalk::AccessKind::load_store && row.from <= profile::AddressFrom::hardware);
  }
  void put(const profile::WatchRow& row) override { check(row.words.size() <= profile::max_watch_words); }
  void put(const profile::TrapRow& row) override { check(row.word < profile::max_watch_words); }
  void put(const profile::BlockRow&) override {}
  void put(const profile::ThreadCreationRow& row) override { check(row.stack.value != 0); }
  void put(const profile::SharedMappingRow& row) override { check(row.bytes != 0); }
  void put(const profile::ThreadWaitRow& row) override { check(row.kind <= profile::last_wait_kind); }
  void put(const profile::SampledWaitRow& row) override { check(row.looks != 0); }
  void put(const profile::RegionRow& row) override { check(row.parent < row.id && !row.name.empty()); }
  void put(const profile::ThreadRegionRow& row) override { check(row.region.value != 0); }
  void put(const profile::LookaheadRow& row) override {
    check(row.end >= profile::LookaheadEnd::whole && row.end <= profile::LookaheadEnd::room &&
          profile::unpack_branch_trace(row.branches, row.begin).has_value());
  }
  void put(const profile::ReadingRow& row) override {
    check(row.group != 0 && !row.counts.empty() && row.counts.size() <= profile::most_group_counters);
  }
  void put(const profile::StackRow& row) override {
    check(row.id.value == ++last_stack && row.bytes.size() <= profile::max_record_bytes);
  }
  void put(const profile::MessageRow& row) override { check(row.text.find('\n') == std::string::npos); }
};

struct Input {
  const std::uint8_t* data;
  std::size_t size;

  template <class T>
  T take() {
    T value{};
    const std::size_t bytes = std::min(size, sizeof value);
    std::memcpy(&value, data, bytes);
    data += bytes;
    size -= bytes;
    return value;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto slot = std::make_unique<profile::ThreadSlot>();
  std::vector<std::byte> ring(ring_bytes);
  profile::RingReader reader(*slot, ring.data(), ring_bytes);
  CheckingSink sink;
  daemon_room::RecordDecoder interpreter(sink);
  interpreter.open_slot(0, 1, 2, 3);
  Input input{data, size};
  while (input.size != 0) {
    const auto step = input.take<std::uint16_t>();
    const std::uint64_t head = slot->head.load();
    const std::size_t bytes = std::min<std::size_t>(input.size, step % ring_bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      ring[(head + i) % ring_bytes] = static_cast<std::byte>(input.data[i]);
    }
    input.data += bytes;
    input.size -= bytes;
    slot->head.store(step % 7 == 0 ? input.take<std::uint64_t>() : head + (bytes & ~std::size_t{7}));
    std::vector<std::byte> batch;
    if (reader.drain(batch).bytes > ring_bytes) {
      std::abort();
    }
    profile::parse_records(batch, [&](const profile::RecordView& record) { interpreter.announce(0, record); });
    profile::parse_records(batch, [&](const profile::RecordView& record) { interpreter.decode(0, record); });
    if (step % 5 == 0) {
      interpreter.flush(head);
    }
    if (step % 11 == 0) {
      interpreter.close_slot(0, head);
      interpreter.open_slot(0, step, step, head);
    }
  }
  interpreter.finish();
  return 0;
}
