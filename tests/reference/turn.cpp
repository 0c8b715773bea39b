// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "base/unique_fd.h"

namespace crosstalk::reference {
namespace {

constexpr long patience_ns = 20'000'000;  // between two looks at a thread that has the turn

/// Returns false after patience_ns without a wake.
bool wait_on(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec patience{0, patience_ns};
  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &patience, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

void wake(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// True if a thread of this process neither runs nor could, or is gone.
bool sleeps(pid_t tid) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/proc/self/task/%d/stat", tid);
  const UniqueFd file(open(name.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  if (!file.valid() || read(file.get(), text.data(), text.size() - 1) <= 0) {
    return true;
  }
  const char* behind_name = std::strrchr(text.data(), ')');
  return behind_name == nullptr || behind_name[1] == '\0' || behind_name[2] != 'R';
}

}  // namespace

bool Turn::give_to_next() {
  if (waiting_.empty()) {
    return false;
  }
  Seat* next = waiting_.front();
  waiting_.pop_front();
  holder_.store(next, std::memory_order_seq_cst);
  wake(next->wakes);
  return true;
}

void Turn::pass(Seat& me) {
  const std::lock_guard lock(mutex_);
  if (holder_.load(std::memory_order_relaxed) == &me) {
    give_to_next();
  }
}

void Turn::release(Seat& me) {
  const std::lock_guard lock(mutex_);
  if (holder_.load(std::memory_order_relaxed) == &me && !give_to_next()) {
    holder_.store(nullptr, std::memory_order_seq_cst);
  }
}

void Turn::end() {
  const std::lock_guard lock(mutex_);
  ended_.store(true, std::memory_order_seq_cst);
  holder_.store(nullptr, std::memory_order_seq_cst);
  for (Seat* seat : waiting_) {
    wake(seat->wakes);
  }
  waiting_.clear();
}

/// Either `from` no longer does its next step, or it is seen as busy: it declares itself busy before it checks whose
/// turn it is.
bool Turn::steal(Seat& me, Seat* from) {
  {
    const std::lock_guard lock(mutex_);
    if (holder_.load(std::memory_order_relaxed) != from) {
      return holder_.load(std::memory_order_relaxed) == &me;
    }
    if (const auto place = std::find(waiting_.begin(), waiting_.end(), &me); place != waiting_.end()) {
      waiting_.erase(place);
    }
    holder_.store(&me, std::memory_order_seq_cst);
  }
  stolen_.fetch_add(1, std::memory_order_relaxed);
  while (from->busy.load(std::memory_order_seq_cst)) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

bool Turn::wait_in_line(Seat& me) {
  me.tid.store(gettid(), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    if (ended_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (holder_.load(std::memory_order_relaxed) == nullptr) {
      holder_.store(&me, std::memory_order_seq_cst);
      return true;
    }
    waiting_.push_back(&me);
  }
  const Seat* suspect = nullptr;  // slept at the last look
  for (bool in_time = true;;) {
    const std::uint32_t wakes = me.wakes.load(std::memory_order_acquire);  // before the look at holder_
    Seat* holder = holder_.load(std::memory_order_seq_cst);
    if (holder == &me) {
      return true;
    }
    if (ended_.load(std::memory_order_seq_cst)) {
      return false;
    }
    if (in_time || holder == nullptr || !sleeps(holder->tid.load(std::memory_order_relaxed))) {
      suspect = nullptr;
    } else if (holder != suspect) {
      suspect = holder;
    } else if (steal(me, holder)) {
      return true;
    }
    in_time = wait_on(me.wakes, wakes);
  }
}

}  // namespace crosstalk::reference
