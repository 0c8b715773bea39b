// SPDX-License-Identifier: Apache-2.0
// A vector instruction with its operands, and the pure functions that make its result of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collectors/access/vector_operation.h"
#include "collectors/access/vector_registers.h"

namespace crosstalk::in_target {

/// Operands and result of one instruction. Memory operands and general registers are in the low bytes of a vector.
struct VectorStep {
  VectorOperation operation = VectorOperation::none;
  VectorForm form;
  unsigned size = 16;         ///< bytes of the vectors
  unsigned element = 1;       ///< bytes
  unsigned result_bytes = 0;  ///< of the destination that are written: others are kept, or cleared
  std::uint32_t mode = 0;     ///< MXCSR
  bool mode_known = false;
  bool same_source = false;                    ///< left and right are one register
  bool from_memory = false;                    ///< the right operand
  MaskRegister mask{~std::uint64_t{0}, true};  ///< the instruction's, a bit for each element
  Vector before;                               ///< the destination
  Vector left, right, third;
  Vector result;

  [[nodiscard]] unsigned count() const { return size / element; }
};

/// Returns an element's value. Returns the low eight bytes of wider elements, which are only moved as bytes: callers
/// ask before they know the operation.
[[nodiscard]] inline std::uint64_t element_at(const Vector& vector, unsigned index, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, vector.byte + std::size_t{index} * bytes, std::min<std::size_t>(bytes, sizeof value));
  return value;
}
inline void set_element(Vector& vector, unsigned index, unsigned bytes, std::uint64_t value, bool known) {
  std::memcpy(vector.byte + std::size_t{index} * bytes, &value, std::min<std::size_t>(bytes, sizeof value));
  const std::uint64_t which = low_bits(bytes) << index * bytes;
  vector.known = known ? vector.known | which : vector.known & ~which;
}
[[nodiscard]] inline bool element_known(const Vector& vector, unsigned index, unsigned bytes) {
  const std::uint64_t which = low_bits(bytes) << index * bytes;
  return (vector.known & which) == which;
}
/// Returns the bits of `known` (a bit a byte) whose whole element, of `bytes` bytes, is known.
[[nodiscard]] std::uint64_t whole_elements(std::uint64_t known, unsigned bytes);

// Each makes `result`, and returns false if the instruction is of another kind or its result is wholly unknown.

/// Makes results with the processor's own instructions, for the lists in vector_operation.h. `has`: ProcessorFeatures'.
bool compute_by_processor(VectorStep& step, std::uint32_t has);
/// Moves of bytes.
bool permute(VectorStep& step);
/// Conversions, comparisons to vectors, variable shifts.
bool compute_elements(VectorStep& step, std::uint32_t has);
/// Comparisons whose result is a mask: into result's low 8 bytes.
bool compare_to_mask(VectorStep& step);

/// Compares the lowest elements. False: not known.
bool compare_to_flags(const VectorStep& step, std::uint64_t& flags);
/// To an integer of `element` bytes, truncated or as the thread's mode says.
bool convert_to_integer(const VectorStep& step, std::uint64_t& result);

}  // namespace crosstalk::in_target
