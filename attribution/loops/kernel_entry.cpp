// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/kernel_entry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "symbolizer/cfg/system_call.h"

namespace crosstalk::attribution {
namespace {

constexpr std::array<std::uint8_t, 2> syscall_instruction = {0x0f, 0x05};
constexpr std::uint64_t longest_function = 1 << 16;  // of which a call's number is looked for

/// The function's code, up to the end of the system call at `place`, a byte of its instruction. If the function's
/// beginning is not known, the bytes before it that may hold the number.
std::span<const std::uint8_t> code_before(const ProgramView& view, ModulePlace place) {
  constexpr std::uint64_t few = 5;  // mov $number, %eax
  const std::uint64_t end = place.address + 1;
  const std::uint64_t known = view.code().locate(place).function_begin;
  const std::uint64_t call = end - syscall_instruction.size();
  const std::uint64_t begin = known != 0 && known <= call && call - known <= longest_function ? known : call - few;
  const std::span<const std::uint8_t> code = view.code().bytes_at({place.file, begin});
  return code.size() >= end - begin ? code.first(end - begin) : std::span<const std::uint8_t>();
}

}  // namespace

bool ends_system_call(const ProgramView& view, ModulePlace place) {
  if (place.address < syscall_instruction.size()) {
    return false;
  }
  const auto code = view.code().bytes_at({place.file, place.address - syscall_instruction.size()});
  return code.size() < syscall_instruction.size() ||
         std::equal(syscall_instruction.begin(), syscall_instruction.end(), code.begin());
}

KernelEntry kernel_entry(const ProgramView& view, const CodeTotal& total) {
  if (!total.system_call) {
    return {"[page faults and interrupts]", false};
  }
  if (!total.place) {
    return {"[not known]", false};
  }
  const auto number = symbolizer::system_call_number(code_before(view, *total.place));
  const std::string name = number ? symbolizer::system_call_name(*number) : std::string();
  return {name.empty() ? "[system calls]" : name, true};
}

}  // namespace crosstalk::attribution
