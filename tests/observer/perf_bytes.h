// SPDX-License-Identifier: Apache-2.0
// Records as the kernel would put them into a ring, byte by byte as perf_event_open(2) has them.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "collectors/observer/perf_attributes.h"

namespace crosstalk::observer {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline Bytes record(std::uint32_t type, std::uint16_t misc, const Bytes& body) {
  Bytes bytes;
  put(bytes, perf_event_header{type, misc, static_cast<std::uint16_t>(sizeof(perf_event_header) + body.size())});
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

struct SampleText {
  std::uint64_t event = 7, ip = 0x401000, time_ns = 1000, address = 0x5000, count = 4'000'000;
  std::uint32_t pid = 10, tid = 11, cpu = 1;
  std::uint16_t misc = PERF_RECORD_MISC_USER;
  std::uint64_t abi = PERF_SAMPLE_REGS_ABI_64;
  std::uint64_t first_register = 100;  // registers count up from here, in the kernel's order
  std::uint64_t stack_bytes = 64, stack_used = 32;
};

inline Bytes sample_record(const SampleText& text) {
  Bytes body;
  for (const std::uint64_t value : {text.event, text.ip}) {
    put(body, value);
  }
  put(body, text.pid);
  put(body, text.tid);
  put(body, text.time_ns);
  put(body, text.address);
  put(body, text.cpu);
  put(body, std::uint32_t{0});
  put(body, text.count);
  put(body, text.abi);
  for (std::uint64_t i = 0; text.abi != PERF_SAMPLE_REGS_ABI_NONE && i < sampled_register_count; ++i) {
    put(body, text.first_register + i);
  }
  put(body, text.stack_bytes);
  if (text.stack_bytes != 0) {
    for (std::uint64_t i = 0; i < text.stack_bytes; ++i) {
      put(body, static_cast<std::uint8_t>(i));
    }
    put(body, text.stack_used);
  }
  return record(PERF_RECORD_SAMPLE, text.misc, body);
}

/// A sample of a memory event.
struct MeasuredText {
  std::uint64_t event = 9, ip = 0x401000, time_ns = 2000, address = 0x5040, period = 1000;
  std::uint64_t count = 5000, enabled_ns = 300, running_ns = 200;
  std::uint32_t pid = 10, tid = 11, cpu = 1;
  std::uint16_t misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP;
  Bytes raw;                        // with its size a multiple of 8
  std::uint64_t weight = 77;        // in parts: the latency lowest
  std::uint64_t data_source = 0x2;  // a load
};
inline constexpr std::uint64_t measured_fields =
    sample_fields | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC;

inline Bytes measured_record(const MeasuredText& text) {
  Bytes body;
  for (const std::uint64_t value : {text.event, text.ip}) {
    put(body, value);
  }
  put(body, text.pid);
  put(body, text.tid);
  put(body, text.time_ns);
  put(body, text.address);
  put(body, text.cpu);
  put(body, std::uint32_t{0});
  for (const std::uint64_t value : {text.period, text.count, text.enabled_ns, text.running_ns}) {
    put(body, value);
  }
  constexpr std::size_t word = 8;
  const std::size_t raw_bytes = (text.raw.size() + sizeof(std::uint32_t) + word - 1) / word * word;
  put(body, static_cast<std::uint32_t>(raw_bytes - sizeof(std::uint32_t)));
  body.insert(body.end(), text.raw.begin(), text.raw.end());
  body.resize(body.size() + raw_bytes - sizeof(std::uint32_t) - text.raw.size());
  put(body, std::uint64_t{PERF_SAMPLE_REGS_ABI_NONE});
  put(body, std::uint64_t{0});  // no stack
  put(body, text.weight);
  put(body, text.data_source);
  return record(PERF_RECORD_SAMPLE, text.misc, body);
}

}  // namespace crosstalk::observer
