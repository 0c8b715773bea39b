// SPDX-License-Identifier: Apache-2.0
#include "tests/in_target/native_step.h"

#include <sys/mman.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

namespace crosstalk::test {

namespace {

constexpr std::uint64_t restored = 0xe7;  // x87, SSE, AVX and AVX-512: what XSAVE and XRSTOR are asked for
constexpr int caught[] = {SIGILL, SIGFPE, SIGSEGV, SIGBUS, SIGTRAP};

sigjmp_buf back;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a handler's
void jump_back(int number) { siglongjmp(back, number); }

std::uint64_t enabled() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low & restored;
}

/// Machine code, appended to.
class Code {
 public:
  explicit Code(std::uint8_t* at) : at_(at) {}
  Code& bytes(std::initializer_list<unsigned> code) {
    for (const unsigned byte : code) {
      *at_++ = static_cast<std::uint8_t>(byte);
    }
    return *this;
  }
  Code& word(std::uint64_t word) {
    std::memcpy(at_, &word, sizeof word);
    at_ += sizeof word;
    return *this;
  }
  Code& copy(std::span<const std::uint8_t> code) {
    std::memcpy(at_, code.data(), code.size());
    at_ += code.size();
    return *this;
  }

 private:
  std::uint8_t* at_;
};

constexpr std::array<unsigned, 16> encodings = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};  // by DWARF's
constexpr unsigned rsp = 7;

template <typename T>
std::uint64_t address(T* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace

struct NativeStep::Page {
  alignas(64) std::uint8_t before[area_bytes];
  alignas(64) std::uint8_t after[area_bytes];
  std::uint64_t stack, flags, value[16];
  alignas(4096) std::uint8_t code[4096];
  alignas(4096) std::uint8_t memory[memory_bytes];
};

NativeStep::NativeStep() : features_(enabled()) {
  void* page = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    std::abort();
  }
  page_ = new (page) Page;
  struct sigaction action {};
  action.sa_handler = jump_back;
  action.sa_flags = SA_NODEFER;
  for (const int number : caught) {
    ::sigaction(number, &action, nullptr);
  }
  std::memcpy(page_->before + 512, &features_, sizeof features_);  // the header: all components are in use
}

NativeStep::~NativeStep() {
  for (const int number : caught) {
    std::signal(number, SIG_DFL);
  }
  ::munmap(page_, sizeof(Page));
}

std::uint8_t* NativeStep::before() { return page_->before; }
in_target::VectorFrame NativeStep::frame_before() const { return {page_->before, area_bytes, features_}; }
in_target::VectorFrame NativeStep::frame_after() const { return {page_->after, area_bytes, features_}; }
std::uint8_t* NativeStep::memory() { return page_->memory; }
std::uint64_t NativeStep::middle() const { return address(page_->memory) + memory_bytes / 2; }

std::uint64_t NativeStep::stack() const { return page_->stack; }

int NativeStep::run(std::span<const std::uint8_t> code, Registers& registers, std::uint64_t& flags) {
  Code to(page_->code);
  to.bytes({0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57});  // push rbx, rbp, r12 to r15
  to.bytes({0x48, 0x89, 0xe0, 0x48, 0xa3}).word(address(&page_->stack));   // mov rax, rsp; mov [stack], rax
  to.bytes({0xb8, restored, 0, 0, 0, 0x31, 0xd2});                         // mov eax, restored; xor edx, edx
  to.bytes({0x48, 0xbf}).word(address(page_->before)).bytes({0x48, 0x0f, 0xae, 0x2f});  // xrstor64 [before]
  to.bytes({0x48, 0xb8}).word(flags).bytes({0x50, 0x9d});                               // push flags; popfq
  for (unsigned r = 0; r < 16; ++r) {
    if (r != rsp) {
      to.bytes({0x48U | encodings[r] >> 3U, 0xb8U | (encodings[r] & 7U)}).word(registers.value[r]);  // mov r, value
    }
  }
  to.copy(code);
  to.bytes({0x48, 0xa3}).word(address(&page_->value[0]));           // mov [value], rax
  to.bytes({0x9c, 0x58, 0x48, 0xa3}).word(address(&page_->flags));  // pushfq; pop rax; mov [flags], rax
  for (unsigned r = 1; r < 16; ++r) {
    to.bytes({0x48U | encodings[r] >> 3U << 2U, 0x89, 0xc0U | (encodings[r] & 7U) << 3U});  // mov rax, r
    to.bytes({0x48, 0xa3}).word(address(&page_->value[r]));
  }
  to.bytes({0xfc, 0xb8, restored, 0, 0, 0, 0x31, 0xd2});                               // cld
  to.bytes({0x48, 0xbf}).word(address(page_->after)).bytes({0x48, 0x0f, 0xae, 0x27});  // xsave64 [after]
  to.bytes({0x68, 0x80, 0x1f, 0, 0, 0x0f, 0xae, 0x14, 0x24, 0x58});                    // mxcsr as usual
  to.bytes({0xc5, 0xf8, 0x77});                                                        // vzeroupper
  to.bytes({0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3});
  std::memset(page_->after + 512, 0, 64);
  const int raised = sigsetjmp(back, 1);
  if (raised != 0) {
    return raised;
  }
  reinterpret_cast<void (*)()>(page_->code)();
  std::memcpy(registers.value.data(), page_->value, sizeof page_->value);
  flags = page_->flags;
  return 0;
}

}  // namespace crosstalk::test
