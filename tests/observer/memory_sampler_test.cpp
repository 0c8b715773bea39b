// SPDX-License-Identifier: Apache-2.0
// The pace of an event, and the weights of its samples; and the way from the kernel to a sample, by an event of every
// machine: page faults carry addresses, too.
#include "collectors/observer/memory_sampler.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "collectors/observer/perf_types.h"
#include "collectors/observer/sample_view.h"
#include "tests/collectors/perf_events_here.h"

namespace crosstalk::observer::memory_sampler_test {
namespace {

collectors::MemoryEvent loads(std::uint64_t period) {
  collectors::MemoryEvent event;
  event.source = profile::SourceKind::pebs;
  event.weight_unit = profile::WeightUnit::accesses;
  event.attr.type = PERF_TYPE_RAW;
  event.attr.sample_period = period;
  return event;
}

PerfSample sample(std::uint64_t count, std::uint64_t enabled_ns, std::uint64_t running_ns) {
  PerfSample made;
  made.period = 1000;
  made.count = count;
  made.enabled_ns = enabled_ns;
  made.running_ns = running_ns;
  return made;
}

TEST(EventPace, ASampleStandsForWhatWasCountedSinceTheLast) {
  const collectors::MemoryEvent event = loads(1000);
  EventPace pace(event, event.attr.sample_period);
  EXPECT_EQ(pace.weigh(sample(1000, 10, 10), true), 1000U);
  EXPECT_EQ(pace.weigh(sample(3500, 20, 20), true), 2500U) << "one was lost, or the period was changed in between";
  EXPECT_EQ(pace.weigh(sample(3500, 30, 30), true), 1000U) << "a unit that does not count has its period";
}

TEST(EventPace, WithoutACounterForHalfTheTimeItStandsForTwiceAsMuch) {
  const collectors::MemoryEvent event = loads(1000);
  EventPace pace(event, event.attr.sample_period);
  EXPECT_EQ(pace.weigh(sample(1000, 200, 100), true), 2000U);
  EXPECT_DOUBLE_EQ(pace.counting_part(), 0.5);
  EXPECT_EQ(pace.weigh(sample(2000, 300, 200), true), 1000U);
  EXPECT_DOUBLE_EQ(pace.counting_part(), 1);
  EventPace other_kind(event, event.attr.sample_period);
  EXPECT_EQ(other_kind.weigh(sample(1000, 200, 100), false), 1000U)
      << "the rest of the time the thread was on another kind of core";
}

TEST(EventPace, WithoutASampleReadingItTellsWhetherItHasACounter) {
  constexpr std::uint64_t ms = 1'000'000;
  const collectors::MemoryEvent event = loads(1000);
  EventPace pace(event, event.attr.sample_period);
  pace.look(100 * ms, 0, true);
  EXPECT_FALSE(pace.never_counted()) << "it may get its turn";
  pace.look(300 * ms, 0, true);
  EXPECT_TRUE(pace.never_counted());
  EXPECT_DOUBLE_EQ(pace.counting_part(), 1) << "of what was never counted there is no part";
  pace.look(400 * ms, 100 * ms, true);
  EXPECT_FALSE(pace.never_counted()) << "it has got one in the end";
  EXPECT_DOUBLE_EQ(pace.counting_part(), 0.25);
  EventPace other_kind(event, event.attr.sample_period);
  other_kind.look(400 * ms, 100 * ms, false);
  EXPECT_DOUBLE_EQ(other_kind.counting_part(), 1) << "the rest of the time the thread was on another kind of core";
}

TEST(EventPace, ThatItsCounterIsLostAfterASampleIsSeen) {
  constexpr std::uint64_t ms = 1'000'000;
  const collectors::MemoryEvent event = loads(1000);
  EventPace pace(event, event.attr.sample_period);
  (void)pace.weigh(sample(1000, 100 * ms, 100 * ms), true);
  pace.look(200 * ms, 100 * ms, true);
  EXPECT_DOUBLE_EQ(pace.counting_part(), 1) << "too short a time says nothing";
  pace.look(500 * ms, 200 * ms, true);
  EXPECT_DOUBLE_EQ(pace.counting_part(), 0.25);
  EXPECT_FALSE(pace.never_counted());
  EXPECT_EQ(pace.weigh(sample(2000, 500 * ms, 200 * ms), true), 4000U) << "looking takes nothing from the next sample";
}

TEST(EventPace, ThePeriodFollowsWhatTheThreadDoes) {
  constexpr std::uint64_t wanted_ns = 4'000'000;
  const collectors::MemoryEvent event = loads(500'000);
  EventPace pace(event, event.attr.sample_period);
  std::uint64_t random = 1;
  std::uint64_t count = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t period = 0;
  double sum = 0;
  constexpr int paces = 200;
  for (int i = 0; i < paces; ++i) {  // two loads a nanosecond
    running_ns += 40'000'000;
    count += 80'000'000;
    (void)pace.weigh(sample(count, running_ns, running_ns), true);
    period = pace.next_period(i * 50'000'000ULL, wanted_ns, pace.counted(), pace.running_ns(), random);
    if (i >= paces / 2) {
      EXPECT_GT(period, 5'900'000U);
      EXPECT_LT(period, 10'100'000U);
      sum += static_cast<double>(period);
    }
  }
  EXPECT_NEAR(sum / (paces / 2.0), 8e6, 0.05 * 8e6) << "of its mean";
  EXPECT_FALSE(pace.due(199 * 50'000'000ULL + 1));
  EXPECT_TRUE(pace.due(200 * 50'000'000ULL));
}

TEST(EventPace, StepsAreLimitedAndWithoutTimeThereIsNone) {
  const collectors::MemoryEvent event = loads(80'000);
  EventPace pace(event, event.attr.sample_period);
  std::uint64_t random = 1;
  const std::uint64_t unchanged = pace.next_period(0, 4'000'000, 0, 0, random);
  EXPECT_NEAR(static_cast<double>(unchanged), 80'000, 0.25 * 80'000 + 1);
  const std::uint64_t seldom = pace.next_period(0, 4'000'000, 0, 8'000'000, random);  // it ran, and loaded nothing
  EXPECT_NEAR(static_cast<double>(seldom), 10'000, 0.25 * 10'000 + 1) << "an eighth";
}

TEST(EventPace, AFloodOfSamplesIsStemmedAtOnce) {
  collectors::MemoryEvent event = loads(1024);
  EventPace pace(event, event.attr.sample_period);
  std::uint64_t random = 1;
  (void)pace.next_period(1'000'000, 4'000'000, 0, 0, random);
  std::uint64_t count = 0;
  for (int i = 0; i < 40; ++i) {  // a thousand loads in a microsecond
    EXPECT_EQ(pace.due(1'100'000), i >= 32);
    count += 1000;
    (void)pace.weigh(sample(count, count, count), true);
  }
  const std::uint64_t period = pace.next_period(1'100'000, 4'000'000, pace.counted(), pace.running_ns(), random);
  EXPECT_GT(period, 2'900'000U);
  EXPECT_FALSE(pace.due(1'100'001));
}

TEST(EventPace, PeriodsAreSuchAsTheUnitTakes) {
  collectors::MemoryEvent event = loads(100'000);
  EXPECT_EQ(collectors::allowed_period(event, 3), 1024U);
  event.source = profile::SourceKind::ibs;
  EXPECT_EQ(collectors::allowed_period(event, 100'007), 100'000U);
  event.period_random = true;
  EventPace pace(event, event.attr.sample_period);
  std::uint64_t random = 1;
  EXPECT_EQ(pace.next_period(0, 4'000'000, 0, 0, random), 100'000U) << "the hardware varies it";
  event.attr.type = PERF_TYPE_SOFTWARE;
  EXPECT_EQ(collectors::allowed_period(event, 3), 3U);
  EXPECT_EQ(collectors::allowed_period(event, 0), 1U);
}

collectors::MemoryEvent page_faults() {
  collectors::MemoryEvent event;
  event.name = "page-faults";
  event.source = profile::SourceKind::counter;
  event.weight_unit = profile::WeightUnit::occurrences;
  event.attr.size = sizeof event.attr;
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  event.attr.sample_period = 1;
  event.attr.disabled = 1;
  event.attr.exclude_kernel = 1;
  event.attr.exclude_hv = 1;
  event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                           PERF_SAMPLE_PERIOD | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT;
  return event;
}

TEST(MemorySampler, TheKernelsSamplesBecomeAccesses) {
  const MemoryEvents events = {page_faults()};
  std::uint64_t random = 1;
  SamplingPlace place;
  place.tid = static_cast<pid_t>(::syscall(SYS_gettid));
  if (const std::string why = collectors::why_no_perf_events(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  Result<MemorySampler> sampler = MemorySampler::open(events, place, {}, random);
  ASSERT_TRUE(sampler) << sampler.error().message;
  constexpr std::size_t page = 4096;
  constexpr std::size_t pages = 16;
  auto* const memory =
      static_cast<char*>(::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, pages * page, MADV_NOHUGEPAGE);
  sampler->enable();
  for (std::size_t i = 0; i < pages; ++i) {
    reinterpret_cast<volatile char*>(memory)[i * page + 24] = 1;
  }
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  std::vector<std::byte> bytes;
  ASSERT_EQ(sampler->rings().size(), 1U);
  MemorySampler::Ring& ring = sampler->rings().front();
  EXPECT_TRUE(ring.ring.drain(bytes));
  const TargetMemory own_memory(::getpid());
  const std::vector<Mapping> maps = maps_of(::getpid());
  const auto finder = std::make_unique<in_target::AccessFinder>();
  std::size_t stores = 0;
  std::uint64_t weights = 0;
  for (std::span<const std::byte> rest(bytes); !rest.empty();) {
    const auto parsed = parse_perf_record(rest, ring.layout);
    ASSERT_TRUE(parsed);
    rest = rest.subspan(parsed->bytes);
    const auto* seen = std::get_if<PerfSample>(&parsed->record);
    std::uint64_t weight = 0;
    if (seen == nullptr || seen->address < begin || seen->address >= begin + pages * page) {
      continue;
    }
    ASSERT_EQ(sampler->weigh(*seen, weight), &events.front());
    weights += weight;
    EXPECT_EQ(seen->tid, place.tid);
    collectors::Observation observation;
    SampleView view(*seen, own_memory, maps);
    ASSERT_EQ(measured_access(*seen, events.front(), {*finder, view.reader()}, observation), Measured::access);
    EXPECT_EQ(observation.address % page, 24U);
    EXPECT_EQ(observation.width, 1U);
    stores += crosstalk::stores(observation.kind) ? 1 : 0;
  }
  EXPECT_EQ(stores, pages);
  EXPECT_GE(weights, pages);
  PerfSample foreign;
  std::uint64_t weight = 0;
  EXPECT_EQ(sampler->weigh(foreign, weight), nullptr);
  ::munmap(memory, pages * page);
}

TEST(MemorySampler, OfAThreadThatIsGoneThereIsNone) {
  const MemoryEvents events = {page_faults()};
  std::uint64_t random = 1;
  SamplingPlace place;
  place.tid = INT32_MAX;
  const auto sampler = MemorySampler::open(events, place, {}, random);
  ASSERT_FALSE(sampler);
  EXPECT_EQ(sampler.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace crosstalk::observer::memory_sampler_test
