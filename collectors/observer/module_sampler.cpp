// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/module_sampler.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

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

}  // namespace

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
  const crosstalk_ibs_setup setup = collectors::module_setup(info, period, ring_records);
  crosstalk_ibs_status status{};
  if (::ioctl(fd.get(), CROSSTALK_IBS_IOC_SETUP, &setup) != 0 ||
      ::ioctl(fd.get(), CROSSTALK_IBS_IOC_STATUS, &status) != 0) {
    return refusal(tid, "setting up", errno);
  }
  auto ring = MappedMemory::map(fd.get(), 0, status.ring_bytes);
  if (!ring) {
    return refusal(tid, "mapping its ring", errno);
  }
  return ModuleSampler(std::move(fd), std::move(*ring), info, event, setup.period);
}

void ModuleSampler::enable() { (void)::ioctl(fd_.get(), CROSSTALK_IBS_IOC_ENABLE, 0); }

/// The module writes a record before it advances `head`, and overwrites only records that `tail` has passed.
ModuleSampler::Batch ModuleSampler::drain() {
  collectors::ModuleRing ring(ring_.bytes());
  const std::uint64_t head = ring.head();
  Batch batch;
  batch.bytes = std::make_shared<std::vector<std::byte>>((head - ring.tail()) * collectors::ibs_raw_bytes);
  std::span<std::byte> room(*batch.bytes);
  for (std::uint64_t tail = ring.tail(); tail != head; ++tail) {
    Sampled sampled;
    sampled.sample = collectors::perf_sample_of(ring.record(tail), room.first<collectors::ibs_raw_bytes>());
    room = room.subspan(collectors::ibs_raw_bytes);
    sampled.weight = pace_.weigh(sampled.sample, false);
    batch.samples.push_back(sampled);
  }
  ring.give_back(head);
  const std::uint64_t lost = ring.lost();
  batch.lost = lost - std::exchange(lost_, lost);
  return batch;
}

void ModuleSampler::keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random) {
  crosstalk_ibs_status status{};
  if (!pace_.due(now_ns) || ::ioctl(fd_.get(), CROSSTALK_IBS_IOC_STATUS, &status) != 0) {
    return;
  }
  const std::uint64_t period = pace_.next_period(now_ns, wanted_ns, status.counted, status.running_ns, random);
  const crosstalk_ibs_period drawn = collectors::drawn_around(info_, period);
  (void)::ioctl(fd_.get(), CROSSTALK_IBS_IOC_PERIOD, &drawn);
}

}  // namespace crosstalk::observer
