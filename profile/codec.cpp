// SPDX-License-Identifier: Apache-2.0
#include "profile/codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "profile/branch_trace.h"

namespace crosstalk::profile {
namespace {

constexpr std::size_t stepping_registers = register_count - 1;
constexpr std::size_t steps_header = 3;
constexpr std::size_t length_bytes = (register_count + 1) / 2;
// The fastest level that still halves a stack: the recorder's time matters more than the file's size.
constexpr int stack_level = -1;

}  // namespace

PackedRegisters::PackedRegisters(const Registers& registers) {
  static_assert(length_bytes == 9);
  for (std::size_t i = 0; i < register_count; ++i) {
    std::uint64_t value = registers.value[i];
    const auto length = static_cast<std::size_t>((std::bit_width(value) + 7) / 8);
    bytes_[i / 2] = static_cast<std::uint8_t>(bytes_[i / 2] | (length << (i % 2 * 4)));
    for (std::size_t b = 0; b < length; ++b, value >>= 8U) {
      bytes_[size_++] = static_cast<std::uint8_t>(value & 0xffU);
    }
  }
}

PackedLineState::PackedLineState(const LineState& state) {
  for (std::size_t i = 0; i < LineState::words; ++i) {
    bytes_[2 * i] = static_cast<std::uint8_t>(state.word[i] & 0xffU);
    bytes_[2 * i + 1] = static_cast<std::uint8_t>(state.word[i] >> 8U);
  }
}

std::optional<LineState> unpack_line_state(std::span<const std::uint8_t> packed) {
  if (packed.size() != 2 * std::size_t{LineState::words}) {
    return std::nullopt;
  }
  LineState state;
  for (std::size_t i = 0; i < LineState::words; ++i) {
    state.word[i] = static_cast<std::uint16_t>(packed[2 * i] | (packed[2 * i + 1] << 8U));
  }
  return state;
}

namespace {

/// The number in the first `length` bytes, 0..8, of `packed`, the lowest byte first. Most numbers have others behind
/// them, so 8 bytes can be read at once.
std::uint64_t number_at(std::span<const std::uint8_t> packed, std::size_t length) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t number = 0;
  if (packed.size() >= sizeof number) {
    std::memcpy(&number, packed.data(), sizeof number);
    return length == sizeof number ? number : number & ((std::uint64_t{1} << (8 * length)) - 1);
  }
  for (std::size_t b = 0; b < length; ++b) {
    number |= static_cast<std::uint64_t>(packed[b]) << (8 * b);
  }
  return number;
}

}  // namespace

std::optional<Registers> unpack_registers(std::span<const std::uint8_t> packed) {
  if (packed.size() < length_bytes) {
    return std::nullopt;
  }
  Registers registers;
  std::size_t at = length_bytes;
  for (std::size_t i = 0; i < register_count; ++i) {
    const std::size_t length = (static_cast<std::size_t>(packed[i / 2]) >> (i % 2 * 4)) & 15U;
    if (length > 8 || length > packed.size() - at) {
      return std::nullopt;
    }
    registers.value[i] = number_at(packed.subspan(at), length);
    at += length;
  }
  if (at != packed.size()) {
    return std::nullopt;
  }
  return registers;
}

RegisterSteps::RegisterSteps(const Registers& registers, const Registers* previous) {
  unsigned changed = 0;
  size_ = steps_header;
  for (std::size_t i = 0; i < stepping_registers; ++i) {
    const std::uint64_t step = registers.value[i] - (previous != nullptr ? previous->value[i] : 0);
    if (step == 0) {
      continue;
    }
    changed |= 1U << i;
    std::uint64_t rest = (step << 1U) ^ ((step >> 63U) != 0 ? ~std::uint64_t{0} : 0);
    for (; rest > 0x7f; rest >>= 7U) {
      bytes_[size_++] = static_cast<std::uint8_t>(rest | 0x80U);
    }
    bytes_[size_++] = static_cast<std::uint8_t>(rest);
  }
  bytes_[0] = previous == nullptr ? 1 : 0;
  bytes_[1] = static_cast<std::uint8_t>(changed & 0xffU);
  bytes_[2] = static_cast<std::uint8_t>(changed >> 8U);
}

namespace {

/// Takes a number of seven bits a byte from the front of `packed`; nullopt if it ends neither there nor within 64 bits.
std::optional<std::uint64_t> take_number(std::span<const std::uint8_t>& packed) {
  std::uint64_t number = 0;
  const std::size_t most = std::min<std::size_t>(packed.size(), 10);
  for (std::size_t i = 0; i < most; ++i) {
    number |= static_cast<std::uint64_t>(packed[i] & 0x7fU) << (7 * i);
    if ((packed[i] & 0x80U) == 0) {
      packed = packed.subspan(i + 1);
      return number;
    }
  }
  return std::nullopt;
}

bool add_steps(std::span<const std::uint8_t> packed, unsigned changed, Registers& registers) {
  for (; changed != 0; changed &= changed - 1) {
    const auto step = take_number(packed);
    if (!step) {
      return false;
    }
    registers.value[static_cast<std::size_t>(std::countr_zero(changed))] +=
        (*step >> 1U) ^ ((*step & 1U) != 0 ? ~std::uint64_t{0} : 0);
  }
  return packed.empty();
}

}  // namespace

bool follow_steps(std::span<const std::uint8_t> packed, std::optional<Registers>& registers) {
  if (packed.size() < steps_header || packed[0] > 1 || (packed[0] == 0 && !registers)) {
    registers.reset();
    return false;
  }
  if (packed[0] == 1) {
    registers.emplace();
  }
  const unsigned changed = packed[1] | static_cast<unsigned>(packed[2]) << 8U;
  if (!add_steps(packed.subspan(steps_header), changed, *registers)) {
    registers.reset();
    return false;
  }
  return true;
}

std::optional<std::vector<Straight>> unpack_branch_trace(std::span<const std::uint8_t> packed, std::uint64_t begin) {
  if (packed.size() > max_branch_trace_bytes) {
    return std::nullopt;
  }
  std::vector<Straight> way;
  while (true) {
    const auto straight = take_number(packed);
    if (!straight || *straight > max_straight_bytes) {
      return std::nullopt;
    }
    way.push_back({begin, begin + *straight});
    if (packed.empty()) {
      return way;
    }
    const auto jump = take_number(packed);
    if (!jump) {
      return std::nullopt;
    }
    begin += *straight + ((*jump >> 1U) ^ ((*jump & 1U) != 0 ? ~std::uint64_t{0} : 0));
  }
}

namespace {

void append_number(std::uint64_t rest, std::vector<std::uint8_t>& packed) {
  for (; rest > 0x7f; rest >>= 7U) {
    packed.push_back(static_cast<std::uint8_t>(rest | 0x80U));
  }
  packed.push_back(static_cast<std::uint8_t>(rest));
}

}  // namespace

std::vector<std::uint8_t> pack_counts(std::span<const std::uint64_t> counts) {
  std::vector<std::uint8_t> packed;
  for (const std::uint64_t count : counts) {
    append_number(count, packed);
  }
  return packed;
}

bool unpack_counts(std::span<const std::uint8_t> packed, std::size_t most, std::vector<std::uint64_t>& counts) {
  counts.clear();
  while (!packed.empty()) {
    const auto count = take_number(packed);
    if (!count || counts.size() == most) {
      return false;
    }
    counts.push_back(*count);
  }
  return true;
}

std::vector<std::uint8_t> pack_call_chain(std::span<const std::uint64_t> addresses) {
  std::vector<std::uint8_t> packed;
  std::uint64_t previous = 0;
  for (const std::uint64_t address : addresses.first(std::min(addresses.size(), max_call_chain))) {
    const std::uint64_t step = address - previous;
    previous = address;
    append_number((step << 1U) ^ ((step >> 63U) != 0 ? ~std::uint64_t{0} : 0), packed);
  }
  return packed;
}

bool unpack_call_chain(std::span<const std::uint8_t> packed, std::vector<std::uint64_t>& addresses) {
  addresses.clear();
  std::uint64_t address = 0;
  while (!packed.empty()) {
    const auto step = take_number(packed);
    if (!step || addresses.size() == max_call_chain) {
      return false;
    }
    address += (*step >> 1U) ^ ((*step & 1U) != 0 ? ~std::uint64_t{0} : 0);
    addresses.push_back(address);
  }
  return true;
}

struct StackPacker::State {
  struct Free {
    void operator()(ZSTD_CCtx* compressor) const { ZSTD_freeCCtx(compressor); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context{ZSTD_createCCtx()};
  std::vector<std::uint8_t> packed;
};

StackPacker::StackPacker() : state_(std::make_unique<State>()) {}
StackPacker::StackPacker(StackPacker&&) noexcept = default;
StackPacker& StackPacker::operator=(StackPacker&&) noexcept = default;
StackPacker::~StackPacker() = default;

std::optional<std::span<const std::uint8_t>> StackPacker::pack(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) {
    return std::span<const std::uint8_t>();
  }
  if (state_->context == nullptr) {
    return std::nullopt;
  }
  std::vector<std::uint8_t>& packed = state_->packed;
  packed.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compressCCtx(state_->context.get(), packed.data(), packed.size(), bytes.data(), bytes.size(), stack_level);
  if (ZSTD_isError(size) != 0) {
    return std::nullopt;
  }
  return std::span<const std::uint8_t>(packed.data(), size);
}

bool unpack_stack(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& bytes) {
  return unpack_bytes(packed, bytes, max_stack_bytes);
}

bool unpack_bytes(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& bytes, std::size_t most) {
  bytes.clear();
  if (packed.empty()) {
    return true;
  }
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most) {
    return false;
  }
  bytes.resize(static_cast<std::size_t>(size));
  return ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size()) == size;
}

}  // namespace crosstalk::profile
