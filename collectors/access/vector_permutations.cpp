// SPDX-License-Identifier: Apache-2.0
// Executes instructions that move bytes and compute nothing. Each is a map from the result's bytes to the operands'
// bytes; known bytes stay known.
#include "collectors/access/vector_step.h"

namespace crosstalk::in_target {

namespace {

using O = VectorOperation;

constexpr unsigned lane_bytes = 16;

/// The source of each byte of a result.
class ByteMap {
 public:
  enum : std::uint8_t { left = 0, right = 64, zero = 128, unknown = 129 };

  explicit ByteMap(unsigned element) : element_(element) {}
  /// Element `to` is `operand`'s element `from`.
  void set(unsigned to, std::uint8_t operand, unsigned from) {
    for (unsigned i = 0; i < element_; ++i) {
      from_[(to * element_ + i) % Vector::bytes] =
          operand >= zero ? operand : static_cast<std::uint8_t>(operand + (from * element_ + i) % Vector::bytes);
    }
  }
  void apply(VectorStep& step, unsigned bytes) const {
    step.result.known = 0;
    step.result_bytes = bytes;
    for (unsigned i = 0; i < bytes; ++i) {
      const unsigned from = from_[i];
      const Vector& operand = from < right ? step.left : step.right;
      const unsigned at = from & 63U;
      step.result.byte[i] = from < zero ? operand.byte[at] : 0;
      const bool known = from < zero ? (operand.known >> at & 1U) != 0 : from == zero;
      step.result.known |= (known ? std::uint64_t{1} : 0) << i;
    }
  }

 private:
  unsigned element_;
  std::uint8_t from_[Vector::bytes];
};

/// The lowest `bytes` of the right operand over the left one, or over zeros.
void put_low(VectorStep& step, unsigned bytes, bool over_zero, unsigned to, unsigned from) {
  ByteMap map(1);
  for (unsigned i = 0; i < lane_bytes; ++i) {
    const bool put = i >= to && i < to + bytes;
    map.set(i, put ? ByteMap::right : over_zero ? ByteMap::zero : ByteMap::left, put ? i - to + from : i);
  }
  map.apply(step, lane_bytes);
}

bool move(VectorStep& step) {
  switch (step.operation) {
    case O::move:
      step.result = step.right;
      return true;
    case O::move_low:
      put_low(step, step.element, step.from_memory, 0, 0);
      return true;
    case O::move_zero:
      put_low(step, step.element, true, 0, 0);
      return true;
    case O::move_high:
    case O::low_to_high:
      put_low(step, 8, false, 8, 0);
      return true;
    case O::move_lower:
      put_low(step, 8, false, 0, 0);
      return true;
    case O::high_to_low:
      put_low(step, 8, false, 0, 8);
      return true;
    default:
      return false;
  }
}

/// By an immediate, within each lane of 16 bytes or throughout. True: it was one of these, and `map` is made.
bool map_fixed(const VectorStep& step, ByteMap& map) {
  const unsigned in_lane = lane_bytes / step.element;
  const unsigned immediate = step.form.immediate;
  for (unsigned i = 0; i < step.count(); ++i) {
    const unsigned lane = i / in_lane * in_lane;  // its first element
    const unsigned j = i % in_lane;
    switch (step.operation) {
      case O::duplicate_even:
      case O::duplicate_double:
        map.set(i, ByteMap::right, i & ~1U);
        break;
      case O::duplicate_odd:
        map.set(i, ByteMap::right, i | 1U);
        break;
      case O::shuffle_words:
        map.set(i, ByteMap::right, lane + (immediate >> 2 * j & 3U));
        break;
      case O::shuffle_low_words:
        map.set(i, ByteMap::right, j < 4 ? lane + (immediate >> 2 * j & 3U) : i);
        break;
      case O::shuffle_high_words:
        map.set(i, ByteMap::right, j < 4 ? i : lane + 4 + (immediate >> 2 * (j - 4) & 3U));
        break;
      case O::shuffle_two: {
        const unsigned from = step.element == 4 ? immediate >> 2 * j & 3U : immediate >> i & 1U;
        map.set(i, j < in_lane / 2 ? ByteMap::left : ByteMap::right, lane + from);
        break;
      }
      case O::unpack_low:
      case O::unpack_high: {
        const unsigned half = step.operation == O::unpack_high ? in_lane / 2 : 0;
        map.set(i, j % 2 == 0 ? ByteMap::left : ByteMap::right, lane + half + j / 2);
        break;
      }
      case O::permute_quarters:
        map.set(i, ByteMap::right, i / 4 * 4 + (immediate >> 2 * (i % 4) & 3U));
        break;
      case O::blend_immediate:
        map.set(i, (immediate >> i % 8 & 1U) != 0 ? ByteMap::right : ByteMap::left, i);
        break;
      case O::align_elements: {
        const unsigned from = i + immediate % step.count();
        map.set(i, from < step.count() ? ByteMap::right : ByteMap::left, from % step.count());
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

/// Shifts of whole bytes, within each lane.
bool map_bytes(const VectorStep& step, ByteMap& map) {
  const unsigned by = step.form.immediate;
  for (unsigned i = 0; i < step.size; ++i) {
    const unsigned lane = i / lane_bytes * lane_bytes;
    const unsigned j = i % lane_bytes;
    switch (step.operation) {
      case O::align_right:
        if (j + by < lane_bytes) {
          map.set(i, ByteMap::right, lane + j + by);
        } else {
          map.set(i, j + by < 2 * lane_bytes ? ByteMap::left : ByteMap::zero, lane + j + by - lane_bytes);
        }
        break;
      case O::shift_bytes_left:
        map.set(i, j >= by ? ByteMap::left : ByteMap::zero, i - by);
        break;
      case O::shift_bytes_right:
        map.set(i, j + by < lane_bytes ? ByteMap::left : ByteMap::zero, i + by);
        break;
      default:
        return false;
    }
  }
  return true;
}

/// By the elements of a vector.
bool map_variable(const VectorStep& step, ByteMap& map) {
  const unsigned in_lane = lane_bytes / step.element;
  for (unsigned i = 0; i < step.count(); ++i) {
    const bool across = step.operation == O::permute_elements;
    const Vector& control = across ? step.left : step.operation == O::blend_by_sign ? step.third : step.right;
    const std::uint64_t chosen = element_at(control, i, step.element);
    const unsigned lane = i / in_lane * in_lane;
    if (!element_known(control, i, step.element)) {
      map.set(i, ByteMap::unknown, 0);
      continue;
    }
    switch (step.operation) {
      case O::permute_elements:
        map.set(i, ByteMap::right, static_cast<unsigned>(chosen % step.count()));
        break;
      case O::permute_in_lanes:
        map.set(i, ByteMap::left, lane + static_cast<unsigned>(step.element == 4 ? chosen & 3U : chosen >> 1U & 1U));
        break;
      case O::shuffle_bytes:
        map.set(i, (chosen & 0x80U) != 0 ? ByteMap::zero : ByteMap::left, lane + static_cast<unsigned>(chosen & 15U));
        break;
      case O::blend_by_sign:
        map.set(i, (chosen >> (8 * step.element - 1) & 1U) != 0 ? ByteMap::right : ByteMap::left, i);
        break;
      default:
        return false;
    }
  }
  return true;
}

bool insert_or_extract(VectorStep& step) {
  const unsigned immediate = step.form.immediate;
  const unsigned part = step.form.part;
  ByteMap map(1);
  switch (step.operation) {
    case O::broadcast:
      for (unsigned i = 0; i < step.size; ++i) {
        map.set(i, ByteMap::right, i % part);
      }
      map.apply(step, step.size);
      return true;
    case O::insert_lane:
      for (unsigned i = 0; i < step.size; ++i) {
        const bool here = i / part == immediate % (step.size / part);
        map.set(i, here ? ByteMap::right : ByteMap::left, here ? i % part : i);
      }
      map.apply(step, step.size);
      return true;
    case O::extract_lane:
      for (unsigned i = 0; i < part; ++i) {
        map.set(i, ByteMap::right, immediate % (step.size / part) * part + i);
      }
      map.apply(step, part);
      return true;
    case O::permute_lanes:
      for (unsigned i = 0; i < step.size; ++i) {
        const unsigned control = immediate >> 4 * (i / lane_bytes) & 15U;
        const std::uint8_t chosen = (control & 2U) != 0 ? std::uint8_t{ByteMap::right} : std::uint8_t{ByteMap::left};
        const std::uint8_t operand = (control & 8U) != 0 ? std::uint8_t{ByteMap::zero} : chosen;
        map.set(i, operand, (control & 1U) * lane_bytes + i % lane_bytes);
      }
      map.apply(step, step.size);
      return true;
    case O::insert_element:
      put_low(step, step.element, false, immediate % (lane_bytes / step.element) * step.element, 0);
      return true;
    case O::extract_element:
      put_low(step, step.element, true, 0, immediate % (lane_bytes / step.element) * step.element);
      return true;
    default:
      return false;
  }
}

/// insertps
bool insert_single(VectorStep& step) {
  const unsigned immediate = step.form.immediate;
  ByteMap map(4);
  for (unsigned i = 0; i < 4; ++i) {
    const bool here = i == (immediate >> 4U & 3U);
    const unsigned from = step.from_memory ? 0 : immediate >> 6U;
    const std::uint8_t operand = here ? std::uint8_t{ByteMap::right} : std::uint8_t{ByteMap::left};
    map.set(i, (immediate >> i & 1U) != 0 ? std::uint8_t{ByteMap::zero} : operand, here ? from : i);
  }
  map.apply(step, lane_bytes);
  return true;
}

}  // namespace

bool permute(VectorStep& step) {
  if (move(step) || insert_or_extract(step)) {
    return true;
  }
  if (step.operation == O::insert_single) {
    return insert_single(step);
  }
  ByteMap map(step.element);
  if (map_fixed(step, map) || map_bytes(step, map) || map_variable(step, map)) {
    map.apply(step, step.size);
    return true;
  }
  return false;
}

}  // namespace crosstalk::in_target
