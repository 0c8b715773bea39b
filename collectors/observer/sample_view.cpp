// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/sample_view.h"

#include <cstring>

#include "collectors/access/code.h"
#include "collectors/access/instruction_decoder.h"

namespace crosstalk::observer {
namespace {

// The kernel does not sample the beginning of thread-local storage. An access relative to it is found at an address
// near zero, where nothing is mapped.
constexpr std::uint64_t fs_base_unknown = 0;

}  // namespace

bool SampleView::plausible(const in_target::FoundAccess& access) {
  constexpr std::uint64_t first_page_end = std::uint64_t{64} << 10U;
  constexpr std::uint64_t user_end = 1ULL << 47U;
  const bool mapped = mapping_at(maps_, access.address) != nullptr;
  missed_mapping_ = !mapped && access.address >= first_page_end && access.address < user_end;
  return mapped;
}

std::optional<in_target::FoundAccess> SampleView::find(in_target::AccessFinder& finder) {
  in_target::FoundAccess access;
  if (finder.find(sample_.registers, sample_.flags, fs_base_unknown, reader(), access) && plausible(access)) {
    return access;
  }
  return std::nullopt;
}

std::optional<in_target::FoundAccess> SampleView::find_retired(in_target::AccessFinder& finder) {
  in_target::FoundAccess access;
  if (finder.find_retired(sample_.registers, sample_.flags, fs_base_unknown, reader(), access) && plausible(access)) {
    return access;
  }
  return std::nullopt;
}

bool SampleView::read_code(void* view, std::uint64_t address, void* out, std::size_t bytes) {
  return static_cast<SampleView*>(view)->memory_.read(address, out, bytes);
}

bool SampleView::read_data(void* view, std::uint64_t address, void* out, std::size_t bytes) {
  const auto& self = *static_cast<SampleView*>(view);
  const std::uint64_t stack_begin = self.sample_.registers[Register::rsp];
  const std::size_t stack_bytes = self.sample_.stack.size();
  if (address >= stack_begin && address - stack_begin <= stack_bytes &&
      bytes <= stack_bytes - (address - stack_begin)) {
    std::memcpy(out, self.sample_.stack.data() + (address - stack_begin), bytes);
    return true;
  }
  const Mapping* mapping = mapping_at(self.maps_, address);
  return mapping != nullptr && !mapping->writable && self.memory_.read(address, out, bytes);
}

bool SampleView::read_now(void* view, std::uint64_t address, void* out, std::size_t bytes) {
  const auto& self = *static_cast<const SampleView*>(view);
  return read_data(view, address, out, bytes) ||
         (is_own_data(self.maps_, address) && self.memory_.read(address, out, bytes));
}

}  // namespace crosstalk::observer
