// SPDX-License-Identifier: Apache-2.0
// Writes kernels whose instructions are chosen when they are measured: their number, width and kind. In machine code,
// encoded by Zydis; kernels that are always the same are in assembly (flop_kernels.h).
#pragma once

#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace crosstalk::collectors::calibration {

/// Code in memory that can be executed and not be written. Functions of it may be called by several threads.
class ExecutableCode {
 public:
  ExecutableCode() = default;
  ~ExecutableCode();
  ExecutableCode(ExecutableCode&& other) noexcept { swap(other); }
  ExecutableCode& operator=(ExecutableCode&& other) noexcept {
    swap(other);
    return *this;
  }
  ExecutableCode(const ExecutableCode&) = delete;
  ExecutableCode& operator=(const ExecutableCode&) = delete;

  /// Fails where the kernel allows no memory to become executable.
  [[nodiscard]] static Result<ExecutableCode> of(std::span<const std::uint8_t> bytes);

  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return {static_cast<const std::uint8_t*>(begin_), size_};
  }
  /// The code as a function, which has to be of this type: `Function` is `int(long)` or the like.
  template <class Function>
  [[nodiscard]] Function* as() const {
    return reinterpret_cast<Function*>(begin_);
  }

 private:
  void swap(ExecutableCode& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
  }
  void* begin_ = nullptr;
  std::size_t size_ = 0;
};

[[nodiscard]] ZydisEncoderOperand in_register(ZydisRegister value);
[[nodiscard]] ZydisEncoderOperand immediate(std::int64_t value);
/// `bytes` at base + index + displacement; `index` may be ZYDIS_REGISTER_NONE.
[[nodiscard]] ZydisEncoderOperand memory_at(ZydisRegister base, ZydisRegister index, std::int64_t displacement,
                                            unsigned bytes);

class CodeWriter {
 public:
  /// Appends an instruction. One that cannot be encoded makes `finish` fail.
  void add(ZydisMnemonic mnemonic, std::initializer_list<ZydisEncoderOperand> operands = {});
  /// Appends code that was written elsewhere, without jumps out of it.
  void append(std::span<const std::uint8_t> code) { bytes_.insert(bytes_.end(), code.begin(), code.end()); }
  /// Appends `nop` until the next instruction is aligned to 64 bytes.
  void align();
  [[nodiscard]] std::size_t here() const { return bytes_.size(); }
  /// Appends a jump to `target`, a value of `here`, that is taken unless the last result was zero.
  void jump_if_not_zero(std::size_t target);

  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  [[nodiscard]] bool valid() const { return !failed_; }
  /// Makes `finish` fail.
  void invalidate() { failed_ = true; }
  [[nodiscard]] Result<ExecutableCode> finish() const;

 private:
  std::vector<std::uint8_t> bytes_;
  bool failed_ = false;
};

}  // namespace crosstalk::collectors::calibration
