// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/vector_registers.h"

#include <cpuid.h>

#include <cstring>

namespace crosstalk::in_target {

namespace {

// Components of the state, by their bits (Intel SDM vol. 1, 13.1), and the places of the first two.
constexpr unsigned sse_state = 1;
constexpr unsigned upper_halves_of_ymm = 2;
constexpr unsigned mask_registers = 5;
constexpr unsigned upper_halves_of_zmm = 6;
constexpr unsigned high_zmm = 7;
constexpr std::size_t mode_at = 24;
constexpr std::size_t xmm_at = 160;
constexpr std::size_t header_at = 512;
constexpr std::size_t header_bytes = 64;

std::uint64_t word_at(const std::uint8_t* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// Returns XCR0: the states that the system keeps for programs.
std::uint64_t enabled_states() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // NOLINT(hicpp-no-assembler)
  return low | static_cast<std::uint64_t>(high) << 32U;
}

/// Returns the component's data if the frame has it and it is not in its initial state, zero; else null. `part`: its
/// place.
const std::uint8_t* part_of(const VectorFrame& frame, const ProcessorFeatures& processor, unsigned component) {
  const ProcessorFeatures::Part& part = processor.part[component];
  const std::uint64_t in_use = word_at(frame.area + header_at) & frame.features;
  const bool there = part.bytes != 0 && std::size_t{part.offset} + part.bytes <= frame.bytes;
  return there && (in_use >> component & 1U) != 0 ? frame.area + part.offset : nullptr;
}

}  // namespace

ProcessorFeatures find_processor_features() {
  ProcessorFeatures found;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) {
    return found;
  }
  constexpr unsigned has_sse3 = 1U << 0U;
  constexpr unsigned has_ssse3 = 1U << 9U;
  constexpr unsigned has_fma = 1U << 12U;
  constexpr unsigned has_sse4 = 3U << 19U;  // 4.1 and 4.2
  constexpr unsigned has_xsave = 1U << 27U;
  constexpr std::uint64_t avx_states = 6;
  found.has |= (c & has_sse3) != 0 ? ProcessorFeatures::sse3 : 0U;
  found.has |= (c & has_ssse3) != 0 ? ProcessorFeatures::ssse3 : 0U;
  found.has |= (c & has_sse4) == has_sse4 ? ProcessorFeatures::sse4 : 0U;
  if ((c & has_xsave) == 0) {
    return found;
  }
  const bool avx = (enabled_states() & avx_states) == avx_states;
  found.has |= avx && (c & has_fma) != 0 ? ProcessorFeatures::fma : 0U;
  for (unsigned component = 2; component < ProcessorFeatures::components; ++component) {
    constexpr unsigned leaf = 0xd;
    if (__get_cpuid_count(leaf, component, &a, &b, &c, &d) != 0) {
      found.part[component] = {b, a};
    }
  }
  return found;
}

VectorFrame VectorFrame::of_signal(const void* saved) {
  // The kernel's note in the words that the processor leaves to software: struct _fpx_sw_bytes
  constexpr std::size_t noted_at = 464;
  constexpr std::uint32_t magic = 0x46505853;  // FP_XSTATE_MAGIC1
  VectorFrame frame;
  frame.area = static_cast<const std::uint8_t*>(saved);
  if (saved == nullptr) {
    return frame;
  }
  frame.bytes = header_at;
  frame.features = 3;
  std::uint32_t noted[2];
  std::memcpy(noted, frame.area + noted_at, sizeof noted);
  if (noted[0] == magic && noted[1] > header_at + header_bytes) {
    frame.bytes = noted[1];
    frame.features = word_at(frame.area + noted_at + sizeof noted);
  }
  return frame;
}

void VectorRegisters::forget_all() {
  for (Vector& vector : vector_) {
    vector.known = 0;
  }
  for (MaskRegister& mask : mask_) {
    mask.known = false;
  }
}

/// `bytes` of each of `count` registers from `first` on go to `offset` in them. They become zero if the component is in
/// its initial state, or the system does not keep it.
void VectorRegisters::load_part(unsigned component, const VectorFrame& frame, const ProcessorFeatures& processor,
                                unsigned first, unsigned count, unsigned offset, unsigned bytes) {
  const std::uint8_t* from = part_of(frame, processor, component);
  for (unsigned i = 0; i < count; ++i) {
    Vector& to = vector_[first + i];
    if (from != nullptr) {
      std::memcpy(to.byte + offset, from + std::size_t{i} * bytes, bytes);
    } else {
      std::memset(to.byte + offset, 0, bytes);
    }
    to.known |= low_bits(bytes) << offset;
  }
}

void VectorRegisters::load_masks(const VectorFrame& frame, const ProcessorFeatures& processor) {
  const std::uint8_t* from = part_of(frame, processor, mask_registers);
  for (unsigned i = 0; i < 8; ++i) {
    mask_[i] = {from != nullptr ? word_at(from + sizeof(std::uint64_t) * i) : 0, true};
  }
}

void VectorRegisters::load(const VectorFrame& frame, const ProcessorFeatures& processor) {
  forget_all();
  mode_known = frame.area != nullptr && frame.bytes >= header_at;
  if (!mode_known) {
    return;
  }
  std::memcpy(&mode, frame.area + mode_at, sizeof mode);
  constexpr unsigned xmm_bytes = 16;
  const bool extended = frame.bytes >= header_at + header_bytes;
  const bool in_use = !extended || (word_at(frame.area + header_at) >> sse_state & 1U) != 0;
  for (unsigned i = 0; i < 16; ++i) {
    if (in_use) {
      std::memcpy(vector_[i].byte, frame.area + xmm_at + std::size_t{xmm_bytes} * i, xmm_bytes);
    } else {
      std::memset(vector_[i].byte, 0, xmm_bytes);
    }
    vector_[i].known = low_bits(xmm_bytes);
  }
  if (extended) {
    load_part(upper_halves_of_ymm, frame, processor, 0, 16, 16, 16);
    load_part(upper_halves_of_zmm, frame, processor, 0, 16, 32, 32);
    load_part(high_zmm, frame, processor, 16, 16, 0, 64);
    load_masks(frame, processor);
  }
}

}  // namespace crosstalk::in_target
