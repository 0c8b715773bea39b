// SPDX-License-Identifier: Apache-2.0
#include "driver/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/number.h"

namespace crosstalk::driver {

namespace {

std::optional<std::string_view> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string_view>(value);
}

int columns_variable() { return leading_number<int>(variable("COLUMNS").value_or("")).value_or(0); }

bool contains_utf8(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return errno == EPIPE;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_to_pager(const std::string& text, const std::string& pager) {
  if (!variable("LESS")) {
    ::setenv("LESS", "FRX", 1);  // exit if all fits, pass colours, leave the text on the screen
  }
  std::FILE* const pipe = ::popen(pager.c_str(), "w");
  if (pipe == nullptr) {
    return false;
  }
  const bool written = write_all(::fileno(pipe), text);
  const int status = ::pclose(pipe);
  constexpr int shell_found_nothing = 127;
  return written && !(WIFEXITED(status) && WEXITSTATUS(status) == shell_found_nothing);
}

}  // namespace

int terminal_width(int fd) {
  constexpr int least = 60;
  constexpr int most = 400;
  constexpr int otherwise = 100;
  winsize size{};
  int width = ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  if (width <= 0) {
    width = columns_variable();
  }
  return width <= 0 ? otherwise : std::clamp(width, least, most);
}

Charset locale_charset() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto value = variable(name)) {
      return contains_utf8(*value) ? Charset::utf8 : Charset::ascii;
    }
  }
  return Charset::utf8;
}

bool can_draw() { return variable("TERM").value_or("dumb") != "dumb"; }

bool wants_color(int fd) { return ::isatty(fd) == 1 && !variable("NO_COLOR") && can_draw(); }

bool write_output(const std::string& text, bool page) {
  std::signal(SIGPIPE, SIG_IGN);  // `crosstalk report | head` must not fail
  if (page && ::isatty(STDOUT_FILENO) == 1) {
    const char* const chosen = std::getenv("PAGER");  // set and empty: no pager
    const std::string pager = chosen == nullptr ? "less" : chosen;
    if (!pager.empty() && pager != "cat" && write_to_pager(text, pager)) {
      return true;
    }
  }
  return write_all(STDOUT_FILENO, text);
}

}  // namespace crosstalk::driver
