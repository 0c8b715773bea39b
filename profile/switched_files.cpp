// SPDX-License-Identifier: Apache-2.0
#include "profile/switched_files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace crosstalk::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t ms_in_s = 1000;
constexpr std::size_t digits = 17;  // YYYYMMDDhhmmssmmm

bool is_moment(std::string_view text) {
  return text.size() == digits && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string switched_name(const std::string& name, std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / ms_in_s);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> day{};
  std::strftime(day.data(), day.size(), ".%Y%m%d%H%M%S", &utc);
  std::array<char, 8> rest{};
  std::snprintf(rest.data(), rest.size(), "%03d", static_cast<int>(unix_ms % ms_in_s));
  return name + day.data() + rest.data();
}

std::vector<std::string> switched_files(const std::string& name) {
  const fs::path path(name);
  const std::string begin = path.filename().string() + ".";
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (file.starts_with(begin) && is_moment(std::string_view(file).substr(begin.size()))) {
      files.push_back(path.has_parent_path() ? (path.parent_path() / file).string() : file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace crosstalk::profile
