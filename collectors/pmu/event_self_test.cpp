// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_self_test.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/clock.h"
#include "collectors/memory_samples/ring_cursor.h"

namespace crosstalk::collectors {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t limit_ns = 20 * ns_per_ms;

/// The smallest ring, which nobody empties: its first records are enough.
class SmallRing {
 public:
  explicit SmallRing(int event)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        at_(::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0)) {}
  SmallRing(const SmallRing&) = delete;
  SmallRing& operator=(const SmallRing&) = delete;
  ~SmallRing() {
    if (mapped()) {
      ::munmap(at_, 2 * page_);
    }
  }
  [[nodiscard]] bool mapped() const { return at_ != MAP_FAILED; }

  [[nodiscard]] std::uint64_t samples() const {
    const std::span<const std::byte> ring(static_cast<const std::byte*>(at_) + page_, page_);
    const auto& control = *static_cast<const perf_event_mmap_page*>(at_);
    const std::uint64_t head = __atomic_load_n(&control.data_head, __ATOMIC_ACQUIRE);
    std::array<std::byte, 4096> record;
    std::uint64_t found = 0;
    for (std::uint64_t tail = 0; tail < head;) {
      const auto bytes = take_ring_record(ring, head, tail, record);
      perf_event_header header{};
      if (bytes.size() >= sizeof header) {
        std::memcpy(&header, bytes.data(), sizeof header);
        found += header.type == PERF_RECORD_SAMPLE ? 1 : 0;
      }
    }
    return found;
  }

 private:
  std::size_t page_;
  void* at_;
};

/// Reads the group's counts. Some units also write their samples only when they are read, or disabled.
void read_counts(const OpenGroup& group, SelfTestFindings& findings) {
  struct {
    std::uint64_t number = 0, enabled_ns = 0, running_ns = 0;
    std::array<std::uint64_t, 64> counts{};
  } read;
  const ssize_t bytes = ::read(group.sampled, &read, sizeof read);
  if (bytes <= 0 || read.number <= group.place || read.number > read.counts.size()) {
    findings.failed = "read", findings.error = bytes < 0 ? errno : ENODATA;
    return;
  }
  findings.running_ns = read.running_ns;
  findings.counts.assign(read.counts.begin(), read.counts.begin() + static_cast<std::ptrdiff_t>(read.number));
  findings.count = read.counts.at(group.place);
}

/// Some 15 microseconds.
void work_a_round() {
  static std::array<volatile std::uint32_t, 1024> words;
  constexpr int passes = 8;
  for (int pass = 0; pass < passes; ++pass) {
    for (volatile std::uint32_t& word : words) {
      const std::uint32_t value = word;
      word = (value & 1U) != 0 ? value + 3 : value * 2 + 1;
    }
  }
}

}  // namespace

SelfTestVerdict judge_self_test(const SelfTestFindings& findings) {
  constexpr std::uint64_t enough = 4;  // periods: one may end in the kernel, or with a sample that is not written yet
  if (findings.samples != 0) {
    return SelfTestVerdict::samples;
  }
  if (findings.failed != nullptr || findings.running_ns == 0) {
    return SelfTestVerdict::untestable;
  }
  if (findings.count == 0) {
    return SelfTestVerdict::silent;
  }
  return findings.count / enough < findings.period ? SelfTestVerdict::untestable : SelfTestVerdict::counts_only;
}

Error self_test_refusal(const std::string& event, const SelfTestFindings& findings, bool nmi_watchdog) {
  constexpr const char* remedy =
      "; give the virtual machine a whole PMU (qemu: -cpu host,pmu=on), or the machine a newer firmware";
  const std::string taken = "the kernel takes " + event;
  const std::string work = std::to_string(limit_ns / ns_per_ms) + " ms of loads, stores and branches";
  switch (judge_self_test(findings)) {
    case SelfTestVerdict::silent:
      return {ErrorCode::unsupported, taken + ", but it never counts: 0 in " + work + remedy};
    case SelfTestVerdict::counts_only:
      return {ErrorCode::unsupported, taken + ", but it never samples: it counted " + std::to_string(findings.count) +
                                          " in " + work + ", at a period of " + std::to_string(findings.period) +
                                          remedy};
    case SelfTestVerdict::untestable:
    case SelfTestVerdict::samples:
      break;
  }
  if (findings.failed != nullptr) {
    return {ErrorCode::system, taken + ", but it cannot be tested: " + findings.failed + ": " +
                                   std::strerror(findings.error) +
                                   (findings.error == EPERM ? "; see ulimit -l" : "; dmesg may say more")};
  }
  if (findings.running_ns == 0) {
    return {ErrorCode::system, taken + ", but it had no counter in " + work + "; " + holders_of_counters(nmi_watchdog)};
  }
  return {ErrorCode::system, taken + ", but it cannot be tested: it counted only " + std::to_string(findings.count) +
                                 " in " + work + ", too little for a sample at a period of " +
                                 std::to_string(findings.period) + "; " + holders_of_counters(nmi_watchdog)};
}

SelfTestFindings test_event(const OpenGroup& group, std::uint64_t period) {
  SelfTestFindings findings;
  findings.period = period;
  const SmallRing ring(group.sampled);
  if (!ring.mapped()) {
    findings.failed = "mmap", findings.error = errno;
    return findings;
  }
  if (::ioctl(group.leader, PERF_EVENT_IOC_ENABLE, 0) != 0) {
    findings.failed = "PERF_EVENT_IOC_ENABLE", findings.error = errno;
    return findings;
  }
  const auto look = [&] {
    read_counts(group, findings);
    findings.samples = ring.samples();
    return findings.samples != 0 || findings.failed != nullptr;
  };
  work_until(look);
  ::ioctl(group.leader, PERF_EVENT_IOC_DISABLE, 0);
  look();
  return findings;
}

void work_until(const std::function<bool()>& done) {
  // A virtual processor that the host stops spends the time of its thread without any work.
  constexpr int least_rounds = 16;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (int round = 0; round < least_rounds || thread_cpu_ns() - begin_ns < limit_ns; ++round) {
    work_a_round();
    if (done()) {
      return;
    }
  }
}

std::string holders_of_counters(bool nmi_watchdog) {
  return nmi_watchdog ? "the kernel's NMI watchdog holds one, and who else measures some; to free the former: sudo "
                        "sysctl kernel.nmi_watchdog=0"
                      : "end what else measures (perf, another profiler, the host of a virtual machine)";
}

}  // namespace crosstalk::collectors
