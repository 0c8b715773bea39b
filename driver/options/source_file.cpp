// SPDX-License-Identifier: Apache-2.0
#include "driver/options/source_file.h"

#include <filesystem>
#include <fstream>

#include "base/number.h"

namespace crosstalk::driver {

namespace {

std::string with_spaces(const std::string& line) {
  constexpr std::size_t stop = 4;
  std::string text;
  for (const char c : line) {
    if (c == '\t') {
      text.append(stop - text.size() % stop, ' ');
    } else if (c != '\r') {
      text += c;
    }
  }
  return text;
}

}  // namespace

SourcePlace parse_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto line =
      colon == std::string::npos ? std::nullopt : whole_number<std::uint32_t>(std::string_view(text).substr(colon + 1));
  return line.value_or(0) > 0 ? SourcePlace{text.substr(0, colon), *line} : SourcePlace{text, 0};
}

std::optional<std::string> find_source(const std::string& path, const std::string& sysroot) {
  constexpr std::uintmax_t most_bytes = 64U << 20U;
  // Compilers keep their working folder with ".." behind it; that folder may be gone, or missing in the sysroot.
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  for (const std::string& candidate : {sysroot.empty() ? std::string() : sysroot + "/" + normal, path, normal}) {
    std::error_code error;
    if (!candidate.empty() && std::filesystem::is_regular_file(candidate, error) &&
        std::filesystem::file_size(candidate, error) <= most_bytes) {
      return candidate;
    }
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> read_source(const std::string& path, const std::string& sysroot) {
  const auto found = find_source(path, sysroot);
  if (!found) {
    return std::nullopt;
  }
  std::ifstream file(*found);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(with_spaces(line));
  }
  return file.eof() ? std::optional(std::move(lines)) : std::nullopt;
}

bool written_after(const std::string& file, const std::string& other) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(file, error);
  const auto before = error ? written : std::filesystem::last_write_time(other, error);
  return !error && written > before;
}

}  // namespace crosstalk::driver
