// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/interpose/exec_file.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "collectors/in_target/sys/system_calls.h"
#include "collectors/program_image.h"

namespace crosstalk::in_target {
namespace {

using collectors::ImageKind;
using collectors::ProgramImage;
using profile::Unobserved;

constexpr char usual_path[] = "/bin:/usr/bin";  // of glibc where PATH is not set
constexpr std::size_t path_limit = 4096;        // PATH_MAX
constexpr std::size_t room_limit = 16384;       // bytes of the stack for a name in PATH
constexpr int most_interpreters = 5;            // scripts run by scripts; the kernel gives up there, too
constexpr char own_descriptors[] = "/proc/self/fd/";

long read_at(int fd, void* bytes, std::size_t count, std::uint64_t offset) {
  return system_call(SYS_pread64, fd, bytes, count, offset);
}

/// Opens a regular file that may be executed; negative otherwise. Checks its kind first: opening a device can have
/// consequences.
long open_program(int directory, const char* path) {
  struct stat status {};
  if (system_call(SYS_newfstatat, directory, path, &status, 0) < 0 || !S_ISREG(status.st_mode) ||
      system_call(SYS_faccessat, directory, path, X_OK) < 0) {
    return -1;
  }
  return system_call(SYS_openat, directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/// "/proc/self/fd/N".
struct DescriptorPath {
  char text[sizeof own_descriptors + 12];

  explicit DescriptorPath(int descriptor) {
    char digits[12];
    std::size_t count = 0;
    for (auto rest = static_cast<unsigned>(descriptor); rest != 0 || count == 0; rest /= 10) {
      digits[count++] = static_cast<char>('0' + rest % 10);
    }
    memcpy(text, own_descriptors, sizeof own_descriptors - 1);
    std::size_t length = sizeof own_descriptors - 1;
    while (count != 0) {
      text[length++] = digits[--count];
    }
    text[length] = 0;
  }
};

/// The first program of that name in PATH, as execvp finds it.
long open_in_path(const char* file) {
  const char* list = ::getenv("PATH");
  list = list != nullptr ? list : static_cast<const char*>(usual_path);
  const std::size_t file_bytes = strlen(file) + 1;
  const std::size_t room = strlen(list) + 1 + file_bytes;
  if (room > room_limit) {
    return -1;
  }
  auto* candidate = static_cast<char*>(__builtin_alloca(room));
  for (;;) {
    const std::size_t folder_bytes = strcspn(list, ":");
    if (folder_bytes + 1 + file_bytes <= path_limit) {
      memcpy(candidate, list, folder_bytes);
      candidate[folder_bytes] = '/';
      memcpy(candidate + folder_bytes + (folder_bytes != 0 ? 1 : 0), file, file_bytes);  // empty: the working directory
      const long fd = open_program(AT_FDCWD, candidate);
      if (fd >= 0) {
        return fd;
      }
    }
    if (list[folder_bytes] == 0) {
      return -1;
    }
    list += folder_bytes + 1;
  }
}

long open_file(const ExecFile& file) {
  if (file.path == nullptr || (file.path[0] == 0 && file.descriptor < 0)) {
    return -1;
  }
  if (file.path[0] == 0) {
    return open_program(AT_FDCWD, DescriptorPath(file.descriptor).text);
  }
  const bool has_slash = collectors::base_name(file.path) != file.path;
  return file.search && !has_slash ? open_in_path(file.path) : open_program(file.descriptor, file.path);
}

/// The kernel will tell the loader not to trust the environment.
bool gains_privileges(int fd) {
  struct stat status {};
  if (system_call(SYS_fstat, fd, &status) < 0 || system_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
    return false;
  }
  const long user = system_call(SYS_geteuid);
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != user) {
    return true;
  }
  const bool of_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  return (of_group && status.st_gid != system_call(SYS_getegid)) ||
         (user != 0 && system_call(SYS_fgetxattr, fd, "security.capability", nullptr, 0) > 0);
}

template <std::size_t capacity>
void copy_text(char (&out)[capacity], const char* text) {
  const std::size_t length = strlen(text);
  const std::size_t bytes = length < capacity - 1 ? length : capacity - 1;
  memcpy(out, text, bytes);
  out[bytes] = 0;
}

/// Opens the interpreter that a #! line names; cuts the line behind its name.
long open_interpreter(char* line) {
  while (*line == ' ' || *line == '\t') {
    ++line;
  }
  line[strcspn(line, " \t")] = 0;
  return open_program(AT_FDCWD, line);
}

Unobserved reason_of(ImageKind kind) {
  switch (kind) {
    case ImageKind::statically_linked:
      return Unobserved::statically_linked;
    case ImageKind::other_class:
      return Unobserved::other_class;
    case ImageKind::other_machine:
      return Unobserved::other_machine;
    case ImageKind::other_loader:
      return Unobserved::other_loader;
    case ImageKind::sanitized:
      return Unobserved::sanitizer;
    default:
      return Unobserved{};
  }
}

}  // namespace

bool unobservable(const ExecFile& file, UnobservedProgram& program) {
  long fd = open_file(file);
  program.reason = Unobserved{};
  for (int depth = 0; fd >= 0 && depth <= most_interpreters; ++depth) {
    const auto opened = static_cast<int>(fd);
    const DescriptorPath link(opened);
    const long length = system_call(SYS_readlinkat, AT_FDCWD, static_cast<const char*>(link.text),
                                    static_cast<char*>(program.program), sizeof program.program - 1);
    program.program[length > 0 ? length : 0] = 0;
    ProgramImage image = collectors::examine_program(read_at, opened, program.program);
    program.reason = reason_of(image.kind);
    const bool elf = image.kind != ImageKind::script && image.kind != ImageKind::other;
    if (program.reason == Unobserved{} && elf && gains_privileges(opened)) {
      program.reason = Unobserved::privileged;
    }
    const bool named = program.reason == Unobserved::other_loader || program.reason == Unobserved::sanitizer;
    copy_text(program.detail, named ? static_cast<const char*>(image.name) : "");
    fd = image.kind == ImageKind::script ? open_interpreter(image.name) : -1;
    system_call(SYS_close, opened);
  }
  if (fd >= 0) {
    system_call(SYS_close, fd);
  }
  return program.reason != Unobserved{};
}

void set_program(UnobservedProgram& program, const char* path) { copy_text(program.program, path); }

bool must_not_get_us(Unobserved reason) {
  switch (reason) {
    case Unobserved::other_class:
    case Unobserved::other_machine:
    case Unobserved::other_loader:
    case Unobserved::sanitizer:
    case Unobserved::out_of_reach:
      return true;
    default:
      return false;
  }
}

}  // namespace crosstalk::in_target
