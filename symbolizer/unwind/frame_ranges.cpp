// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/unwind/frame_ranges.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t most_frame_ranges = 1U << 22U;
constexpr std::uint8_t format_mask = 0x0f;
constexpr std::uint8_t application_mask = 0x70;

/// Bytes of a DW_EH_PE format of fixed size, 0 for the others (LEB128 is not used for locations).
std::size_t format_bytes(std::uint8_t encoding) {
  switch (encoding & format_mask) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      return 8;
    case DW_EH_PE_udata4:
    case DW_EH_PE_sdata4:
      return 4;
    case DW_EH_PE_udata2:
    case DW_EH_PE_sdata2:
      return 2;
    default:
      return 0;
  }
}

std::uint64_t read_value(const std::uint8_t* at, std::size_t bytes, bool is_signed) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  if (is_signed && bytes < 8 && ((value >> (bytes * 8 - 1)) & 1U) != 0) {
    value |= ~std::uint64_t{0} << (bytes * 8);
  }
  return value;
}

/// The encoding of addresses in a CIE's FDEs, from the 'R' of its augmentation; nullopt if it is unclear.
std::optional<std::uint8_t> pointer_encoding(const Dwarf_CIE& cie) {
  std::string_view augmentation = cie.augmentation != nullptr ? cie.augmentation : "";
  if (!augmentation.starts_with('z')) {
    return augmentation.empty() ? std::optional<std::uint8_t>(DW_EH_PE_absptr) : std::nullopt;
  }
  augmentation.remove_prefix(1);
  const std::uint8_t* at = cie.augmentation_data;
  const std::uint8_t* end = at + cie.augmentation_data_size;
  for (const char letter : augmentation) {
    if (at == nullptr || at >= end) {
      break;
    }
    if (letter == 'R') {
      return *at;
    }
    if (letter == 'L') {
      ++at;
    } else if (letter == 'P') {
      const std::size_t bytes = format_bytes(*at);
      if (bytes == 0) {
        return std::nullopt;
      }
      at += 1 + bytes;
    } else if (letter != 'S' && letter != 'B') {
      return std::nullopt;
    }
  }
  return std::uint8_t{DW_EH_PE_absptr};
}

struct EhFrame {
  const unsigned char* ident = nullptr;
  Elf_Data* data = nullptr;
  std::uint64_t address = 0;
};

std::optional<AddressRange> range_of(const EhFrame& section, const Dwarf_FDE& fde, std::uint8_t encoding) {
  const std::size_t bytes = format_bytes(encoding);
  const std::uint8_t application = encoding & application_mask;
  if (bytes == 0 || (encoding & DW_EH_PE_indirect) != 0 ||
      (application != DW_EH_PE_absptr && application != DW_EH_PE_pcrel) ||
      static_cast<std::size_t>(fde.end - fde.start) < 2 * bytes) {
    return std::nullopt;
  }
  const bool is_signed = (encoding & 0x08U) != 0;
  std::uint64_t begin = read_value(fde.start, bytes, is_signed);
  if (application == DW_EH_PE_pcrel) {
    begin += section.address + static_cast<std::uint64_t>(fde.start - static_cast<std::uint8_t*>(section.data->d_buf));
  }
  const std::uint64_t length = read_value(fde.start + bytes, bytes, false);
  if (begin == 0 || length == 0 || begin > UINT64_MAX - length) {
    return std::nullopt;
  }
  return AddressRange{begin, begin + length};
}

}  // namespace

FrameRanges::FrameRanges(const ElfFile& code) {
  const Section* found = code.section(".eh_frame");
  if (found == nullptr || ElfFile::contents(*found).empty()) {
    return;
  }
  const EhFrame section{reinterpret_cast<const unsigned char*>(elf_getident(code.elf(), nullptr)),
                        elf_getdata(found->handle, nullptr), found->address};
  std::unordered_map<Dwarf_Off, std::optional<std::uint8_t>> encodings;  // by offset of the CIE
  Dwarf_Off offset = 0;
  for (std::size_t i = 0; i < most_frame_ranges; ++i) {
    Dwarf_Off next = 0;
    Dwarf_CFI_Entry entry;
    const int status = dwarf_next_cfi(section.ident, section.data, true, offset, &next, &entry);
    if (status == 1 || next <= offset) {
      break;
    }
    if (status == 0 && dwarf_cfi_cie_p(&entry)) {
      encodings[offset] = pointer_encoding(entry.cie);
    } else if (status == 0) {
      const auto encoding = encodings.find(entry.fde.CIE_pointer);
      if (encoding != encodings.end() && encoding->second) {
        if (const auto range = range_of(section, entry.fde, *encoding->second)) {
          ranges_.push_back(*range);
        }
      }
    }
    offset = next;
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
}

std::optional<AddressRange> FrameRanges::at(std::uint64_t address) const {
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                     [](std::uint64_t a, const AddressRange& range) { return a < range.begin; });
  if (next == ranges_.begin() || !std::prev(next)->contains(address)) {
    return std::nullopt;
  }
  return *std::prev(next);
}

}  // namespace crosstalk::symbolizer
