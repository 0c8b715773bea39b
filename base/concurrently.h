// SPDX-License-Identifier: Apache-2.0
// Two things that do not depend on each other, done at the same time.
#pragma once

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

}  // namespace crosstalk
