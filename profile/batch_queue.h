// SPDX-License-Identifier: Apache-2.0
// Passes rows in order from a producer thread to a consumer thread, in batches: reading a table and working on its rows
// take about as long, and nearly every machine has more than one processor for a report.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace crosstalk::profile {

/// Carries batches of rows from one producer to one consumer. Bounded: the faster one waits.
template <class Row>
class BatchQueue {
 public:
  static constexpr std::size_t batch_rows = 1024;

  /// Producer: waits for an empty batch to fill; null once the consumer has left.
  std::vector<Row>* free_batch() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [this] { return filled_ - used_ < batches_.size() || left_; });
    return left_ ? nullptr : &batches_[filled_ % batches_.size()];
  }
  void hand_over() {
    change([this] { ++filled_; });
  }
  /// Producer: no batches follow.
  void end() {
    change([this] { ended_ = true; });
  }

  /// Consumer: waits for the next batch; null at the end. give_back() empties it.
  std::vector<Row>* next_batch() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [this] { return filled_ > used_ || ended_; });
    return filled_ > used_ ? &batches_[used_ % batches_.size()] : nullptr;
  }
  void give_back() {
    batches_[used_ % batches_.size()].clear();
    change([this] { ++used_; });
  }
  void leave() {
    change([this] { left_ = true; });
  }

 private:
  template <class Change>
  void change(Change make) {
    {
      const std::lock_guard lock(mutex_);
      make();
    }
    moved_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable moved_;
  std::array<std::vector<Row>, 4> batches_;
  std::size_t filled_ = 0, used_ = 0;
  bool ended_ = false, left_ = false;
};

/// Runs `make(put)` on a thread of its own and `use(row)` on the caller's for each row put. Returns the result of
/// `make`. Rethrows to the caller what either throws.
template <class Row, class Make, class Use>
auto make_and_use(const Make& make, const Use& use) {
  BatchQueue<Row> queue;
  std::exception_ptr thrown;
  decltype(make([](const Row&) {})) result;
  const auto work = [&] {
    std::vector<Row>* batch = queue.free_batch();
    const auto put = [&](const Row& row) {
      if (batch != nullptr) {
        batch->push_back(row);
        if (batch->size() == BatchQueue<Row>::batch_rows) {
          queue.hand_over();
          batch = queue.free_batch();
        }
      }
    };
    try {
      result = make(put);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (batch != nullptr) {
      queue.hand_over();
    }
    queue.end();
  };
  std::thread maker;
  try {
    maker = std::thread(work);
  } catch (const std::system_error&) {  // no thread to be had: one after the other
    return make(use);
  }
  try {
    for (std::vector<Row>* batch = queue.next_batch(); batch != nullptr; batch = queue.next_batch()) {
      for (const Row& row : *batch) {
        use(row);
      }
      queue.give_back();
    }
  } catch (...) {
    queue.leave();
    maker.join();
    throw;
  }
  maker.join();
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  return result;
}

}  // namespace crosstalk::profile
