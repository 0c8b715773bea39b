// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/notices.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

using profile::NoticeState;

profile::UnobservedNotice* claim_notice(profile::ArenaHeader& header) {
  for (profile::UnobservedNotice& notice : header.notices) {
    auto expected = static_cast<std::uint32_t>(NoticeState::free);
    if (notice.state.compare_exchange_strong(expected, static_cast<std::uint32_t>(NoticeState::claimed))) {
      return &notice;
    }
  }
  return nullptr;
}

}  // namespace

void tell_unobserved(const UnobservedProgram& program, std::int32_t pid, bool withdrawn) {
  const profile::ArenaView arena = runtime().arena;
  profile::UnobservedNotice* notice = arena.header != nullptr ? claim_notice(*arena.header) : nullptr;
  if (notice == nullptr) {
    return;
  }
  notice->reason = program.reason;
  notice->pid = pid;
  notice->withdrawn = withdrawn ? 1 : 0;
  notice->time_ns = monotonic_ns();
  static_assert(sizeof notice->detail == sizeof program.detail && sizeof notice->program == sizeof program.program);
  std::memcpy(notice->detail, program.detail, sizeof program.detail);
  std::memcpy(notice->program, program.program, sizeof program.program);
  notice->state.store(static_cast<std::uint32_t>(NoticeState::ready), std::memory_order_release);
}

bool in_recorders_pid_namespace() {
  const std::uint64_t recorders = runtime().arena.header->pid_namespace;
  struct stat status {};
  if (recorders == 0 || system_call(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) < 0 ||
      status.st_ino == recorders) {
    return true;
  }
  UnobservedProgram program;
  program.reason = profile::Unobserved::pid_namespace;
  system_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", static_cast<char*>(program.program),
              sizeof program.program - 1);
  tell_unobserved(program, 0, false);
  return false;
}

}  // namespace crosstalk::in_target
