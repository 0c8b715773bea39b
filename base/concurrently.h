// SPDX-License-Identifier: Apache-2.0
// Two things that do not depend on each other, done at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>

namespace crosstalk {

/// Runs `aside()` on a thread of its own and `here()` on the caller's, and returns when both are done. Where no thread
/// is to be had, one after the other. What either throws, the caller gets.
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

/// Runs `each(i)` for every i below `count`, on two threads, which take turns as they get done.
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
