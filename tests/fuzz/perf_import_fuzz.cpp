// SPDX-License-Identifier: Apache-2.0
// perf.data files of any bytes, imported: they are refused, or make a readable profile.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "collectors/perf_data/reader.h"
#include "collectors/perf_import/import.h"
#include "profile/reader.h"

namespace {

using namespace crosstalk;

void require(bool holds, const std::string& what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
  }
}

/// Removes the profile with the process.
struct Output {
  std::string path =
      (std::filesystem::temp_directory_path() / ("perf_import_fuzz." + std::to_string(::getpid()))).string();
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { std::filesystem::remove(path); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Output output;
  const UniqueFd input(::memfd_create("perf.data", MFD_CLOEXEC));
  if (!input.valid() || ::write(input.get(), data, size) != static_cast<ssize_t>(size)) {
    return 0;
  }
  const auto outcome =
      perf_import::import_perf_data("/proc/self/fd/" + std::to_string(input.get()), output.path, "fuzz");
  require(std::filesystem::exists(output.path) == outcome.has_value(),
          "a profile is there, or is not, against the outcome");
  if (!outcome) {
    const std::string& message = outcome.error().message;
    require(!message.empty(), "an error says nothing");
    const bool opens = perf_data::Reader::open(std::as_bytes(std::span(data, size))).has_value();
    const bool of_file = opens && outcome.error().code == ErrorCode::corrupt;
    require(!of_file || message.find("at offset ") != std::string::npos, "an error names no offset: " + message);
    return 0;
  }
  {
    const auto profile = profile::ProfileReader::open(output.path);
    require(profile.has_value(), profile ? "" : profile.error().message);
    std::uint64_t samples = 0;
    const auto read = profile->for_each_sample(
        [&](const profile::SampleRow& row) { samples += row.thread.value < profile->threads().size() ? 1 : 0; });
    require(read.has_value(), read ? "" : read.error().message);
    require(samples == outcome->samples, "samples are missing, or of threads that are not there");
  }
  std::filesystem::remove(output.path);
  return 0;
}
