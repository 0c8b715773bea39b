// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/call_frame.h"

#include <cpuid.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "collectors/in_target/sys/signal_frame.h"

namespace crosstalk::injector {
namespace {

using in_target::FramePlace;
using in_target::KernelContext;
using in_target::SignalFrame;

constexpr std::uint64_t red_zone = 128;  // below the stack pointer, and in use (System V psABI 3.2.2)
constexpr std::size_t legacy_bytes = 512;
constexpr std::size_t software_at = 464;  // struct _fpx_sw_bytes of the kernel
constexpr std::size_t components_at = 512;
constexpr std::uint32_t state_begins = 0x46505853;                    // FP_XSTATE_MAGIC1
constexpr std::uint32_t state_ends = 0x46505845;                      // FP_XSTATE_MAGIC2
constexpr std::uint64_t tile_components = (1U << 17U) | (1U << 18U);  // AMX: threads have them on demand only

// The kernel's own, which user space never sees but here (linux/errno.h).
constexpr std::int64_t restart_system_call = -512;
constexpr std::int64_t restart_without_interrupt = -513;
constexpr std::int64_t restart_without_handler = -514;
constexpr std::int64_t restart_by_block = -516;

/// Calls that end with EINTR at any stop, and have done nothing then: they may be made again.
constexpr std::array<std::uint64_t, 20> repeatable = {
    SYS_read,       SYS_write,           SYS_readv,        SYS_writev,
    SYS_recvfrom,   SYS_recvmsg,         SYS_sendto,       SYS_sendmsg,
    SYS_accept,     SYS_accept4,         SYS_semop,        SYS_msgrcv,
    SYS_msgsnd,     SYS_epoll_wait,      SYS_epoll_pwait,  441 /* epoll_pwait2 */,
    SYS_semtimedop, SYS_rt_sigtimedwait, SYS_io_getevents, SYS_recvmmsg};

std::uint64_t word_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

/// The vector state with the notes by which the kernel knows it in a frame; empty: it cannot be laid out.
std::vector<std::byte> framed(const std::vector<std::byte>& state) {
  if (state.size() < components_at + 64) {
    return {};
  }
  const std::uint64_t features = word_at(state, software_at) & ~tile_components;  // XCR0, where ptrace notes it
  const std::size_t bytes = vector_bytes(features);
  if (bytes == 0 || bytes > state.size() || (word_at(state, components_at) & ~features) != 0) {
    return {};
  }
  std::vector<std::byte> framed(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(bytes));
  struct {
    std::uint32_t magic, extended_bytes;
    std::uint64_t features;
    std::uint32_t bytes, padding[7];
  } const notes{state_begins,
                static_cast<std::uint32_t>(bytes + sizeof state_ends),
                features,
                static_cast<std::uint32_t>(bytes),
                {}};
  static_assert(sizeof notes == legacy_bytes - software_at);
  std::memcpy(framed.data() + software_at, &notes, sizeof notes);
  const auto* end = reinterpret_cast<const std::byte*>(&state_ends);
  framed.insert(framed.end(), end, end + sizeof state_ends);
  return framed;
}

void show(const user_regs_struct& from, std::uint64_t mask, std::uint64_t vector_state, KernelContext& to) {
  constexpr std::uint64_t has_vector_state = 1;       // UC_FP_XSTATE
  constexpr std::uint64_t has_stack_segment = 2 | 4;  // UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
  to.flags = has_vector_state | has_stack_segment;
  to.stack_flags = 0x7fffffff;  // no alternate stack is meant: the kernel leaves the thread the one that it has
  to.registers[REG_R8] = from.r8;
  to.registers[REG_R9] = from.r9;
  to.registers[REG_R10] = from.r10;
  to.registers[REG_R11] = from.r11;
  to.registers[REG_R12] = from.r12;
  to.registers[REG_R13] = from.r13;
  to.registers[REG_R14] = from.r14;
  to.registers[REG_R15] = from.r15;
  to.registers[REG_RDI] = from.rdi;
  to.registers[REG_RSI] = from.rsi;
  to.registers[REG_RBP] = from.rbp;
  to.registers[REG_RBX] = from.rbx;
  to.registers[REG_RDX] = from.rdx;
  to.registers[REG_RAX] = from.rax;
  to.registers[REG_RCX] = from.rcx;
  to.registers[REG_RSP] = from.rsp;
  to.registers[REG_RIP] = from.rip;
  to.registers[REG_EFL] = from.eflags;
  to.registers[REG_CSGSFS] = (from.cs & 0xffffU) | (from.ss & 0xffffU) << 48U;
  to.vector_state = vector_state;
  to.mask = mask;
}

}  // namespace

std::size_t vector_bytes(std::uint64_t features) {
  constexpr unsigned leaf = 0xd;  // Intel SDM vol. 1, 13.2
  constexpr unsigned components = 63;
  std::size_t bytes = legacy_bytes + 64;
  for (unsigned component = 2; component < components; ++component) {
    unsigned size = 0;
    unsigned offset = 0;
    unsigned c = 0;
    unsigned d = 0;
    if ((features >> component & 1U) == 0) {
      continue;
    }
    if (__get_cpuid_count(leaf, component, &size, &offset, &c, &d) == 0 || size == 0) {
      return 0;
    }
    bytes = std::max(bytes, std::size_t{offset} + size);
  }
  return bytes;
}

std::optional<std::size_t> find_restorer(const unsigned char* code, std::size_t bytes) {
  constexpr std::array<unsigned char, 9> wanted = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  const unsigned char* const found = std::search(code, code + bytes, wanted.begin(), wanted.end());
  return found == code + bytes ? std::nullopt : std::optional(static_cast<std::size_t>(found - code));
}

std::optional<user_regs_struct> resumed(const user_regs_struct& stopped) {
  constexpr std::uint64_t system_call_bytes = 2;
  user_regs_struct resumed = stopped;
  if (static_cast<std::int64_t>(stopped.orig_rax) < 0) {
    return resumed;
  }
  const auto result = static_cast<std::int64_t>(stopped.rax);
  const bool repeats = std::find(repeatable.begin(), repeatable.end(), stopped.orig_rax) != repeatable.end();
  if (result == restart_by_block) {
    return std::nullopt;
  }
  if (result == restart_system_call || result == restart_without_interrupt || result == restart_without_handler ||
      (result == -EINTR && repeats)) {
    resumed.rax = stopped.orig_rax;
    resumed.rip -= system_call_bytes;
  }
  resumed.orig_rax = ~std::uint64_t{0};
  return resumed;
}

Result<CallFrame> lay_out_call(const StoppedThread& thread, const user_regs_struct& resumed, std::uint64_t function,
                               const std::string& text, std::uint64_t more, std::uint64_t restorer) {
  const std::vector<std::byte> state = framed(thread.vector_state);
  if (state.empty()) {
    return fail(ErrorCode::unsupported, "the thread's vector registers are of a kind that is not known here");
  }
  constexpr std::uint64_t text_alignment = 16;
  const std::uint64_t top = resumed.rsp - red_zone;
  const std::uint64_t text_at = (top - (text.size() + 1)) & ~(text_alignment - 1);
  const FramePlace place = in_target::frame_place({}, false, text_at + red_zone, state.size());
  SignalFrame frame{};
  frame.return_address = restorer;
  show(resumed, thread.mask, place.vector_state, frame.context);
  CallFrame call;
  call.begin = place.frame;
  call.bytes.resize(top - place.frame);
  std::memcpy(call.bytes.data(), &frame, in_target::kernel_frame_bytes);
  std::memcpy(call.bytes.data() + (place.vector_state - place.frame), state.data(), state.size());
  std::memcpy(call.bytes.data() + (text_at - place.frame), text.c_str(), text.size() + 1);
  constexpr std::uint64_t odd_flags = 0x100 | 0x400 | 0x40000;  // single step, direction, alignment check
  call.registers = resumed;
  call.registers.rsp = place.frame;
  call.registers.rip = function;
  call.registers.rdi = text_at;
  call.registers.rsi = more;
  call.registers.rax = 0;
  call.registers.orig_rax = ~std::uint64_t{0};
  call.registers.eflags &= ~odd_flags;
  return call;
}

}  // namespace crosstalk::injector
