// SPDX-License-Identifier: Apache-2.0
#include "collectors/probe_system.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>

#include "base/number.h"
#include "base/proc_fields.h"
#include "base/unique_fd.h"

namespace crosstalk::collectors {

std::optional<KernelVersion> parse_kernel_release(std::string_view release) {
  const auto major = take_leading<unsigned>(release);
  const auto minor = release.starts_with('.') ? leading_number<unsigned>(release.substr(1)) : std::nullopt;
  return major && minor ? std::optional(KernelVersion{*major, *minor}) : std::nullopt;
}

std::string kernel_release() {
  utsname name{};
  return ::uname(&name) == 0 ? std::string(name.release) : std::string();
}

std::optional<std::string> read_small_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return std::nullopt;
  }
  constexpr std::size_t limit = 65'536;
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return std::nullopt;
    }
    if (got == 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  text.resize(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

int perf_event_paranoid() {
  const auto text = read_small_file("/proc/sys/kernel/perf_event_paranoid");
  return text ? leading_number<int>(*text).value_or(-1) : -1;
}

SystemCallFilter system_call_filter() {
  const auto status = read_small_file("/proc/self/status");
  const auto mode = status ? proc_field(*status, "Seccomp") : std::nullopt;
  if (!mode) {
    return SystemCallFilter::unknown;
  }
  return *mode == "0" ? SystemCallFilter::none : SystemCallFilter::filtered;
}

CpuFacts parse_cpuinfo(std::string_view cpuinfo) {
  CpuFacts facts;
  facts.vendor = proc_field(cpuinfo, "vendor_id").value_or("");
  facts.model = proc_field(cpuinfo, "model name").value_or("");
  const std::string flags = " " + std::string(proc_field(cpuinfo, "flags").value_or("")) + " ";
  facts.virtual_machine = flags.find(" hypervisor ") != std::string::npos;
  facts.has_ibs = flags.find(" ibs ") != std::string::npos;
  return facts;
}

}  // namespace crosstalk::collectors
