// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/task_status.h"

#include <fcntl.h>

#include <cstring>
#include <type_traits>

#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

constexpr std::size_t path_capacity = 48;

char* put_text(char* at, const char* text) {
  while (*text != 0) {
    *at++ = *text++;
  }
  return at;
}

// `before`NUMBER`after`
long open_numbered(const char* before, std::int32_t number, const char* after) {
  char path[path_capacity];
  char* at = put_text(path, before);
  char digits[12];
  int count = 0;
  for (auto rest = static_cast<std::uint32_t>(number); rest != 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) {
    *at++ = digits[--count];
  }
  *put_text(at, after) = 0;
  return open_to_read(static_cast<char*>(path));
}

const char* skip_blanks(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == '\t')) {
    ++at;
  }
  return at;
}

std::uint64_t number_at(const char*& at, const char* end, unsigned base) {
  std::uint64_t value = 0;
  for (at = skip_blanks(at, end); at < end; ++at) {
    unsigned digit = 0;
    if (*at >= '0' && *at <= '9') {
      digit = static_cast<unsigned>(*at - '0');
    } else if (base == 16 && *at >= 'a' && *at <= 'f') {
      digit = static_cast<unsigned>(*at - 'a') + 10;
    } else {
      break;
    }
    value = value * base + digit;
  }
  return value;
}

// Returns the text behind "NAME:"; null if the line has another name.
const char* value_of(const char* line, const char* end, const char* name) {
  while (line < end && *name != 0 && *line == *name) {
    ++line;
    ++name;
  }
  return *name == 0 && line < end && *line == ':' ? line + 1 : nullptr;
}

}  // namespace

void parse_status_line(const char* line, std::size_t length, TaskStatus& status) {
  const char* const end = line + length;
  const auto field = [&](const char* name, unsigned base, auto& out) {
    const char* value = value_of(line, end, name);
    if (value != nullptr) {
      out = static_cast<std::remove_reference_t<decltype(out)>>(number_at(value, end, base));
    }
  };
  field("TracerPid", 10, status.tracer);
  field("SigPnd", 16, status.pending);
  field("SigBlk", 16, status.blocked);
  field("Seccomp", 10, status.seccomp);
  field("Seccomp_filters", 10, status.seccomp_filters);
  if (const char* value = value_of(line, end, "State"); value != nullptr) {
    value = skip_blanks(value, end);
    status.runnable = value < end && *value == 'R';
  }
  if (const char* value = value_of(line, end, "SigQ"); value != nullptr) {
    status.signals_queued = number_at(value, end, 10);
  }
}

namespace {

// Reads line by line, in a small buffer: only the beginning of a longer line (the groups of a user).
bool read_status(long fd, TaskStatus& status) {
  if (fd < 0) {
    return false;
  }
  char buffer[512];
  std::size_t used = 0;
  bool skipping = false;
  for (;;) {
    const long got = system_call(SYS_read, fd, buffer + used, sizeof buffer - used);
    if (got <= 0) {
      break;
    }
    used += static_cast<std::size_t>(got);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < used; ++i) {
      if (buffer[i] == '\n') {
        if (!skipping) {
          parse_status_line(buffer + begin, i - begin, status);
        }
        skipping = false;
        begin = i + 1;
      }
    }
    if (begin == 0 && used == sizeof buffer) {
      skipping = true;
      used = 0;
    } else {
      used -= begin;
      std::memmove(static_cast<char*>(buffer), buffer + begin, used);
    }
  }
  system_call(SYS_close, fd);
  return true;
}

}  // namespace

bool read_task_status(std::int32_t tid, TaskStatus& status) {
  return read_status(tid == 0 ? open_to_read("/proc/self/status") : open_numbered("/proc/self/task/", tid, "/status"),
                     status);
}

bool read_process_status(std::int32_t pid, TaskStatus& status) {
  return read_status(open_numbered("/proc/", pid, "/status"), status);
}

std::uint32_t parse_task_flags(const char* line, std::size_t length) {
  // "TID (name) state parent group session terminal foreground flags ...": the name may hold anything.
  const char* const end = line + length;
  const char* at = end;
  while (at > line && *(at - 1) != ')') {
    --at;
  }
  constexpr int words_before = 6;
  for (int word = 0; at > line && word < words_before; ++word) {
    at = skip_blanks(at, end);
    while (at < end && *at != ' ') {
      ++at;
    }
  }
  return at > line ? static_cast<std::uint32_t>(number_at(at, end, 10)) : 0;
}

bool runs_no_code(std::int32_t tid) {
  constexpr std::uint32_t exiting = 0x4;         // PF_EXITING
  constexpr std::uint32_t io_worker = 0x10;      // PF_IO_WORKER
  constexpr std::uint32_t user_worker = 0x4000;  // PF_USER_WORKER, Linux 6.4
  const long fd = open_numbered("/proc/self/task/", tid, "/stat");
  if (fd < 0) {
    return false;
  }
  char buffer[256];
  const long got = system_call(SYS_read, fd, static_cast<char*>(buffer), sizeof buffer);
  system_call(SYS_close, fd);
  return got > 0 &&
         (parse_task_flags(buffer, static_cast<std::size_t>(got)) & (exiting | io_worker | user_worker)) != 0;
}

}  // namespace crosstalk::in_target
