// SPDX-License-Identifier: Apache-2.0
// Detects the surroundings of this system that may keep debug exceptions to themselves: a hypervisor, a sandbox's
// kernel.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace crosstalk::collectors {

struct Surroundings {
  std::string hypervisor;    // "KVM", "Hyper-V", ...; "an unknown hypervisor"; empty: none is told of
  std::string product;       // as the machine's firmware calls it: "Google Compute Engine"; empty: not known
  std::string confidential;  // "AMD SEV-SNP", "Intel TDX": memory that the host cannot read; empty: none is told of
  std::string sandbox;       // whose kernel is no Linux: "gVisor", "WSL1"; empty: none
};
[[nodiscard]] Surroundings surroundings();

/// Returns the name of the hypervisor with this signature in CPUID leaf 0x40000000; the signature itself if it is not
/// known.
[[nodiscard]] std::string hypervisor_of(std::string_view signature);
/// Returns the sandbox, from the text of /proc/version.
[[nodiscard]] std::string sandbox_of(std::string_view version);

/// Returns the cause of watchpoints that report nothing, or not everything, in words that follow the finding: "this is
/// a virtual machine (CPUID names KVM, firmware Google Compute Engine), whose host keeps debug exceptions to itself";
/// empty: none is known.
enum class Silence : std::uint8_t { whole, in_part };
[[nodiscard]] std::string cause_of_silence(const Surroundings& around, Silence silence);
/// Returns the remedy; empty: none is known.
[[nodiscard]] std::string remedy_of_silence(const Surroundings& around);

}  // namespace crosstalk::collectors
