// SPDX-License-Identifier: Apache-2.0
// A thread's vector and mask registers, of which some bytes are known, as the kernel has saved them in a signal's
// frame.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// The bytes of a vector, and which of them are known: bit i stands for byte i.
struct alignas(64) Vector {
  static constexpr std::size_t bytes = 64;
  std::uint8_t byte[bytes];
  std::uint64_t known;
};

/// Returns a mask with the low `bytes` bits set: the `known` bits of so many bytes.
[[nodiscard]] constexpr std::uint64_t low_bits(unsigned bytes) {
  return bytes >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
}

struct MaskRegister {
  std::uint64_t bits;
  bool known;
};

/// The processor's features, and the places of its states in an XSAVE area (Intel SDM vol. 1, 13.4 and 13.5.2: CPUID
/// leaf 0DH).
struct ProcessorFeatures {
  enum : std::uint32_t { sse3 = 1, ssse3 = 2, sse4 = 4, fma = 8 };
  static constexpr unsigned components = 8;
  std::uint32_t has = 0;  ///< of the instructions that are executed for the target: sse3, ...
  struct Part {
    std::uint32_t offset = 0, bytes = 0;
  };
  Part part[components] = {};  ///< 2 and up; bytes 0: there is none
};

/// Asks the processor, which a hypervisor may answer in its place after microseconds: not in a handler.
ProcessorFeatures find_processor_features();

/// The saved registers: an XSAVE area in the standard format.
struct VectorFrame {
  const std::uint8_t* area = nullptr;  ///< null: not known
  std::size_t bytes = 0;
  std::uint64_t features = 0;  ///< that the area has room for, a bit for each component

  /// Returns the frame of a signal: `saved` is uc_mcontext.fpregs.
  static VectorFrame of_signal(const void* saved);
};

/// All-zero, all unknown, until loaded.
class VectorRegisters {
 public:
  /// Loads the registers saved in `frame`; registers that it lacks become unknown.
  void load(const VectorFrame& frame, const ProcessorFeatures& processor);

  [[nodiscard]] Vector& vector(unsigned number) { return vector_[number & 31U]; }
  [[nodiscard]] MaskRegister& mask(unsigned number) { return mask_[number & 7U]; }
  void forget_all();

  std::uint32_t mode;  ///< MXCSR
  bool mode_known;

 private:
  void load_part(unsigned component, const VectorFrame& frame, const ProcessorFeatures& processor, unsigned first,
                 unsigned count, unsigned offset, unsigned bytes);
  void load_masks(const VectorFrame& frame, const ProcessorFeatures& processor);

  Vector vector_[32];
  MaskRegister mask_[8];
};

}  // namespace crosstalk::in_target
