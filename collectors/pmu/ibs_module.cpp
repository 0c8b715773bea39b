// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/ibs_module.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "collectors/pmu/event_self_test.h"
#include "collectors/probe_system.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::collectors {
namespace {

tl::unexpected<Error> refusal(ErrorCode code, const std::string& text) {
  return fail(code, ibs_module_device + (" " + text));
}

std::string name_of_group(gid_t gid) {
  group entry{};
  group* found = nullptr;
  std::array<char, 4096> text{};
  return ::getgrgid_r(gid, &entry, text.data(), text.size(), &found) == 0 && found != nullptr ? entry.gr_name
                                                                                              : std::to_string(gid);
}

/// Explains a device that is closed to this user, by its owner: members of its group may open it, if the udev rule gave
/// it to one.
tl::unexpected<Error> closed_device() {
  struct stat file {};
  if (::stat(ibs_module_device, &file) != 0 || (file.st_mode & S_IWGRP) == 0) {
    return refusal(
        ErrorCode::permission,
        "is root's alone; to open it to a group: kmod/60-crosstalk-ibs.rules (docs/kmod.md), or record as root");
  }
  const std::string group = name_of_group(file.st_gid);
  return refusal(ErrorCode::permission, "is open to root and group " + group +
                                            ", and this user is in no such group: sudo usermod -aG " + group +
                                            " USER, and log in again");
}

struct Device {
  UniqueFd fd;
  crosstalk_ibs_info info{};
};

Result<Device> open_device() {
  Device device{UniqueFd(::open(ibs_module_device, O_RDWR | O_CLOEXEC)), {}};
  if (!device.fd.valid()) {
    switch (errno) {
      case ENOENT:
      case ENODEV:
      case ENXIO:
        return refusal(ErrorCode::not_found, "is not there: its kernel module is not loaded (docs/kmod.md)");
      case EACCES:
      case EPERM:
        return closed_device();
      default:
        return refusal(ErrorCode::system, std::string("cannot be opened: ") + std::strerror(errno));
    }
  }
  if (::ioctl(device.fd.get(), CROSSTALK_IBS_IOC_INFO, &device.info) != 0 ||
      device.info.version != CROSSTALK_IBS_VERSION || device.info.record_size != sizeof(crosstalk_ibs_sample)) {
    return refusal(ErrorCode::unsupported,
                   "is of a module of another version; build and load the one of this crosstalk");
  }
  return device;
}

/// Explains a refused SETUP.
tl::unexpected<Error> refusal_of(int error) {
  switch (error) {
    case EACCES:
      return refusal(ErrorCode::permission, "is closed to this user: kernel.perf_event_paranoid is " +
                                                std::to_string(perf_event_paranoid()) +
                                                "; to allow it: sudo sysctl kernel.perf_event_paranoid=2");
    case EDQUOT:
    case ENOMEM:
      return refusal(ErrorCode::system, "has no memory left for this user's rings: user_memory_kb of the module");
    default:
      return refusal(ErrorCode::system, std::string("refuses to sample: ") + std::strerror(error));
  }
}

/// The period that a context is tested with. An emulated one is of nanoseconds: at the shortest, a slow guest does
/// nothing but its interrupts, and each of them interrupts the kernel.
std::uint64_t tested_period(const crosstalk_ibs_info& info) {
  constexpr std::uint64_t emulated_ns = 1'000'000;
  return (info.features & CROSSTALK_IBS_EMULATED) != 0 ? emulated_ns : longest_tested_period;
}

/// Tests a context that was set up for the calling thread.
SelfTestFindings test_context(int fd, std::uint64_t period) {
  SelfTestFindings findings;
  findings.period = period;
  const auto ask = [&](unsigned long request, void* answer, const char* name) {
    if (::ioctl(fd, request, answer) != 0) {
      findings.failed = name, findings.error = errno;
    }
    return findings.failed == nullptr;
  };
  const auto look = [&] {
    crosstalk_ibs_status status{};
    if (ask(CROSSTALK_IBS_IOC_STATUS, &status, "CROSSTALK_IBS_IOC_STATUS")) {
      findings.count = status.counted;
      findings.samples = status.samples;
      findings.running_ns = status.running_ns;
    }
    return findings.samples != 0 || findings.failed != nullptr;
  };
  if (ask(CROSSTALK_IBS_IOC_ENABLE, nullptr, "CROSSTALK_IBS_IOC_ENABLE")) {
    work_until(look);
    ask(CROSSTALK_IBS_IOC_DISABLE, nullptr, "CROSSTALK_IBS_IOC_DISABLE");
    look();
  }
  return findings;
}

}  // namespace

Result<IbsModule> ask_ibs_module() {
  const auto device = open_device();
  if (!device) {
    return tl::unexpected<Error>(device.error());
  }
  const crosstalk_ibs_info& info = device->info;
  const auto has = [&](std::uint32_t feature) { return (info.features & feature) != 0; };
  if (!has(CROSSTALK_IBS_HAS_OP) || !has(CROSSTALK_IBS_HAS_FOLLOW)) {
    return refusal(ErrorCode::unsupported,
                   "cannot sample micro-operations of other threads; the kernel's log says why");
  }
  return IbsModule{has(CROSSTALK_IBS_EMULATED), has(CROSSTALK_IBS_HAS_COUNT_OPS), info.op_period_min,
                   info.op_period_max};
}

Result<void> try_ibs_module() {
  const auto device = open_device();
  if (!device) {
    return tl::unexpected<Error>(device.error());
  }
  const crosstalk_ibs_setup setup = module_setup(device->info, tested_period(device->info), device->info.records_min);
  if (::ioctl(device->fd.get(), CROSSTALK_IBS_IOC_SETUP, &setup) != 0) {
    return refusal_of(errno);
  }
  const SelfTestFindings findings = test_context(device->fd.get(), setup.period);
  if (judge_self_test(findings) != SelfTestVerdict::samples) {
    return tl::unexpected<Error>(self_test_refusal(ibs_module_device, findings, false));
  }
  return {};
}

}  // namespace crosstalk::collectors
