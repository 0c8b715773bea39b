// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/direct_calls.h"

#include <emmintrin.h>
#include <fcntl.h>
#include <link.h>
#include <sys/prctl.h>

#include <cstring>

#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

constexpr std::size_t scan_limit = std::size_t{32} << 20U;

// `opcode` and a 32-bit constant, somewhere in the bytes.
bool moves_constant(const std::uint8_t* code, std::size_t bytes, std::uint8_t opcode, std::uint32_t constant) {
  constexpr std::size_t length = 5;
  for (std::size_t i = 0; i + length <= bytes; ++i) {
    if (code[i] == opcode && std::memcmp(code + i + 1, &constant, sizeof constant) == 0) {
      return true;
    }
  }
  return false;
}

constexpr std::uint8_t mov_eax = 0xb8;
constexpr std::uint8_t mov_edi = 0xbf;

bool prepares_confinement(const std::uint8_t* code, std::size_t bytes) {
  constexpr std::uint32_t user_dispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11
  return moves_constant(code, bytes, mov_eax, SYS_seccomp) ||
         (moves_constant(code, bytes, mov_eax, SYS_prctl) && (moves_constant(code, bytes, mov_edi, PR_SET_SECCOMP) ||
                                                              moves_constant(code, bytes, mov_edi, user_dispatch)));
}

// These numbers are small, and common as constants of other meanings: the last one that is moved counts.
bool prepares_signal_call(const std::uint8_t* code, std::size_t bytes) {
  constexpr std::uint32_t most_calls = 1024;
  std::uint32_t number = 0;
  for (std::size_t i = bytes < 5 ? 0 : bytes - 4; i-- > 0;) {
    std::memcpy(&number, code + i + 1, sizeof number);
    if (code[i] == mov_eax && number < most_calls) {
      return number == SYS_rt_sigaction || number == SYS_rt_sigprocmask;
    }
  }
  return false;
}

void add(DirectCalls& all, const DirectCalls& more) {
  all.confines = all.confines || more.confines;
  all.signals = all.signals || more.signals;
}

bool is_libc_or_ours(const dl_phdr_info& module) {
  if (module.dlpi_addr == own_bias()) {
    return true;
  }
  const char* name = module.dlpi_name;
  for (const char* at = name; *at != 0; ++at) {
    name = *at == '/' ? at + 1 : name;
  }
  for (const char* known : {"libc.so.", "ld-linux", "libpthread.so.", "linux-vdso"}) {
    if (strncmp(name, known, strlen(known)) == 0) {
      return true;
    }
  }
  return false;
}

struct Scan {
  std::size_t bytes = 0;
  DirectCalls found;
  bool first = true;
};

// Reads the file instead of its mapping: pages that the program never touches would become resident.
DirectCalls scan_file(long fd, std::size_t begin, std::size_t end) {
  DirectCalls found;
  alignas(16) std::uint8_t buffer[16384];
  while (begin < end) {
    const std::size_t wanted = end - begin < sizeof buffer ? end - begin : sizeof buffer;
    const long got = system_call(SYS_pread64, fd, static_cast<std::uint8_t*>(buffer), wanted, begin);
    if (got <= 0) {
      break;
    }
    const auto bytes = static_cast<std::size_t>(got);
    add(found, direct_calls_in(buffer, bytes));
    begin += bytes > direct_call_bytes && begin + bytes < end ? bytes - direct_call_bytes : bytes;
  }
  return found;
}

int scan_module(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  auto& scan = *static_cast<Scan*>(data);
  const bool program = scan.first;
  scan.first = false;
  if (is_libc_or_ours(*module)) {
    return 0;
  }
  const char* path = program ? "/proc/self/exe" : module->dlpi_name;
  const long fd = system_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  for (int i = 0; i < module->dlpi_phnum && !scan.found.confines && scan.bytes < scan_limit; ++i) {
    const ElfW(Phdr)& segment = module->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      const std::size_t room = scan_limit - scan.bytes;
      const std::size_t bytes = segment.p_filesz < room ? segment.p_filesz : room;
      DirectCalls found = scan_file(fd, segment.p_offset, segment.p_offset + bytes);
      found.signals = found.signals && program;
      add(scan.found, found);
      scan.bytes += bytes;
    }
  }
  system_call(SYS_close, fd);
  return scan.found.confines || scan.bytes >= scan_limit ? 1 : 0;
}

}  // namespace

DirectCalls direct_calls_in(const std::uint8_t* code, std::size_t bytes) {
  constexpr std::uint8_t first = 0x0f;  // of `syscall`, 0f 05
  constexpr std::uint8_t second = 0x05;
  DirectCalls found;
  const auto look_before = [&](std::size_t at) {
    const std::size_t begin = at < direct_call_bytes - 2 ? 0 : at - (direct_call_bytes - 2);
    add(found, {prepares_confinement(code + begin, at - begin), prepares_signal_call(code + begin, at - begin)});
  };
  std::size_t at = 0;
  for (; at + 17 <= bytes; at += 16) {
    const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(code + at));      // NOLINT
    const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(code + at + 1));  // NOLINT
    const __m128i both =
        _mm_and_si128(_mm_cmpeq_epi8(here, _mm_set1_epi8(first)), _mm_cmpeq_epi8(next, _mm_set1_epi8(second)));
    for (auto hits = static_cast<unsigned>(_mm_movemask_epi8(both)); hits != 0; hits &= hits - 1) {
      look_before(at + static_cast<unsigned>(__builtin_ctz(hits)));
    }
  }
  for (; at + 1 < bytes; ++at) {
    if (code[at] == first && code[at + 1] == second) {
      look_before(at);
    }
  }
  return found;
}

DirectCalls find_direct_calls() {
  Scan scan;
  ::dl_iterate_phdr(scan_module, &scan);
  return scan.found;
}

}  // namespace crosstalk::in_target
