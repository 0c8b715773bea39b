// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/lookahead_memory.h"

#include <cstring>

#include "collectors/access/checked_table.h"

namespace crosstalk::in_target {

namespace {

/// The low `bytes` bits, 1..64.
constexpr std::uint64_t ones(unsigned bytes) {
  return bytes >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
}

}  // namespace

void LookaheadMemory::begin(const CodeReader& reader) {
  reader_ = &reader;
  full_ = false;
  if (++run_ == 0) {  // after 2^32 lookaheads: blocks of the first ones must not look new
    for (Block& block : block_) {
      block.run = 0;
    }
    run_ = 1;
  }
}

LookaheadMemory::Block* LookaheadMemory::block_of(std::uint64_t number) {
  constexpr std::size_t probes = 16;
  const std::uint64_t place = mix(0, number) >> 24U;
  for (std::size_t i = 0; i < probes; ++i) {
    Block& block = block_[(place + i) % blocks];
    if (block.run == run_ && block.number == number) {
      return &block;
    }
    if (block.run != run_) {
      block.run = run_;
      block.number = number;
      const bool read = reader_->read_data(reader_->context, number * block_bytes, block.bytes, block_bytes);
      block.known = read ? ~std::uint64_t{0} : 0;
      return &block;
    }
  }
  full_ = true;
  return nullptr;
}

std::uint64_t LookaheadMemory::load_bytes(std::uint64_t address, unsigned width, std::uint8_t* out) {
  if (address + width < address) {
    return 0;
  }
  std::uint64_t known = 0;
  for (unsigned done = 0; done < width;) {
    const std::uint64_t at = address + done;
    const auto offset = static_cast<unsigned>(at % block_bytes);
    const unsigned here = offset + (width - done) <= block_bytes ? width - done : block_bytes - offset;
    const Block* block = block_of(at / block_bytes);
    if (block == nullptr) {
      return 0;
    }
    std::memcpy(out + done, block->bytes + offset, here);
    known |= (block->known >> offset & ones(here)) << done;
    done += here;
  }
  return known;
}

Value LookaheadMemory::load(std::uint64_t address, unsigned width) {
  if (width == 0 || width > sizeof(std::uint64_t)) {
    return {};
  }
  std::uint8_t bytes[sizeof(std::uint64_t)] = {};
  if (load_bytes(address, width, bytes) != ones(width)) {
    return {};
  }
  Value value{0, true};
  std::memcpy(&value.bits, bytes, sizeof bytes);
  return value;
}

void LookaheadMemory::store_bytes(std::uint64_t address, unsigned width, const std::uint8_t* bytes, std::uint64_t known,
                                  std::uint64_t written) {
  if (address + width < address) {
    full_ = true;
    return;
  }
  for (unsigned done = 0; done < width;) {
    const std::uint64_t at = address + done;
    const auto offset = static_cast<unsigned>(at % block_bytes);
    const unsigned here = offset + (width - done) <= block_bytes ? width - done : block_bytes - offset;
    Block* block = block_of(at / block_bytes);
    if (block == nullptr) {
      return;
    }
    const std::uint64_t stored = written >> done & ones(here);
    if (stored == ones(here)) {
      std::memcpy(block->bytes + offset, bytes + done, here);
    } else {
      for (unsigned i = 0; i < here; ++i) {
        block->bytes[offset + i] = (stored >> i & 1U) != 0 ? bytes[done + i] : block->bytes[offset + i];
      }
    }
    block->known = (block->known & ~(stored << offset)) | (stored & known >> done) << offset;
    done += here;
  }
}

void LookaheadMemory::store(std::uint64_t address, unsigned width, Value value) {
  std::uint8_t bytes[block_bytes] = {};
  std::memcpy(bytes, &value.bits, sizeof value.bits);
  const bool known = value.known && width <= sizeof value.bits;
  store_bytes(address, width, bytes, known ? ~std::uint64_t{0} : 0, ~std::uint64_t{0});
}

}  // namespace crosstalk::in_target
