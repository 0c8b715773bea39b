// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/code.h"

#include <bit>
#include <cstring>

#include "base/units.h"
#include "collectors/access/instruction_decoder.h"

namespace crosstalk::in_target {

namespace {

constexpr std::uint64_t kind_instruction = 1;

std::uint64_t load(const std::uint8_t* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// The cache's key of `length` bytes of code at `address`; 16 bytes must be loadable.
std::uint64_t code_key(std::uint64_t address, const std::uint8_t* code, unsigned length) {
  std::uint64_t low = load(code);
  std::uint64_t high = load(code + 8);
  if (length < 8) {
    low &= (std::uint64_t{1} << (8 * length)) - 1;
    high = 0;
  } else {
    high &= (std::uint64_t{1} << (8 * (length - 8))) - 1;
  }
  // The address is mixed by itself: next to the code it could be another address with other code, by as many bits.
  return mix(mix(mix(0, address), low), high);
}

static_assert(sizeof(DecodedInstruction) == sizeof(AccessCache::Payload));

}  // namespace

void CodeWindow::center(std::uint64_t center) {
  const std::uint64_t page = center & ~(page_bytes - 1);
  const std::uint64_t page_end = page + page_bytes;
  begin_ = end_ = low_ = high_ = center;
  extended_ = true;
  if (page_end == 0 || center + after < center) {
    return;  // the last page, which no user code is in
  }
  const std::uint64_t low = center >= before ? center - before : 0;
  const std::uint64_t high = center + after;
  const std::uint64_t middle = low > page ? low : page;
  const std::uint64_t middle_end = high < page_end ? high : page_end;
  if (!reader_.read(reader_.context, middle, bytes_ + (middle - low), middle_end - middle)) {
    return;
  }
  low_ = low;
  high_ = high;
  begin_ = middle;
  end_ = middle_end;
  extended_ = false;
}

void CodeWindow::extend() {
  if (extended_) {
    return;
  }
  extended_ = true;
  if (end_ < high_ && reader_.read(reader_.context, end_, bytes_ + (end_ - low_), high_ - end_)) {
    end_ = high_;
  }
  if (low_ < begin_ && reader_.read(reader_.context, low_, bytes_, begin_ - low_)) {
    begin_ = low_;
  }
}

bool CodeWindow::look_at(std::uint64_t address) {
  if (!contains(address) || (end_ - address < longest_instruction && end_ == high_)) {
    center(address);
  }
  return contains(address);
}

bool CodeWindow::decode(std::uint64_t address, DecodedInstruction& out) {
  if (!look_at(address)) {
    return false;
  }
  const AccessCache::Candidate candidate = cache_.at(address, kind_instruction);
  out = std::bit_cast<DecodedInstruction>(candidate.payload);
  if (out.length > 0 && out.length <= longest_instruction && out.length <= end_ - address &&
      candidate.holds(code_key(address, data(address), out.length))) {
    return true;
  }
  if (end_ - address < longest_instruction) {
    extend();
  }
  const std::size_t bytes = end_ - address < longest_instruction ? end_ - address : longest_instruction;
  if (!decode_instruction(data(address), bytes, out)) {
    return false;
  }
  const auto payload = std::bit_cast<AccessCache::Payload>(out);
  cache_.put(address, kind_instruction, code_key(address, data(address), out.length), payload);
  return true;
}

}  // namespace crosstalk::in_target
