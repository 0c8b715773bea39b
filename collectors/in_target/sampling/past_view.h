// SPDX-License-Identifier: Apache-2.0
// The target's memory as the access finder sees it for an earlier sample. The code that the thread executed then may be
// gone, so the kernel reads it. Reads only the data that cannot have changed: the piece of stack that came with the
// sample. Only a guess uses memory as it is now.
#pragma once

#include <cstring>

#include "collectors/access/code_reader.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/memory_samples/perf_records.h"

namespace crosstalk::in_target {

class PastView {
 public:
  explicit PastView(const collectors::PerfSample& sample) : sample_(sample) {}
  /// Refers to this view.
  CodeReader reader() { return {this, read_code, read_data, read_now}; }

 private:
  static bool read_code(void* /*view*/, std::uint64_t address, void* out, std::size_t bytes) {
    return read_memory(address, out, bytes, runtime().pid) == bytes;
  }
  static bool read_data(void* view, std::uint64_t address, void* out, std::size_t bytes) {
    const auto& sample = static_cast<const PastView*>(view)->sample_;
    const std::uint64_t offset = address - sample.registers[Register::rsp];
    if (offset > sample.stack.size() || bytes > sample.stack.size() - offset) {
      return false;
    }
    std::memcpy(out, sample.stack.data() + offset, bytes);
    return true;
  }

  static bool read_now(void* view, std::uint64_t address, void* out, std::size_t bytes) {
    return read_data(view, address, out, bytes) || (is_present(address) && read_code(view, address, out, bytes));
  }

  const collectors::PerfSample& sample_;
};

}  // namespace crosstalk::in_target
