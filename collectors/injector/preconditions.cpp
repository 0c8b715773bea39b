// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/preconditions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/number.h"
#include "base/proc_fields.h"
#include "base/unique_fd.h"
#include "collectors/injector/executed_program.h"
#include "collectors/injector/refusal.h"
#include "collectors/observer/target_process.h"
#include "collectors/program_image.h"

namespace crosstalk::injector {
namespace {

using collectors::ImageKind;

/// The value of a line of /proc/.../status; empty: there is none.
std::string field(const std::string& status, std::string_view key) {
  return std::string(proc_field(status, key).value_or(""));
}

std::uint64_t number(std::string_view text) { return leading_number<std::uint64_t>(text).value_or(0); }

/// The second number of "Uid:\treal\teffective\t...".
std::uint64_t effective(const std::string& ids) {
  const std::size_t tab = ids.find('\t');
  return tab == std::string::npos ? 0 : number(std::string_view(ids).substr(tab + 1));
}

Result<void> check_status(pid_t pid) {
  const std::string status = file_text("/proc/" + std::to_string(pid) + "/status");
  if (const std::string tracer = field(status, "TracerPid"); number(tracer) != 0) {
    return refuse(pid, "process " + tracer + " traces it already (a debugger, strace?); a process has one tracer");
  }
  if (const std::string state = field(status, "State"); state.starts_with('T') || state.starts_with('t')) {
    return refuse(pid, "it is stopped; let it go on first (kill -CONT " + std::to_string(pid) + ")");
  }
  if (const std::uint64_t user = effective(field(status, "Uid")); user != ::geteuid()) {
    return refuse(pid, "it runs as another user (uid " + std::to_string(user) +
                           "), who cannot reach the recorder's memory; record as that user (sudo -u '#" +
                           std::to_string(user) + "'), or from outside, without --inject");
  }
  for (const pid_t tid : observer::threads_of_program(pid)) {
    if (const std::string why = why_no_calls_by(pid, tid); !why.empty()) {
      return refuse(pid, (tid == pid ? "it " : "a thread of it ") + why + "; record from outside, without --inject");
    }
  }
  if (field(status, "x86_Thread_features").find("shstk") != std::string::npos) {
    return refuse(pid, "it has shadow stacks, on which no call can be laid; record from outside, without --inject");
  }
  return {};
}

long read_at(int fd, void* bytes, std::size_t count, std::uint64_t offset) {
  return ::pread(fd, bytes, count, static_cast<off_t>(offset));
}

Result<void> check_program(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/exe";
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto image = collectors::examine_program(read_at, file.get(), path.c_str());
  const std::string outside = "; record from outside, without --inject";
  switch (image.kind) {
    case ImageKind::observable:
      return {};
    case ImageKind::statically_linked:
      return refuse(pid,
                    "its program is statically linked: it has no dynamic loader that could load a library" + outside);
    case ImageKind::other_class:
      return refuse(pid, "its program has 32 bits, the library 64" + outside);
    case ImageKind::other_machine:
      return refuse(pid, "its program is not for x86-64" + outside);
    case ImageKind::other_loader:
      return refuse(pid, std::string("its C library is not glibc (its loader is ") + image.name + ")" + outside);
    case ImageKind::sanitized:
      return refuse(pid, std::string("it is built with a sanitizer (") + image.name + ")" + outside);
    default:
      return refuse(pid, "its program cannot be read" + outside);
  }
}

bool same_namespace(pid_t pid, const char* name) {
  struct stat there {};
  struct stat here {};
  return ::stat(("/proc/" + std::to_string(pid) + "/ns/" + name).c_str(), &there) == 0 &&
         ::stat((std::string("/proc/self/ns/") + name).c_str(), &here) == 0 && there.st_ino == here.st_ino;
}

/// With the target's eyes: its root, in its mount namespace.
Result<void> check_library(pid_t pid, const std::string& library) {
  struct stat seen {};
  struct stat ours {};
  const bool there = ::stat(("/proc/" + std::to_string(pid) + "/root" + library).c_str(), &seen) == 0;
  if (::stat(library.c_str(), &ours) != 0) {
    return refuse(pid, "there is no " + library);
  }
  if (!there || seen.st_ino != ours.st_ino || seen.st_size != ours.st_size) {
    return refuse(pid, "it does not see " + library +
                           " (it has another root or mount namespace, as in a container): "
                           "install crosstalk there, or record from outside, without --inject");
  }
  for (const char* name : {"pid", "user"}) {
    if (!same_namespace(pid, name)) {
      return refuse(pid, std::string("it has a ") + name +
                             " namespace of its own; run crosstalk in there, or record from outside, without --inject");
    }
  }
  return {};
}

}  // namespace

std::string why_no_calls_by(pid_t pid, pid_t tid) {
  constexpr int files = 2;  // KCMP_FILES, linux/kcmp.h
  const std::string status = file_text("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/status");
  const std::string own = file_text("/proc/self/status");
  if (number(field(status, "Seccomp_filters")) > number(field(own, "Seccomp_filters")) ||
      field(status, "Seccomp") == "1") {
    return "is inside a seccomp filter, which might kill it for what the library calls";
  }
  // An event that is closed in one table of descriptors lives on in the other.
  return ::syscall(SYS_kcmp, pid, tid, files, 0, 0) > 0 ? "has descriptors of its own, apart from other threads'"
                                                        : std::string();
}

Result<void> check_injectable(pid_t pid, const std::string& library) {
  if (auto there = observer::check_process(pid); !there) {
    return there;
  }
  const ExecutedProgram seen(pid);
  auto done = check_status(pid);
  done = done ? check_program(pid) : done;
  done = done ? check_library(pid, library) : done;
  const std::string instead = done ? std::string() : seen.what_became_of_it();
  return instead.empty() ? done : refuse(pid, instead);
}

}  // namespace crosstalk::injector
