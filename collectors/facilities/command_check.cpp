// SPDX-License-Identifier: Apache-2.0
// Judges, before anything starts, whether a command can be executed, and whether the dynamic loader will take our
// library into it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "collectors/facilities/probe.h"
#include "collectors/program_image.h"

namespace crosstalk::collectors {

namespace {

constexpr int most_interpreters = 5;  // scripts run by scripts; the kernel gives up there, too (ELOOP)
constexpr std::string_view default_path = "/usr/local/bin:/usr/bin:/bin";

Result<JudgedCommand> judge(const std::string& path, int depth);

/// Returns 0 if `path` can be executed, or the errno that execve would give.
int execution_error(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno;
  }
  if (S_ISDIR(status.st_mode)) {
    return EISDIR;
  }
  if (!S_ISREG(status.st_mode)) {
    return EACCES;
  }
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

Error execution_failure(const std::string& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return Error{missing ? ErrorCode::not_found : ErrorCode::not_executable,
               missing ? path + ": no such file or directory" : path + ": cannot be executed: " + std::strerror(error)};
}

/// Finds the file that execvp would execute.
Result<std::string> search(const std::string& command) {
  if (command.empty()) {
    return fail(ErrorCode::not_found, "the command is an empty string");
  }
  if (command.find('/') != std::string::npos) {
    const int error = execution_error(command);
    return error == 0 ? Result<std::string>(command) : tl::unexpected<Error>(execution_failure(command, error));
  }
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? std::string_view(variable) : default_path;
  std::string forbidden;  // execvp goes on after EACCES, and reports it when nothing better comes
  for (bool more = true; more;) {
    const std::size_t colon = path.find(':');
    const std::string folder(path.substr(0, colon));
    more = colon != std::string_view::npos;
    path.remove_prefix(more ? colon + 1 : path.size());
    std::string candidate = (folder.empty() ? std::string(".") : folder) + "/" + command;
    const int error = execution_error(candidate);
    if (error == 0) {
      return candidate;
    }
    if (error == EACCES && forbidden.empty()) {
      forbidden = candidate;
    }
  }
  if (!forbidden.empty()) {
    return tl::unexpected<Error>(execution_failure(forbidden, EACCES));
  }
  return fail(ErrorCode::not_found, command + ": command not found in PATH");
}

tl::unexpected<Error> refuse(const std::string& path, const std::string& why) {
  return fail(ErrorCode::refused, path + ": " + why);
}

/// The rights that it gets beyond its user's; empty: none.
Result<std::string> privileges_of(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fail(ErrorCode::system, path + ": fstat: " + std::strerror(errno));
  }
  if ((status.st_mode & S_ISUID) != 0) {
    return "is set-user-ID";
  }
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0) {
    return "is set-group-ID";
  }
  return ::fgetxattr(fd, "security.capability", nullptr, 0) > 0 ? "has file capabilities" : "";
}

long read_at(int fd, void* bytes, std::size_t count, std::uint64_t offset) {
  return ::pread(fd, bytes, count, static_cast<off_t>(offset));
}

Result<JudgedCommand> judge_elf(const std::string& path, const ProgramImage& image) {
  switch (image.kind) {
    case ImageKind::other_class:
      return refuse(path, "is a 32-bit program; crosstalk observes 64-bit x86-64 programs");
    case ImageKind::other_machine:
      return refuse(path, "is for another processor (ELF machine " + std::to_string(image.machine) +
                              "); crosstalk observes x86-64 programs");
    case ImageKind::statically_linked:
      return JudgedCommand{path, "is statically linked"};
    case ImageKind::other_loader:
      return JudgedCommand{path, "uses the loader " + std::string(image.name) + ", not the GNU C library's"};
    case ImageKind::sanitized:
      return JudgedCommand{path, "is built with a sanitizer (" + std::string(image.name) +
                                     "), which has to be the first library of a process"};
    case ImageKind::damaged:
      return fail(ErrorCode::not_executable, path + ": damaged ELF file: its headers are cut off or contradictory");
    default:
      return JudgedCommand{path, ""};
  }
}

/// Words of a #! line after "#!".
std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  constexpr std::string_view blank = " \t";
  while (true) {
    const std::size_t begin = line.find_first_not_of(blank);
    if (begin == std::string_view::npos) {
      return words;
    }
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(blank), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// The command that `env` of a #! line runs: the first word that is no option and no assignment.
std::string command_of_env(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("-S") && words[i].size() > 2) {
      return words[i].substr(2);
    }
    if (words[i].starts_with('-') || words[i].find('=') != std::string::npos) {
      continue;
    }
    return words[i];
  }
  return {};
}

Result<JudgedCommand> judge_script(const std::string& path, std::string_view first_line, int depth) {
  const std::vector<std::string> words = split_words(first_line);
  if (words.empty()) {
    return fail(ErrorCode::not_executable, path + ": its #! line names no interpreter");
  }
  std::string interpreter = words.front();
  if (std::string_view(base_name(interpreter.c_str())) == "env") {
    const std::string command = command_of_env(words);
    const auto found = command.empty() ? Result<std::string>(interpreter) : search(command);
    if (!found) {
      return fail(found.error().code, path + ": interpreter " + found.error().message);
    }
    interpreter = *found;
  } else if (const int error = execution_error(interpreter); error != 0) {
    return fail(ErrorCode::not_executable, path + ": interpreter " + execution_failure(interpreter, error).message);
  }
  auto judged = judge(interpreter, depth + 1);
  if (!judged) {
    return fail(judged.error().code, path + ": its interpreter " + judged.error().message);
  }
  if (!judged->obstacle.empty()) {
    judged->obstacle = "has the interpreter " + judged->path + ", which " + judged->obstacle;
  }
  judged->path = path;
  return judged;
}

Result<JudgedCommand> judge(const std::string& path, int depth) {
  if (depth > most_interpreters) {
    return fail(ErrorCode::not_executable, path + ": too many levels of interpreters");
  }
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) {
    return refuse(path, std::string("cannot be read (") + std::strerror(errno) +
                            "), so it cannot be known whether it can be observed");
  }
  const Result<std::string> privileges = privileges_of(path, fd.get());
  if (!privileges) {
    return tl::unexpected<Error>(privileges.error());
  }
  const ProgramImage image = examine_program(read_at, fd.get(), path.c_str());
  if (image.kind == ImageKind::script) {
    return judge_script(path, image.name, depth);
  }
  if (image.kind != ImageKind::other) {
    auto judged = judge_elf(path, image);
    if (judged && !privileges->empty()) {  // the kernel knows no such rights of scripts
      judged->obstacle = *privileges;
      judged->privileged = true;
    }
    return judged;
  }
  std::array<char, 256> head{};  // execvp hands text to a shell
  const long got = read_at(fd.get(), head.data(), head.size(), 0);
  if (got > 0 && std::memchr(head.data(), 0, static_cast<std::size_t>(got)) != nullptr) {
    return fail(ErrorCode::not_executable, path + ": cannot be executed: neither an ELF program nor a script");
  }
  return judge_script(path, "/bin/sh", depth);
}

}  // namespace

Result<JudgedCommand> check_command(const std::string& command) {
  const auto path = search(command);
  return path ? judge(*path, 0) : tl::unexpected<Error>(path.error());
}

}  // namespace crosstalk::collectors
