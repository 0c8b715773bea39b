// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/memory_samples.h"

namespace crosstalk::attribution {
namespace {

/// The kind of the access; for samples without an address, from the data source.
AccessKind access_of(const profile::SampleRow& row) {
  const DataSource source = decode_data_source(row.measurement.data_source);
  const unsigned kind = (source.load ? 1U : 0U) | (source.store ? 2U : 0U);
  return row.access != AccessKind::none ? row.access : static_cast<AccessKind>(kind);
}

}  // namespace

void MemorySamples::add(const profile::SampleRow& row) {
  if (row.measurement.source == profile::SourceKind::clock) {
    return;
  }
  MemorySample sample;
  sample.access = access_of(row);
  if (sample.access == AccessKind::none) {
    ++others_;
    return;
  }
  sample.in_kernel = (row.flags & profile::sample_in_kernel) != 0;
  sample.time_ns = row.time_ns;
  sample.address = row.address;
  sample.code = row.access_ip != 0 ? row.access_ip : sample.in_kernel && row.ip != 0 ? row.ip - 1 : row.ip;
  sample.weight = row.measurement.weight;
  sample.data_source = row.measurement.data_source;
  sample.thread = row.thread;
  sample.event = row.event;
  sample.call_chain = row.call_chain;
  sample.latency_cycles = row.measurement.latency_cycles;
  sample.cpu = row.cpu;
  sample.width = row.width;
  sample.unit = row.measurement.unit;
  samples_.push_back(sample);
}

}  // namespace crosstalk::attribution
