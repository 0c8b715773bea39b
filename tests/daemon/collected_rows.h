// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "daemon/row_sink.h"

namespace crosstalk::daemon {

/// Keeps all rows; of rows that replace others, the last.
struct CollectedRows final : RowSink {
  std::map<std::uint32_t, profile::ProcessRow> processes;
  std::map<std::uint32_t, profile::ThreadRow> threads;
  std::map<std::pair<std::uint32_t, std::uint64_t>, profile::ModuleRow> modules;
  std::vector<profile::SampleRow> samples;
  std::map<std::uint32_t, profile::WatchRow> watches;
  std::vector<profile::TrapRow> traps;
  std::vector<profile::BlockRow> blocks;
  std::vector<profile::SharedMappingRow> shared_mappings;
  std::vector<profile::ThreadCreationRow> thread_creations;
  std::vector<profile::ThreadWaitRow> thread_waits;
  std::vector<profile::SampledWaitRow> sampled_waits;
  std::vector<profile::RegionRow> regions;
  std::vector<profile::ThreadRegionRow> thread_regions;
  std::vector<profile::LookaheadRow> lookaheads;
  std::vector<profile::ReadingRow> readings;
  std::vector<profile::StackRow> stacks;
  std::vector<profile::MessageRow> messages;

  void put(const profile::ProcessRow& row) override { processes[row.id.value] = row; }
  void put(const profile::ThreadRow& row) override { threads[row.id.value] = row; }
  void put(const profile::ModuleRow& row) override { modules[{row.process.value, row.begin}] = row; }
  void put(const profile::SampleRow& row) override { samples.push_back(row); }
  void put(const profile::WatchRow& row) override { watches[row.id.value] = row; }
  void put(const profile::TrapRow& row) override { traps.push_back(row); }
  void put(const profile::BlockRow& row) override { blocks.push_back(row); }
  void put(const profile::SharedMappingRow& row) override { shared_mappings.push_back(row); }
  void put(const profile::ThreadCreationRow& row) override { thread_creations.push_back(row); }
  void put(const profile::ThreadWaitRow& row) override { thread_waits.push_back(row); }
  void put(const profile::SampledWaitRow& row) override { sampled_waits.push_back(row); }
  void put(const profile::RegionRow& row) override { regions.push_back(row); }
  void put(const profile::ThreadRegionRow& row) override { thread_regions.push_back(row); }
  void put(const profile::LookaheadRow& row) override { lookaheads.push_back(row); }
  void put(const profile::ReadingRow& row) override { readings.push_back(row); }
  void put(const profile::StackRow& row) override { stacks.push_back(row); }
  void put(const profile::MessageRow& row) override { messages.push_back(row); }
};

}  // namespace crosstalk::daemon
