// SPDX-License-Identifier: Apache-2.0
#include "driver/live/private_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace crosstalk::driver::live {
namespace {

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

/// Waits until the other end of `life_line` is closed, then removes the folder until its other users have ended, too.
/// Holds nothing that others wait for: no descriptor, no terminal's signal.
[[noreturn]] void guard(const std::string& path, int life_line) {
  constexpr int own_line = 0;
  constexpr int times = 30;
  constexpr useconds_t pause_us = 100'000;
  ::setsid();
  ::prctl(PR_SET_NAME, "crosstalk-guard");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::dup2(life_line, own_line);
  ::close_range(own_line + 1, ~0U, 0);
  for (char byte = 0; ::read(own_line, &byte, 1) != 0 && errno == EINTR;) {
  }
  for (int i = 0; i < times; ++i) {  // a recorder that is told to end still writes
    remove_folder(path);
    ::usleep(pause_us);
  }
  ::_exit(0);
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make() {
  const char* const chosen = std::getenv("TMPDIR");
  const std::string below = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::string path = below + "/crosstalk-top-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {  // with mode 0700
    return fail(errno == EACCES || errno == EROFS ? ErrorCode::permission : ErrorCode::system,
                "no folder can be made in " + below + ": " + std::strerror(errno) +
                    "; name another place by the variable TMPDIR");
  }
  PrivateFolder folder(path);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) == 0) {  // without a guard, only the destructor removes it
    folder.life_line_.reset(ends[1]);
    folder.guard_ = ::fork();
    if (folder.guard_ == 0) {
      guard(path, ends[0]);
    }
    ::close(ends[0]);
  }
  return folder;
}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) {
    return;
  }
  remove_folder(path_);
  if (guard_ > 0) {
    ::kill(guard_, SIGKILL);
    ::waitpid(guard_, nullptr, 0);
  }
}

}  // namespace crosstalk::driver::live
