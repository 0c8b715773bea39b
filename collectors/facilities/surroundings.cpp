// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/surroundings.h"

#include <cpuid.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectors/probe_system.h"

namespace crosstalk::collectors {
namespace {

constexpr unsigned hypervisor_bit = 1U << 31U;  // of leaf 1, ecx
constexpr unsigned hypervisor_leaf = 0x40000000;

/// The signature that a hypervisor shows; none without one.
std::string shown_signature() {
  std::array<unsigned, 4> r{};
  if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) == 0 || (r[2] & hypervisor_bit) == 0) {
    return {};
  }
  __cpuid(hypervisor_leaf, r[0], r[1], r[2], r[3]);
  std::array<char, 12> text{};
  std::memcpy(text.data(), &r[1], text.size());
  std::string signature(text.begin(), std::find(text.begin(), text.end(), '\0'));
  return signature.empty() ? "unknown" : signature;
}

std::string firmware_product() {
  const std::string vendor = read_small_file("/sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = read_small_file("/sys/class/dmi/id/product_name").value_or("");
  return product.empty() || product.starts_with(vendor) ? product : vendor + (vendor.empty() ? "" : " ") + product;
}

bool file_exists(const char* path) { return ::access(path, F_OK) == 0; }

}  // namespace

std::string hypervisor_of(std::string_view signature) {
  constexpr std::array<std::pair<std::string_view, const char*>, 11> known = {{{"KVMKVMKVM", "KVM"},
                                                                               {"Linux KVM Hv", "KVM"},
                                                                               {"Microsoft Hv", "Hyper-V"},
                                                                               {"VMwareVMware", "VMware"},
                                                                               {"XenVMMXenVMM", "Xen"},
                                                                               {"TCGTCGTCGTCG", "QEMU's emulation"},
                                                                               {"bhyve bhyve ", "bhyve"},
                                                                               {" lrpepyh  vr", "Parallels"},
                                                                               {"prl hyperv  ", "Parallels"},
                                                                               {"ACRNACRNACRN", "ACRN"},
                                                                               {"VBoxVBoxVBox", "VirtualBox"}}};
  for (const auto& [text, name] : known) {
    if (signature == text) {
      return name;
    }
  }
  return signature.empty() ? "" : signature == "unknown" ? "an unknown hypervisor" : "'" + std::string(signature) + "'";
}

std::string sandbox_of(std::string_view version) {
  if (version.find("gVisor") != std::string_view::npos ||
      version.starts_with("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016")) {
    return "gVisor";  // it shows this one date, whenever it was built
  }
  return version.find("-Microsoft") != std::string_view::npos ? "WSL1" : "";
}

Surroundings surroundings() {
  Surroundings around;
  around.hypervisor = hypervisor_of(shown_signature());
  if (around.hypervisor.empty() && read_small_file("/sys/hypervisor/type").value_or("") == "xen") {
    around.hypervisor = "Xen";
  }
  around.product = around.hypervisor.empty() ? "" : firmware_product();
  around.confidential = file_exists("/dev/sev-guest")   ? "AMD SEV-SNP"
                        : file_exists("/dev/tdx_guest") ? "Intel TDX"
                                                        : "";
  around.sandbox = sandbox_of(read_small_file("/proc/version").value_or(""));
  return around;
}

std::string cause_of_silence(const Surroundings& around, Silence silence) {
  if (!around.sandbox.empty()) {
    return "the kernel here is " + around.sandbox + "'s, which has no debug registers to give";
  }
  if (around.hypervisor.empty()) {
    return {};
  }
  std::string found = "CPUID names " + around.hypervisor;
  found += around.product.empty() ? "" : ", firmware " + around.product;
  found += around.confidential.empty() ? "" : ", " + around.confidential;
  return "this is a virtual machine (" + found + "), whose host " +
         (silence == Silence::whole ? "keeps debug exceptions to itself" : "does not pass all debug exceptions on");
}

std::string remedy_of_silence(const Surroundings& around) {
  if (around.sandbox == "WSL1") {
    return "change to WSL2: wsl --set-version DISTRIBUTION 2";
  }
  if (!around.sandbox.empty()) {
    return "start the container with another runtime: docker run --runtime=runc";
  }
  if (!around.hypervisor.empty()) {
    return "record on the host itself, or in a virtual machine whose host passes debug exceptions on";
  }
  return {};
}

}  // namespace crosstalk::collectors
