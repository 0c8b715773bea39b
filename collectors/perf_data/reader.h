// SPDX-License-Identifier: Apache-2.0
// A whole perf.data file, of either mode and byte order: its records, decoded and in the order of their times.
//
//   file -> header (file_header.h) -> events (events.h) and features (features.h)
//        -> records, decompressed (decompressor.h) -> in order (round_queue.h) -> decoded (record_decoder.h) -> visitor
//
// In a file written to a pipe, events and features are records, too, so they are complete only after read().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "collectors/perf_data/decompressor.h"
#include "collectors/perf_data/events.h"
#include "collectors/perf_data/features.h"
#include "collectors/perf_data/file_header.h"
#include "collectors/perf_data/records.h"
#include "collectors/perf_data/round_queue.h"

namespace crosstalk::perf_data {

/// Counts of what was read, and of irregularities.
struct ReadSummary {
  std::uint64_t records = 0, samples = 0;
  std::uint64_t unknown_samples = 0;  // of events that the file does not describe
  std::uint64_t out_of_order = 0;     // handed on later than one with a later time
  std::uint64_t auxtrace_bytes = 0;   // of hardware traces, which are not decoded
  bool cut_off =
      false;  // something is missing at the end: perf did not end in an orderly way, or this is part of a copy
  std::vector<std::string> damaged;  // features that were left out, each with its defect
};

class Reader {
 public:
  /// `file` outlives the reader. Errors describe the defect of the file, without its name.
  [[nodiscard]] static Result<Reader> open(std::span<const std::byte> file);

  /// Hands on every record, once. An error of `visit` ends it and is passed on.
  using Visit = std::function<Result<void>(const Record& record)>;
  [[nodiscard]] Result<ReadSummary> read(const Visit& visit);

  [[nodiscard]] const FileHeader& header() const { return header_; }
  [[nodiscard]] const Events& events() const { return events_; }
  [[nodiscard]] const Features& features() const { return features_; }

 private:
  Reader(std::span<const std::byte> file, FileHeader header);

  [[nodiscard]] Result<void> read_events();
  void read_features();
  void take_feature(std::uint32_t feature, std::span<const std::byte> bytes);
  void name_events();
  [[nodiscard]] Result<void> read_build_ids(const Visit& visit);
  [[nodiscard]] Result<void> add_event(std::span<const std::byte> record);
  [[nodiscard]] Result<void> update_event(std::span<const std::byte> record);

  /// Takes a whole record. `keep`: copies it, as its bytes are gone afterwards.
  [[nodiscard]] Result<void> take(std::span<const std::byte> bytes, const Place& place, bool keep);
  [[nodiscard]] Result<void> take_of_perf(std::span<const std::byte> bytes, const Place& place);
  [[nodiscard]] Result<void> decompress(std::span<const std::byte> bytes, const Place& place);
  [[nodiscard]] Result<void> hand_on(std::span<const std::byte> bytes, const Place& place);
  /// Bytes behind a record that belong to it.
  [[nodiscard]] std::uint64_t trailing_bytes(std::span<const std::byte> record);

  std::span<const std::byte> file_;
  FileHeader header_;
  Events events_;
  Features features_;
  std::vector<std::string> damaged_;
  RoundQueue queue_;
  Decompressor decompressor_;
  ReadSummary summary_;
  const Visit* visit_ = nullptr;  // within read()
};

}  // namespace crosstalk::perf_data
