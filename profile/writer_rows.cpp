// SPDX-License-Identifier: Apache-2.0
// The rows of ProfileWriter, table by table.
#include <optional>

#include "profile/writer.h"
#include "profile/writer_state.h"

namespace crosstalk::profile {
namespace {

/// The measurement that a clock's sample lacks; a clock's takes no space in the file.
std::optional<SampleMeasurement> measurement_of(const SampleRow& row, std::int64_t number) {
  if (row.measurement.source == SourceKind::clock && row.event.value == 0 && row.call_chain.value == 0) {
    return std::nullopt;
  }
  SampleMeasurement of{number, row.measurement, row.event, row.call_chain};
  of.measurement.weight = row.weight().value;
  return of;
}

Result<void> put_words(WriterState& state, const WatchRow& row) {
  std::uint8_t index = 0;
  for (const WatchWord& word : row.words) {
    if (Result<void> put = state.put_row(WatchWordRow{row.id, index++, word}); !put) {
      return put;
    }
  }
  return state.statements.delete_words.bind(std::int64_t{row.id.value}).bind(std::int64_t{index}).run();
}

}  // namespace

Result<void> ProfileWriter::put(const ThreadRow& row) {
  WriterState& s = *state_;
  if (row.end_ns != 0) {
    s.packing.registers.erase(row.id.value);  // should a sample follow nevertheless, it is counted from 0
  }
  return s.guarded([&] { return s.put_row(row); });
}

Result<void> ProfileWriter::put(const SampleRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    const Result<void> result = s.put_row(row);
    const auto measured = result ? measurement_of(row, s.database.last_row()) : std::nullopt;
    return measured ? s.put_row(*measured) : result;
  });
}

Result<void> ProfileWriter::put(const WatchRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Result<void> result = s.put_row(row);
    if (result && row.sample_measurement.source != SourceKind::clock) {
      result = s.put_row(WatchMeasurement{row.id, row.sample_measurement});
    }
    if (result && row.probe) {
      result = s.put_row(LineProbeRow{row.id, *row.probe});
    }
    return result ? put_words(s, row) : result;
  });
}

template <class Row>
Result<void> ProfileWriter::put_one(const Row& row) {
  return state_->guarded([&] { return state_->put_row(row); });
}

Result<void> ProfileWriter::put(const ProcessRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const KeptFileRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const ModuleRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const TrapRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const BlockRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const SharedMappingRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const ThreadCreationRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const ThreadWaitRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const SampledWaitRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const RegionRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const ThreadRegionRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const LookaheadRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const EventRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const CounterRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const ReadingRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const CallChainRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const StackRow& row) { return put_one(row); }
Result<void> ProfileWriter::put(const MessageRow& row) { return put_one(row); }

}  // namespace crosstalk::profile
