// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/off_limits.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sys/own_memory.h"

extern "C" const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT: the linker's name

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t most_time_pages = 32;  // more than any kernel has
constexpr std::uint64_t most_vdso_pages = 4;
constinit std::uint64_t time_begin = 0, time_end = 0;

bool is_of_vdso(std::uint64_t address, modules::MappedFile& found) {
  return modules::find_mapped_file(address, found, nullptr, 0) && found.of_vdso;
}

// The time pages ([vvar], [vvar_vclock] from Linux 6.13 on, several) lie below the vdso without a gap; the kernel
// decides their number. Mappings below them are the program's.
void find_time_pages(std::uint64_t vdso) {
  modules::MappedFile mapping;
  if (!is_of_vdso(vdso, mapping)) {  // /proc does not tell: rather too much than too little
    time_begin = vdso - most_time_pages * page_bytes;
    time_end = vdso + most_vdso_pages * page_bytes;
    return;
  }
  time_begin = mapping.begin;
  time_end = mapping.end;
  while (is_of_vdso(time_begin - 1, mapping)) {
    time_begin = mapping.begin;
  }
}

// Enters the module that has a certain address: this library, and the decoder's.
int enter_module_of(dl_phdr_info* module, std::size_t /*bytes*/, void* address) {
  const auto wanted = reinterpret_cast<std::uint64_t>(address);  // NOLINT: an address
  std::uint64_t begin = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const Elf64_Phdr& part = module->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) {
      const std::uint64_t first = module->dlpi_addr + part.p_vaddr;
      begin = first < begin ? first : begin;
      end = first + part.p_memsz > end ? first + part.p_memsz : end;
    }
  }
  if (wanted < begin || wanted >= end) {
    return 0;
  }
  begin &= ~std::uint64_t{page_bytes - 1};
  end = (end + page_bytes - 1) & ~std::uint64_t{page_bytes - 1};
  enter_own_memory(reinterpret_cast<void*>(begin), end - begin);  // NOLINT: an address
  return 1;
}

void enter_module(const void* address) { ::dl_iterate_phdr(enter_module_of, const_cast<void*>(address)); }

}  // namespace

void find_off_limits() {
  enter_module(&__ehdr_start);
  enter_module(reinterpret_cast<const void*>(&ZydisDecoderInit));  // NOLINT: a function is an address
  if (const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR); vdso != 0) {
    find_time_pages(vdso);
  }
}

bool holds_kernel_clocks(std::uint64_t begin, std::uint64_t bytes) {
  return begin < time_end && begin + bytes > time_begin;
}

bool off_limits(std::uint64_t address) {
  return (address >= time_begin && address < time_end) || is_own_memory(address);
}

}  // namespace crosstalk::in_target
