// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/memory.h"

#include <cstring>

namespace crosstalk::in_target {

bool InterpretedMemory::fetch_block(std::uint64_t block) {
  if (!has_block_ || block_ != block) {
    has_block_ = reader_.read_data(reader_.context, block, bytes_, block_bytes);
    block_ = block;
  }
  return has_block_;
}

bool InterpretedMemory::fetch(std::uint64_t address, unsigned width, std::uint64_t& bits) {
  const std::uint64_t block = address & ~std::uint64_t{block_bytes - 1};
  const std::uint64_t offset = address - block;
  bits = 0;
  if (!fetch_block(block)) {
    return reader_.read_data(reader_.context, address, &bits, width);
  }
  const unsigned in_first = offset + width <= block_bytes ? width : static_cast<unsigned>(block_bytes - offset);
  std::memcpy(&bits, bytes_ + offset, in_first);
  if (in_first == width) {
    return true;
  }
  if (block + block_bytes == 0 || !fetch_block(block + block_bytes)) {
    return false;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes_, width - in_first);
  bits |= rest << (8 * in_first);
  return true;
}

Value InterpretedMemory::load(std::uint64_t address, unsigned width) {
  if (lost_ || width == 0 || width > 8) {
    return {};
  }
  for (std::size_t i = count_; i-- > 0;) {  // the latest store first
    const std::uint64_t offset = address - address_[i];
    if (offset < width_[i] && offset + width <= width_[i]) {
      return {known_[i] ? bits_[i] >> (8 * offset) & size_mask(width) : 0, known_[i]};
    }
    if (offset < width_[i] || address_[i] - address < width) {
      return {};  // a part of it
    }
  }
  std::uint64_t bits = 0;
  const bool known = fetch(address, width, bits);
  return {known ? bits : 0, known};
}

void InterpretedMemory::store(std::uint64_t address, unsigned width, Value value) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (address_[i] == address && width_[i] <= width) {
      continue;  // overwritten
    }
    address_[kept] = address_[i];
    bits_[kept] = bits_[i];
    width_[kept] = width_[i];
    known_[kept] = known_[i];
    ++kept;
  }
  count_ = static_cast<std::uint8_t>(kept);
  if (width == 0 || count_ == capacity) {
    lost_ = true;
    return;
  }
  address_[count_] = address;
  bits_[count_] = value.bits;
  width_[count_] = static_cast<std::uint8_t>(width);
  known_[count_] = value.known && width <= 8;
  ++count_;
}

}  // namespace crosstalk::in_target
