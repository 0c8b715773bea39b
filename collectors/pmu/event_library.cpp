// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_library.h"

#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

namespace crosstalk::collectors {
namespace {

Result<perf_event_attr> encode(const std::string& name) {
  if (const pfm_err_t begun = pfm_initialize(); begun != PFM_SUCCESS) {
    return fail(ErrorCode::unsupported, std::string("libpfm4: ") + pfm_strerror(begun));
  }
  perf_event_attr attr{};
  pfm_perf_encode_arg_t arguments{};
  arguments.size = sizeof arguments;
  arguments.attr = &attr;
  const pfm_err_t encoded =
      pfm_get_os_event_encoding(name.c_str(), PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arguments);  // user mode
  if (encoded != PFM_SUCCESS) {
    return fail(ErrorCode::invalid_argument, pfm_strerror(encoded));
  }
  return attr;
}

void add_names(int event, std::vector<std::string>& names) {
  pfm_event_info_t info{};
  info.size = sizeof info;
  if (pfm_get_event_info(event, PFM_OS_PERF_EVENT_EXT, &info) != PFM_SUCCESS) {
    return;
  }
  names.emplace_back(info.name);
  for (int i = 0; i < info.nattrs; ++i) {
    pfm_event_attr_info_t mask{};
    mask.size = sizeof mask;
    if (pfm_get_event_attr_info(event, i, PFM_OS_PERF_EVENT_EXT, &mask) == PFM_SUCCESS && mask.type == PFM_ATTR_UMASK) {
      names.push_back(std::string(info.name) + ":" + mask.name);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  if (pfm_initialize() != PFM_SUCCESS) {
    return names;
  }
  for (int number = PFM_PMU_NONE; number < PFM_PMU_MAX; ++number) {
    pfm_pmu_info_t unit{};
    unit.size = sizeof unit;
    if (pfm_get_pmu_info(static_cast<pfm_pmu_t>(number), &unit) != PFM_SUCCESS || unit.is_present == 0) {
      continue;
    }
    for (int event = unit.first_event; event != -1; event = pfm_get_event_next(event)) {
      add_names(event, names);
    }
  }
  return names;
}

}  // namespace

EventLibrary libpfm4() { return {encode, names}; }

}  // namespace crosstalk::collectors
