// SPDX-License-Identifier: Apache-2.0
// Short names of the types of a perf ring (collectors/memory_samples/) that the observer uses throughout.
#pragma once

#include "collectors/memory_samples/event_pace.h"
#include "collectors/memory_samples/measured_access.h"
#include "collectors/memory_samples/perf_records.h"
#include "collectors/memory_samples/sample_layout.h"

namespace crosstalk::observer {

using collectors::EventPace;
using collectors::Measured;
using collectors::measured_access;
using collectors::parse_perf_record;
using collectors::ParsedRecord;
using collectors::PerfExec;
using collectors::PerfExit;
using collectors::PerfFork;
using collectors::PerfLost;
using collectors::PerfMap;
using collectors::PerfRecord;
using collectors::PerfSample;
using collectors::PerfThrottle;
using collectors::period_by_chance;
using collectors::period_spread;
using collectors::sample_fields;
using collectors::sampled_register_count;
using collectors::sampled_registers;
using collectors::SampleLayout;

}  // namespace crosstalk::observer
