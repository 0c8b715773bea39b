// SPDX-License-Identifier: Apache-2.0
// Hostile rows: any bytes are a watch, its traps and samples; the timeline and the estimate must stay sane.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/estimator.h"
#include "attribution/samples/strata.h"
#include "attribution/timeline/ownership_timeline.h"

namespace {

using namespace crosstalk;
using namespace crosstalk::attribution;

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  [[nodiscard]] bool empty() const { return left_ == 0; }
  template <class T>
  T take() {
    T value{};
    const std::size_t n = left_ < sizeof value ? left_ : sizeof value;
    std::memcpy(&value, at_, n);
    at_ += n;
    left_ -= n;
    return value;
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

profile::WatchRow watch_from(Bytes& bytes) {
  profile::WatchRow watch;
  watch.id = WatchId{1};
  watch.thread = ThreadId{bytes.take<std::uint8_t>() % 8U};
  watch.line = bytes.take<std::uint64_t>() & ~63ULL;
  watch.sample_address = watch.line + bytes.take<std::int8_t>();
  watch.sample_width = bytes.take<std::uint8_t>();
  watch.sample_access = static_cast<AccessKind>(bytes.take<std::uint8_t>() & 3U);
  watch.sample_from = static_cast<profile::AddressFrom>(bytes.take<std::uint8_t>() & 3U);
  watch.sample_flags = bytes.take<std::uint8_t>();
  watch.sample_cpu_ns = bytes.take<std::uint64_t>();
  watch.words.resize(bytes.take<std::uint8_t>() % (profile::max_watch_words + 1));
  for (auto& word : watch.words) {
    word = bytes.take<profile::WatchWord>();
  }
  return watch;
}

profile::TrapRow trap_from(Bytes& bytes, std::uint32_t& sequence) {
  profile::TrapRow trap;
  const auto control = bytes.take<std::uint8_t>();
  trap.watch = WatchId{(control & 0x80U) != 0 ? 2U : 1U};
  sequence += (control >> 5U) & 3U;
  trap.sequence = sequence;
  trap.write_only = (control & 0x10U) != 0;
  trap.thread = ThreadId{control & 7U};
  trap.word = bytes.take<std::uint8_t>() % 8;
  trap.ip = bytes.take<std::uint8_t>();
  trap.registers[Register::rax] = bytes.take<std::uint64_t>();
  return trap;
}

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void check(const profile::WatchRow& watch, const OwnershipTimeline& timeline, std::size_t threads) {
  for (const SeenCommunication& seen : timeline.communications) {
    require(seen.producer.thread != seen.consumer.thread);
    require(seen.producer.thread.value < threads && seen.consumer.thread.value < threads);
    require(stores(seen.producer.kind));
    // With one register, the return of the sampled thread to its own bytes may be expected.
    require(!seen.expected() || (watch.words.size() == 1 && seen.consumer.thread == watch.thread));
    require(seen.weight >= 1 && std::isfinite(seen.weight));
    require(!seen.true_sharing || seen.producer.bytes.overlaps(seen.consumer.bytes));
  }
}

void check(const Amount& amount) {
  require(amount.cost_s.has_value() == amount.cost_ci95.has_value());
  if (amount.cost_s) {
    require(amount.cost_ci95->low >= 0 && amount.cost_ci95->low <= *amount.cost_s);
    require(*amount.cost_s <= amount.cost_ci95->high);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const std::vector<profile::ThreadRow> threads(6);
  const std::vector<profile::WatchRow> watches = {watch_from(bytes)};
  std::vector<profile::TrapRow> traps;
  std::uint32_t sequence = 0;
  while (!bytes.empty()) {
    traps.push_back(trap_from(bytes, sequence));
  }
  const auto lookup = [](Moment, std::uint64_t ip) -> std::optional<symbolizer::MemoryAccess> {
    if (ip % 5 == 4) {
      return std::nullopt;
    }
    symbolizer::MemoryAccess access;
    access.kind = static_cast<AccessKind>(ip % 4);
    access.width = static_cast<std::uint8_t>(ip / 4);
    access.base = Register::rax;
    access.overwrites_base = ip % 7 == 0;
    return access;
  };
  const OwnershipTimeline timeline = ownership_timeline(watches[0], traps, threads, lookup);
  check(watches[0], timeline, threads.size());

  // Twice the same: one watch is too few for an estimate.
  const std::vector<profile::WatchRow> twice = {watches[0], watches[0]};
  const std::vector<OwnershipTimeline> timelines = {timeline, timeline};
  for (const Estimator& estimator : estimators()) {
    Strata strata(twice, threads, estimator.policy);
    strata.finish();
    const Estimate estimated = estimate(estimator, WatchEvidence(twice, timelines, strata), strata);
    for (const Cell& cell : matrix_of(estimated.contributions, estimated.expansion, thread_pair)) {
      check(cell.true_sharing);
      check(cell.false_sharing);
    }
  }
  return 0;
}
