// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/perf_ring.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace crosstalk::observer {
namespace {

constexpr std::size_t page_bytes = 4096;  // x86-64's

}  // namespace

bool copy_ring(std::span<const std::byte> ring, std::uint64_t head, std::uint64_t& tail, std::vector<std::byte>& out) {
  const std::uint64_t count = head - tail;
  const std::uint64_t begin = tail & (ring.size() - 1);
  tail = head;
  if (count > ring.size()) {
    return false;
  }
  const std::uint64_t to_end = std::min<std::uint64_t>(count, ring.size() - begin);
  const auto first = ring.subspan(begin, to_end);
  const auto rest = ring.first(count - to_end);
  out.insert(out.end(), first.begin(), first.end());
  out.insert(out.end(), rest.begin(), rest.end());
  return true;
}

Result<PerfRing> PerfRing::map(int event, std::uint32_t pages) {
  PerfRing ring;
  const std::size_t data_bytes = pages * page_bytes;
  void* memory = ::mmap(nullptr, page_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  if (memory == MAP_FAILED) {
    return fail(errno == EPERM ? ErrorCode::permission : ErrorCode::system,
                std::string("cannot map a ring of perf events: ") + std::strerror(errno));
  }
  ring.control_ = static_cast<perf_event_mmap_page*>(memory);
  ring.data_bytes_ = data_bytes;
  return ring;
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : control_(std::exchange(other.control_, nullptr)), data_bytes_(std::exchange(other.data_bytes_, 0)) {}

PerfRing& PerfRing::operator=(PerfRing&& other) noexcept {
  if (this != &other) {
    unmap();
    control_ = std::exchange(other.control_, nullptr);
    data_bytes_ = std::exchange(other.data_bytes_, 0);
  }
  return *this;
}

PerfRing::~PerfRing() { unmap(); }

void PerfRing::unmap() {
  if (control_ != nullptr) {
    ::munmap(control_, page_bytes + data_bytes_);
  }
}

bool PerfRing::drain(std::vector<std::byte>& out) {
  const auto* data = reinterpret_cast<const std::byte*>(control_) + page_bytes;
  using KernelWord = decltype(control_->data_head);
  const std::uint64_t head = std::atomic_ref<KernelWord>(control_->data_head).load(std::memory_order_acquire);
  std::uint64_t tail = control_->data_tail;
  if (head == tail) {
    return true;
  }
  const bool whole = copy_ring({data, data_bytes_}, head, tail, out);
  std::atomic_ref<KernelWord>(control_->data_tail).store(tail, std::memory_order_release);
  return whole;
}

}  // namespace crosstalk::observer
