// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/ibs_context.h"

#include <fcntl.h>

#include "collectors/in_target/sys/system_calls.h"
#include "collectors/memory_samples/module_records.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::in_target {
namespace {

long open_device(const void* /*what*/) {
  return system_call(SYS_openat, AT_FDCWD, collectors::ibs_module_device, O_RDWR | O_CLOEXEC);
}

}  // namespace

long open_ibs_context(std::uint64_t period, std::size_t ring_bytes, OwnedEvent& context) {
  crosstalk_ibs_info info{};
  long result = open_like_clock(open_device, context);
  result = result < 0 ? result : control(context, CROSSTALK_IBS_IOC_INFO, &info);
  if (result < 0) {
    return result;
  }
  crosstalk_ibs_setup setup = collectors::module_setup(info, period, ring_bytes / sizeof(crosstalk_ibs_sample));
  setup.watermark = setup.records;  // nobody waits for it
  return control(context, CROSSTALK_IBS_IOC_SETUP, &setup);
}

long start_ibs_context(const OwnedEvent& context) { return control(context, CROSSTALK_IBS_IOC_ENABLE, nullptr); }

long stop_ibs_context(const OwnedEvent& context) { return control(context, CROSSTALK_IBS_IOC_DISABLE, nullptr); }

long read_ibs_counts(const OwnedEvent& context, EventCounts& counts) {
  crosstalk_ibs_status status{};
  const long result = control(context, CROSSTALK_IBS_IOC_STATUS, &status);
  if (result >= 0) {
    counts = {status.counted, status.running_ns, status.running_ns};
  }
  return result;
}

long set_ibs_period(const OwnedEvent& context, std::uint64_t period) {
  crosstalk_ibs_info info{};
  if (const long asked = control(context, CROSSTALK_IBS_IOC_INFO, &info); asked < 0) {
    return asked;
  }
  const crosstalk_ibs_period drawn = collectors::drawn_around(info, period);
  return control(context, CROSSTALK_IBS_IOC_PERIOD, &drawn);
}

}  // namespace crosstalk::in_target
