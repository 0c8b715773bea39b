// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/counter_reading.h"
#include "profile/model.h"
#include "profile/thread_wait_row.h"

namespace crosstalk::daemon {

/// Destination of rows: the profile, or a test's memory. The sink handles its own failures.
class RowSink {
 public:
  RowSink() = default;
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;
  virtual ~RowSink() = default;

  virtual void put(const profile::ProcessRow& row) = 0;
  virtual void put(const profile::ThreadRow& row) = 0;
  virtual void put(const profile::ModuleRow& row) = 0;
  virtual void put(const profile::SampleRow& row) = 0;
  virtual void put(const profile::WatchRow& row) = 0;
  virtual void put(const profile::TrapRow& row) = 0;
  virtual void put(const profile::BlockRow& row) = 0;
  virtual void put(const profile::SharedMappingRow& row) = 0;
  virtual void put(const profile::ThreadCreationRow& row) = 0;
  virtual void put(const profile::ThreadWaitRow& row) = 0;
  virtual void put(const profile::SampledWaitRow& row) = 0;
  virtual void put(const profile::RegionRow& row) = 0;
  virtual void put(const profile::ThreadRegionRow& row) = 0;
  virtual void put(const profile::LookaheadRow& row) = 0;
  virtual void put(const profile::ReadingRow& row) = 0;
  virtual void put(const profile::StackRow& row) = 0;
  virtual void put(const profile::MessageRow& row) = 0;
};

}  // namespace crosstalk::daemon
