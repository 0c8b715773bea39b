// SPDX-License-Identifier: Apache-2.0
// Runs independent work on two threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>

namespace crosstalk {

/// Runs `aside()` on a thread of its own and `here()` on the caller's, and returns when both are done. Runs them one
/// after the other if no thread can be made. Rethrows to the caller what either throws.
template <class Aside, class Here>
void concurrently(const Aside& aside, const Here& here) {
  std::exception_ptr thrown;
  std::thread thread;
  try {
    thread = std::thread([&] {
      try {
        aside();
      } catch (...) {
        thrown = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    aside();
    here();
    return;
  }
  try {
    here();
  } catch (...) {
    thread.join();
    throw;
  }
  thread.join();
  if (thrown) {
    std::rethrow_exception(thrown);
  }
}

/// Runs `each(i)` for every i below `count` on two threads. Each takes the next i when it is done with one.
template <class Each>
void concurrently_for_each(std::size_t count, const Each& each) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      each(i);
    }
  };
  if (count > 1) {
    concurrently(work, work);
  } else {
    work();
  }
}

}  // namespace crosstalk
