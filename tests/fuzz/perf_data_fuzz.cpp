// SPDX-License-Identifier: Apache-2.0
// perf.data files of any bytes are read or refused, and every view of a record lies within its bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collectors/perf_data/reader.h"

namespace {

using namespace crosstalk;
using namespace crosstalk::perf_data;

/// Reads all of it, which a sanitizer watches.
std::uint64_t touch(const WordView& words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    sum += words[i];
  }
  return sum;
}
template <class Each>
std::uint64_t touch(const Each& bytes) {
  std::uint64_t sum = 0;
  for (const auto each : bytes) {
    sum += static_cast<std::uint8_t>(each);
  }
  return sum;
}

std::uint64_t touch(const Content& content) {
  if (const auto* sample = std::get_if<Sample>(&content)) {
    return touch(sample->call_chain) + touch(sample->user.values) + touch(sample->interrupted.values);
  }
  if (const auto* mapping = std::get_if<Mapping>(&content)) {
    return touch(mapping->build_id) + touch(mapping->name);
  }
  if (const auto* comm = std::get_if<Comm>(&content)) {
    return touch(comm->name);
  }
  if (const auto* id = std::get_if<BuildId>(&content)) {
    return touch(id->bytes) + touch(id->name);
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto reader = Reader::open(std::as_bytes(std::span(data, size)));
  if (!reader) {
    return 0;
  }
  std::uint64_t seen = 0, sum = 0;
  const auto summary = reader->read([&](const Record& record) -> Result<void> {
    ++seen;
    sum += touch(record.content);
    return {};
  });
  static volatile std::uint64_t kept;  // so that nothing is optimised away
  kept = sum;
  static_cast<void>(kept);
  if (summary && summary->samples > seen) {
    std::abort();
  }
  if (!summary && summary.error().message.find("at offset ") == std::string::npos) {
    std::abort();  // an opened file's fault must be inside of it
  }
  return 0;
}
