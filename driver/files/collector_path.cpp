// SPDX-License-Identifier: Apache-2.0
#include "driver/files/collector_path.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace crosstalk::driver {

namespace {

constexpr const char* library = "libcrosstalk.so";

bool is_readable_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), R_OK) == 0;
}

}  // namespace

std::vector<std::string> collector_candidates(const std::string& executable) {
  const std::filesystem::path folder = std::filesystem::path(executable).parent_path();
  const std::filesystem::path above = folder.parent_path();
  return {
      (above / "lib" / "crosstalk" / library).string(),
      (above / CROSSTALK_LIBDIR / "crosstalk" / library).string(),
      (above / "collectors" / "in_target" / library).string(),  // <build>/driver/crosstalk
      (folder / library).string(),
  };
}

Result<std::string> find_collector() {
  if (const char* named = std::getenv(collector_variable); named != nullptr && *named != '\0') {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(named, error);
    if (error || !is_readable_file(path)) {
      return fail(ErrorCode::refused, std::string(collector_variable) + " is '" + named +
                                          "', which is no readable file; unset it, or name " + library);
    }
    return path.string();
  }
  std::error_code error;
  const std::string executable = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (const std::string& candidate : collector_candidates(executable)) {
    if (is_readable_file(candidate)) {
      return candidate;
    }
  }
  return fail(ErrorCode::refused, std::string(library) + " was not found beside " + executable +
                                      "; install crosstalk whole, or name the library in " + collector_variable);
}

}  // namespace crosstalk::driver
