// SPDX-License-Identifier: Apache-2.0
// The conclusions of `crosstalk doctor` from a probe, and their rendering.
#pragma once

#include <string>
#include <vector>

#include "collectors/facilities/probe.h"
#include "driver/options/command_line.h"
#include "driver/recording/method_choice.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

struct DoctorRequest {
  bool json = false;
};
[[nodiscard]] Result<Parsed<DoctorRequest>> parse_doctor(const Arguments& arguments);

struct Diagnosis {
  std::vector<collectors::Facility> facilities;
  bool can_record = false, sees_communication = false;
  MethodChoice method;  // how it sees communication, if it can record
  profile::WatchTrial watch_trial;
};
[[nodiscard]] Diagnosis diagnose(const collectors::Probe& probe, const collectors::Facility& collector);

/// Returns the sources that a recording can use here, best first: "pebs", "ibs", "clock".
[[nodiscard]] std::vector<std::string> sources_of(const Diagnosis& diagnosis);
[[nodiscard]] std::string render_diagnosis(const Diagnosis& diagnosis, const TextStyle& style);
/// One JSON object: schema "crosstalk.doctor/1", can_record, sees_communication, method, method_choice, sources,
/// watchpoints, facilities.
[[nodiscard]] std::string render_diagnosis_json(const Diagnosis& diagnosis);

}  // namespace crosstalk::driver
