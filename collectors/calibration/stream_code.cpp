// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/stream_code.h"

#include <array>

#include "collectors/calibration/register_code.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Mix;
using models::Traffic;
using models::Width;

/// The function's arguments: middles of the first round behind each array, minus the arrays' bytes, passes, and what
/// `stores` stores.
using StreamFunction = void(std::uintptr_t a, std::uintptr_t b, std::uintptr_t c, std::int64_t start,
                            std::uint64_t passes, const std::uint64_t* scale);

/// Groups of a round. Long ones would not fit where the processor keeps decoded instructions.
std::uint32_t groups_of_round(std::uint32_t fillers) {
  constexpr std::uint32_t many = 32, few_groups = 2, groups = 8;
  return fillers > many ? few_groups : groups;
}

class StreamWriter {
 public:
  explicit StreamWriter(const StreamShape& shape)
      : shape_(shape), bytes_(vector_bytes(shape.width)), filler_(operation_of(shape.filler)) {}

  Result<ExecutableCode> write() {
    const std::uint32_t groups = groups_of_round(shape_.fillers);
    for (const ZydisRegister kept : {start, passes_left}) {
      writer_.add(ZYDIS_MNEMONIC_PUSH, {in_register(kept)});
    }
    writer_.add(ZYDIS_MNEMONIC_MOV, {in_register(start), in_register(start_argument)});
    writer_.add(ZYDIS_MNEMONIC_MOV, {in_register(passes_left), in_register(passes_argument)});
    enter(writer_, filler_);
    writer_.add(move_mnemonic(), {in_register(vector(value_)), memory_at(scale, ZYDIS_REGISTER_NONE, 0, bytes_)});
    const std::size_t pass = writer_.here();
    writer_.add(ZYDIS_MNEMONIC_MOV, {in_register(index), in_register(start)});
    writer_.align();
    const std::size_t round = writer_.here();
    for (std::uint32_t k = 0; k < groups; ++k) {
      // Offsets from the middle of a round are brief in the code.
      group((static_cast<std::int64_t>(k) - groups / 2) * bytes_);
    }
    writer_.add(ZYDIS_MNEMONIC_ADD, {in_register(index), immediate(std::int64_t{groups} * bytes_)});
    writer_.jump_if_not_zero(round);
    writer_.add(ZYDIS_MNEMONIC_DEC, {in_register(passes_left)});
    writer_.jump_if_not_zero(pass);
    if (shape_.width >= Width::avx2) {
      writer_.add(ZYDIS_MNEMONIC_VZEROUPPER);
    }
    restore(writer_, filler_);
    for (const ZydisRegister kept : {passes_left, start}) {
      writer_.add(ZYDIS_MNEMONIC_POP, {in_register(kept)});
    }
    writer_.add(ZYDIS_MNEMONIC_RET);
    return writer_.finish();
  }

 private:
  [[nodiscard]] ZydisMnemonic move_mnemonic() const {
    constexpr std::array<ZydisMnemonic, 4> of_width = {ZYDIS_MNEMONIC_MOVSD, ZYDIS_MNEMONIC_MOVUPS,
                                                       ZYDIS_MNEMONIC_VMOVUPS, ZYDIS_MNEMONIC_VMOVUPS};
    return of_width[static_cast<std::size_t>(shape_.width)];
  }
  [[nodiscard]] ZydisRegister vector(unsigned number) const {
    constexpr std::array<ZydisRegisterClass, 4> of_width = {ZYDIS_REGCLASS_XMM, ZYDIS_REGCLASS_XMM, ZYDIS_REGCLASS_YMM,
                                                            ZYDIS_REGCLASS_ZMM};
    return ZydisRegisterEncode(of_width[static_cast<std::size_t>(shape_.width)], static_cast<ZyanU8>(number));
  }

  void load(ZydisRegister array, std::int64_t offset) {
    value_ = next_++ % registers;
    writer_.add(move_mnemonic(), {in_register(vector(value_)), memory_at(array, index, offset, bytes_)});
  }
  void store(std::int64_t offset) {
    writer_.add(move_mnemonic(), {memory_at(array_a, index, offset, bytes_), in_register(vector(value_))});
  }

  void group(std::int64_t offset) {
    if (shape_.mix != Mix::stores) {
      load(array_b, offset);
    }
    if (shape_.mix == Mix::two_to_one) {
      load(array_c, offset);
    }
    if (shape_.mix != Mix::loads) {
      store(offset);
    }
    const Accumulators accumulators = upper_accumulators_of(filler_);
    for (std::uint32_t i = 0; i < shape_.fillers; ++i) {
      append_step(writer_, filler_, accumulators.first + next_filler_++ % accumulators.count);
    }
  }

  static constexpr ZydisRegister array_a = ZYDIS_REGISTER_RDI, array_b = ZYDIS_REGISTER_RSI,
                                 array_c = ZYDIS_REGISTER_RDX, start_argument = ZYDIS_REGISTER_RCX,
                                 passes_argument = ZYDIS_REGISTER_R8, scale = ZYDIS_REGISTER_R9;
  // Fillers leave these alone.
  static constexpr ZydisRegister index = ZYDIS_REGISTER_RAX, start = ZYDIS_REGISTER_RBP,
                                 passes_left = ZYDIS_REGISTER_RBX;
  static constexpr unsigned registers = 7;  // that are loaded
  StreamShape shape_;
  std::uint32_t bytes_;
  RegisterOperation filler_;
  CodeWriter writer_;
  unsigned next_ = 0, next_filler_ = 0;
  unsigned value_ = registers;  // the register that is stored: at first, the scale's
};

}  // namespace

Traffic traffic_of(Mix mix) {
  constexpr std::array<Traffic, 4> traffics = {Traffic::load, Traffic::triad, Traffic::copy, Traffic::store};
  return traffics[static_cast<std::size_t>(mix)];
}

std::uint32_t group_size(Mix mix) { return arrays_of(traffic_of(mix)); }

std::uint32_t vector_bytes(Width width) {
  return models::lanes(width, models::Precision::double_precision) * static_cast<std::uint32_t>(sizeof(double));
}

Result<StreamLoop> StreamLoop::make(const StreamShape& shape) {
  auto code = StreamWriter(shape).write();
  if (!code) {
    return tl::unexpected<Error>(code.error());
  }
  StreamLoop loop;
  loop.shape_ = shape;
  loop.code_ = std::move(*code);
  return loop;
}

void StreamLoop::run(const TrafficArrays& arrays, std::uint64_t passes) const {
  alignas(64) std::array<std::uint64_t, 8> value{};
  value.fill(__builtin_bit_cast(std::uint64_t, arrays.scale));
  const std::uint64_t middle = std::uint64_t{groups_of_round(shape_.fillers)} / 2 * vector_bytes(shape_.width);
  const auto end = [&](const double* array) { return reinterpret_cast<std::uintptr_t>(array) + arrays.bytes + middle; };
  code_.as<StreamFunction>()(end(arrays.a), end(arrays.b), end(arrays.c), -static_cast<std::int64_t>(arrays.bytes),
                             passes, value.data());
}

std::uint64_t StreamLoop::memory_instructions(std::uint64_t bytes, std::uint64_t passes) const {
  return passes * (bytes / vector_bytes(shape_.width)) * group_size(shape_.mix);
}

}  // namespace crosstalk::collectors::calibration
