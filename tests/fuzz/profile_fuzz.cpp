// SPDX-License-Identifier: Apache-2.0
// Hostile bytes as a profile file. An input that is no SQLite file is laid over a sound profile instead, so that
// mutations get behind the header.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "profile/branch_trace.h"
#include "profile/reader.h"
#include "profile/writer.h"

namespace {

namespace profile = crosstalk::profile;

std::vector<char> sound_profile() {
  char name[] = "/tmp/crosstalk-fuzz-XXXXXX";
  if (::mkdtemp(name) == nullptr) {
    std::abort();
  }
  const std::string path = std::string(name) + "/p.db";
  {
    auto writer = profile::ProfileWriter::create(path);
    bool good = writer.has_value() && writer->put(profile::Session{}) && writer->put(profile::ProcessRow{}) &&
                writer->put(profile::ThreadRow{}) && writer->put(profile::ModuleRow{});
    profile::WatchRow watch;
    watch.id = crosstalk::WatchId{1};
    watch.words.resize(1);
    good = good && writer->put(watch) &&
           writer->put(profile::TrapRow{crosstalk::WatchId{1}, {}, 0, 0, 0, 0, 0, false, {}, {}, {}, 0, {}});
    good = good && writer->put(profile::BlockRow{}) && writer->put(profile::MessageRow{"code", "text", 1});
    profile::StackRow stack;
    stack.id = crosstalk::StackId{1};
    stack.bytes.assign(2000, 7);
    good = good && writer->put(stack);
    profile::LookaheadRow lookahead;
    lookahead.branches = {4, 8, 2};
    good = good && writer->put(lookahead);
    profile::SampleRow sample;
    for (int i = 0; i < 500; ++i) {
      good = good && writer->put(sample);
    }
    good = good && writer->put(profile::RegionRow{profile::RegionId{1}, {}, "outer"}) &&
           writer->put(profile::RegionRow{profile::RegionId{2}, profile::RegionId{1}, "inner"}) &&
           writer->put(profile::ThreadRegionRow{crosstalk::ThreadId{0}, profile::RegionId{2}, 1, 10, {1, 2, 3}});
    good = good &&
           writer->put(profile::EventRow{profile::EventId{1}, "cycles", profile::SourceKind::counter,
                                         profile::WeightUnit::cycles, 1000, 0, false}) &&
           writer->put(profile::CallChainRow{profile::CallChainId{1}, {0x401000, 0x402000, 0x403000}});
    sample.region = profile::RegionId{2};
    sample.event = profile::EventId{1};
    sample.call_chain = profile::CallChainId{1};
    sample.measurement = {profile::SourceKind::counter, profile::WeightUnit::cycles, 0, 1000, 0};
    good = good && writer->put(sample);
    if (!good || !writer->finish()) {
      std::abort();
    }
  }
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  ::unlink(path.c_str());
  ::rmdir(name);
  return bytes;
}

/// The input as (position, value) pairs over a sound profile.
std::vector<char> overlaid(const std::uint8_t* data, std::size_t size) {
  static const std::vector<char> sound = sound_profile();
  std::vector<char> bytes = sound;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t at =
        data[i] | static_cast<std::size_t>(data[i + 1]) << 8U | static_cast<std::size_t>(data[i + 2]) << 16U;
    bytes[at % bytes.size()] = static_cast<char>(data[i + 3]);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr char magic[] = "SQLite format 3";
  const bool whole = size >= sizeof magic && std::memcmp(data, magic, sizeof magic) == 0;
  const std::vector<char> bytes =
      whole ? std::vector<char>(data, data + size) : overlaid(data, std::min<std::size_t>(size, 4096));
  const crosstalk::UniqueFd file(::memfd_create("profile-fuzz", MFD_CLOEXEC));
  if (!file.valid() || ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return 0;
  }
  const auto reader = profile::ProfileReader::open("/proc/self/fd/" + std::to_string(file.get()));
  if (!reader) {
    if (reader.error().message.find('\n') != std::string::npos) {
      std::abort();
    }
    return 0;
  }
  const std::size_t threads = reader->threads().size();
  const std::size_t regions = reader->regions().size();
  (void)reader->for_each_sample([threads, regions](const profile::SampleRow& row) {
    if (row.thread.value >= threads || row.region.value > regions) {
      std::abort();
    }
  });
  (void)reader->for_each_lookahead([threads](const profile::LookaheadRow& row) {
    if (row.thread.value >= threads || row.branches.size() > profile::max_branch_trace_bytes) {
      std::abort();
    }
  });
  (void)reader->for_each_call_chain([](const profile::CallChainRow& row) {
    if (row.addresses.size() > 0x100000) {
      std::abort();
    }
  });
  for (const profile::ThreadRegionRow& row : reader->thread_regions()) {
    if (row.thread.value >= threads || row.region.value == 0 || row.region.value > regions) {
      std::abort();
    }
  }
  (void)reader->for_each_stack([](const profile::StackRow& row) {
    if (row.bytes.size() > 0x10000) {
      std::abort();
    }
  });
  return 0;
}
