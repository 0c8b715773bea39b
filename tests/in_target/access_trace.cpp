// SPDX-License-Identifier: Apache-2.0
#include "tests/in_target/access_trace.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace crosstalk::test {

namespace {

bool read_process(void* context, std::uint64_t address, void* out, std::size_t bytes) {
  const iovec local{out, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: the child's address
  return ::process_vm_readv(*static_cast<pid_t*>(context), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

TraceStep make_step(const user_regs_struct& r) {
  TraceStep step;
  step.registers.value = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                          r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  step.flags = r.eflags;
  step.fs_base = r.fs_base;
  return step;
}

void fill_context(const user_regs_struct& r, ZydisRegisterContext& context) {
  std::memset(&context, 0, sizeof(context));
  const std::uint64_t in_order[16] = {r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,
                                      r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15};
  for (unsigned i = 0; i < 16; ++i) {
    context.values[ZYDIS_REGISTER_RAX + i] = in_order[i];
    context.values[ZYDIS_REGISTER_EAX + i] = in_order[i] & 0xffffffffU;
  }
}

bool only_names_memory(const ZydisDecodedInstruction& instruction) {
  const char* name = ZydisMnemonicGetString(instruction.mnemonic);
  return instruction.mnemonic == ZYDIS_MNEMONIC_NOP || instruction.mnemonic == ZYDIS_MNEMONIC_LEA ||
         std::strncmp(name, "prefetch", 8) == 0 || std::strncmp(name, "clflush", 7) == 0 ||
         std::strncmp(name, "clwb", 4) == 0;
}

TrueAccess describe(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand& operand,
                    const user_regs_struct& r) {
  TrueAccess access;
  access.instruction = r.rip;
  access.width = operand.size / 8 > 64 ? 0 : static_cast<std::uint8_t>(operand.size / 8);
  const unsigned kind = ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 ? 1U : 0U) |
                        ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 ? 2U : 0U);
  access.kind = static_cast<AccessKind>(kind);
  ZydisRegisterContext context;
  fill_context(r, context);
  access.known = operand.mem.type == ZYDIS_MEMOP_TYPE_MEM && operand.mem.segment != ZYDIS_REGISTER_GS &&
                 ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(&instruction, &operand, r.rip, &context, &access.address));
  const bool fs = operand.mem.segment == ZYDIS_REGISTER_FS;
  access.address += fs ? r.fs_base : 0;
  const auto over_stack = static_cast<std::int64_t>(access.address - r.rsp);
  access.spill =
      !fs && (operand.mem.base == ZYDIS_REGISTER_RSP || (kind != 3 && over_stack >= -128 && over_stack < 64) ||
              (operand.mem.base == ZYDIS_REGISTER_RBP && over_stack > -32768 && over_stack < (1 << 19)));
  access.fixed_jump = operand.mem.base == ZYDIS_REGISTER_RIP &&
                      (instruction.mnemonic == ZYDIS_MNEMONIC_JMP || instruction.mnemonic == ZYDIS_MNEMONIC_CALL);
  return access;
}

void decode(const user_regs_struct& r, pid_t pid, TraceStep& step) {
  std::uint8_t code[15] = {};
  std::size_t bytes = sizeof(code);
  while (bytes > 0 && !read_process(&pid, r.rip, code, bytes)) {
    --bytes;
  }
  ZydisDecoder decoder;
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, bytes, &instruction, operand))) {
    return;
  }
  step.length = instruction.length;
  step.system_call = instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
  const bool repeats =
      (instruction.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
  if (only_names_memory(instruction) || (repeats && r.rcx == 0)) {
    return;
  }
  const bool string = instruction.meta.category == ZYDIS_CATEGORY_STRINGOP;  // Zydis calls their operands hidden
  const unsigned operands = string ? instruction.operand_count : instruction.operand_count_visible;
  for (unsigned i = 0; i < operands && !step.access; ++i) {
    if (operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operand[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN) {
      step.access = describe(instruction, operand[i], r);
    }
  }
}

/// Steps until the function has returned, the child is gone or `limit` is reached.
void step_through(pid_t child, std::size_t limit, const std::function<void(const TraceStep&, pid_t)>& visit) {
  constexpr std::size_t features_at = 464;  // the kernel's place for them: USER_XSTATE_XCR0_WORD
  std::vector<std::uint8_t> area(16384);
  for (std::size_t i = 0; i < limit; ++i) {
    user_regs_struct r{};
    if (::ptrace(PTRACE_GETREGS, child, nullptr, &r) != 0) {
      return;
    }
    TraceStep step = make_step(r);
    iovec saved{area.data(), area.size()};
    if (::ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &saved) == 0) {
      std::memcpy(&step.vectors.features, area.data() + features_at, sizeof step.vectors.features);
      step.vectors.area = area.data();
      step.vectors.bytes = saved.iov_len;
    }
    decode(r, child, step);
    visit(step, child);
    int status = 0;
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || ::waitpid(child, &status, 0) != child ||
        !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
      return;
    }
  }
}

}  // namespace

bool trace(const std::function<void()>& function, std::size_t limit,
           const std::function<void(const TraceStep&, pid_t)>& visit) {
  const pid_t child = ::fork();
  if (child < 0) {
    return false;
  }
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    function();
    ::_exit(0);
  }
  int status = 0;
  const bool stopped = ::waitpid(child, &status, 0) == child && WIFSTOPPED(status);
  if (stopped) {
    step_through(child, limit, visit);
  }
  ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
  }
  return stopped;
}

std::size_t usual_steps() {
  const char* const wanted = std::getenv("CROSSTALK_TEST_STEPS");
  return wanted == nullptr ? 3000 : std::strtoul(wanted, nullptr, 10);
}

in_target::CodeReader process_reader(pid_t* pid) { return {pid, read_process, read_process}; }

}  // namespace crosstalk::test
