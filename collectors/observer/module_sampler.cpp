// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/module_sampler.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "collectors/pmu/ibs_module.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint32_t ring_records = 1024;  // a second's worth, and more

tl::unexpected<Error> refusal(pid_t tid, const char* what, int error) {
  return fail(error == ESRCH || error == ENOENT   ? ErrorCode::not_found
              : error == EPERM || error == EACCES ? ErrorCode::permission
                                                  : ErrorCode::system,
              std::string(collectors::ibs_module_device) + ": thread " + std::to_string(tid) + " cannot be sampled (" +
                  what + ": " + std::strerror(error) + ")");
}

/// Returns the range from which the module draws its intervals: around `period`, within its bounds.
crosstalk_ibs_period drawn_around(std::uint64_t period, std::uint64_t least, std::uint64_t most) {
  const std::uint64_t kept = std::clamp(period, least, most);
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(kept) * period_spread);
  return {kept, std::min({wanted, kept - least, most - kept})};
}

std::size_t put(std::span<std::byte> raw, std::size_t at, std::uint64_t word) {
  std::memcpy(raw.data() + at, &word, sizeof word);
  return at + sizeof word;
}

}  // namespace

PerfSample perf_sample_of(const crosstalk_ibs_sample& record, std::span<std::byte, ibs_raw_bytes> raw) {
  constexpr std::uint64_t rip_invalid = std::uint64_t{1} << 38U;  // of data 1; not all processors have it
  const auto has = [&](std::uint32_t flag) { return (record.flags & flag) != 0; };
  std::fill(raw.begin(), raw.end(), std::byte{0});
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

Result<ModuleSampler> ModuleSampler::open(const collectors::MemoryEvent& event, pid_t tid, std::uint64_t period) {
  const UniqueFd memory(::open(("/proc/" + std::to_string(tid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) {
    return refusal(tid, "its memory", errno);
  }
  UniqueFd fd(::open(collectors::ibs_module_device, O_RDWR | O_CLOEXEC));
  crosstalk_ibs_info info{};
  if (!fd.valid() || ::ioctl(fd.get(), CROSSTALK_IBS_IOC_INFO, &info) != 0) {
    return refusal(tid, "opening", errno);
  }
  const crosstalk_ibs_follow follow{sizeof follow, tid, memory.get(), 0, 0};
  if (::ioctl(fd.get(), CROSSTALK_IBS_IOC_FOLLOW, &follow) != 0) {
    return refusal(tid, "following", errno);
  }
  const Bounds bounds{info.op_period_min, info.op_period_max};
  const crosstalk_ibs_period drawn = drawn_around(period, bounds.least, bounds.most);
  crosstalk_ibs_setup setup{};
  setup.size = sizeof setup;
  setup.flavour = CROSSTALK_IBS_OP;
  setup.flags = (info.features & CROSSTALK_IBS_HAS_COUNT_OPS) != 0 ? CROSSTALK_IBS_COUNT_OPS : 0;
  setup.period = drawn.period;
  setup.random = drawn.random;
  setup.records = std::clamp(ring_records, info.records_min, info.records_max);
  crosstalk_ibs_status status{};
  if (::ioctl(fd.get(), CROSSTALK_IBS_IOC_SETUP, &setup) != 0 ||
      ::ioctl(fd.get(), CROSSTALK_IBS_IOC_STATUS, &status) != 0) {
    return refusal(tid, "setting up", errno);
  }
  auto ring = MappedMemory::map(fd.get(), 0, status.ring_bytes);
  if (!ring) {
    return refusal(tid, "mapping its ring", errno);
  }
  return ModuleSampler(std::move(fd), std::move(*ring), bounds, event, drawn.period);
}

void ModuleSampler::enable() { (void)::ioctl(fd_.get(), CROSSTALK_IBS_IOC_ENABLE, 0); }

/// The module writes a record before it advances `head`, and overwrites only records that `tail` has passed.
ModuleSampler::Batch ModuleSampler::drain() {
  auto& ring = *reinterpret_cast<crosstalk_ibs_ring*>(ring_.begin());
  const auto* const records = reinterpret_cast<const crosstalk_ibs_sample*>(ring_.begin() + ring.data_offset);
  const std::uint64_t head = __atomic_load_n(&ring.head, __ATOMIC_ACQUIRE);
  Batch batch;
  batch.bytes = std::make_shared<std::vector<std::byte>>((head - ring.tail) * ibs_raw_bytes);
  std::span<std::byte> room(*batch.bytes);
  for (std::uint64_t tail = ring.tail; tail != head; ++tail) {
    Sampled sampled;
    sampled.sample = perf_sample_of(records[tail & (ring.records - 1)], room.first<ibs_raw_bytes>());
    room = room.subspan(ibs_raw_bytes);
    sampled.weight = pace_.weigh(sampled.sample, false);
    batch.samples.push_back(sampled);
  }
  __atomic_store_n(&ring.tail, head, __ATOMIC_RELEASE);
  const std::uint64_t lost = __atomic_load_n(&ring.lost, __ATOMIC_RELAXED);
  batch.lost = lost - std::exchange(lost_, lost);
  return batch;
}

void ModuleSampler::keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random) {
  crosstalk_ibs_status status{};
  if (!pace_.due(now_ns) || ::ioctl(fd_.get(), CROSSTALK_IBS_IOC_STATUS, &status) != 0) {
    return;
  }
  const std::uint64_t period = pace_.next_period(now_ns, wanted_ns, status.counted, status.running_ns, random);
  const crosstalk_ibs_period drawn = drawn_around(period, bounds_.least, bounds_.most);
  (void)::ioctl(fd_.get(), CROSSTALK_IBS_IOC_PERIOD, &drawn);
}

}  // namespace crosstalk::observer
