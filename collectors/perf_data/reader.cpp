// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/reader.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "collectors/perf_data/record_decoder.h"

namespace crosstalk::perf_data {
namespace {

constexpr std::uint64_t section_bytes = 16;

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, std::size(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t rounded_up(std::uint64_t bytes) {
  constexpr std::uint64_t word = 8;
  return (bytes + word - 1) / word * word;
}

}  // namespace

Reader::Reader(std::span<const std::byte> file, FileHeader header)
    : file_(file), header_(std::move(header)), decompressor_(header_.order) {}

Result<Reader> Reader::open(std::span<const std::byte> file) {
  Result<FileHeader> header = read_file_header(file);
  if (!header) {
    return tl::unexpected<Error>(header.error());
  }
  Reader reader(file, std::move(*header));
  if (Result<void> read = reader.read_events(); !read) {
    return tl::unexpected<Error>(read.error());
  }
  reader.read_features();
  return reader;
}

Result<void> Reader::read_events() {
  const Section& all = header_.attributes;
  const std::uint64_t each = header_.attribute_bytes;
  if (all.bytes == 0) {
    return {};
  }
  if (each < least_attribute_bytes + section_bytes) {
    return fail(ErrorCode::corrupt, "the list of events at offset " + hexadecimal(all.offset) + " has entries of " +
                                        std::to_string(each) + " bytes, which is too short");
  }
  for (std::uint64_t at = 0; all.bytes - at >= each; at += each) {
    const std::string where = "event " + std::to_string(at / each) + " at offset " + hexadecimal(all.offset + at);
    ByteCursor fields(bytes_of(file_, {all.offset + at, each - section_bytes}), header_.order);
    const Result<Attribute> attribute = take_attribute(fields, each - section_bytes);
    if (!attribute) {
      return fail(ErrorCode::corrupt, where + ": " + attribute.error().message);
    }
    ByteCursor behind(bytes_of(file_, {all.offset + at + each - section_bytes, section_bytes}), header_.order);
    Section ids;
    ids.offset = behind.take<std::uint64_t>();
    ids.bytes = behind.take<std::uint64_t>();
    if (!within(ids, file_.size())) {
      return fail(ErrorCode::corrupt, where + ": its ids are at offset " + hexadecimal(ids.offset) + ", " +
                                          hexadecimal(ids.bytes) + " bytes, beyond the file's end");
    }
    if (Result<void> added = events_.add(*attribute, WordView(bytes_of(file_, ids), header_.order)); !added) {
      return fail(ErrorCode::corrupt, where + ": " + added.error().message);
    }
  }
  return {};
}

void Reader::read_features() {
  for (const FeatureSection& each : header_.features) {
    take_feature(each.feature, bytes_of(file_, each.section));
  }
  name_events();
}

/// Samples do not need features: leaves out a damaged one. perf writes an empty one if it does not know the value.
void Reader::take_feature(std::uint32_t feature, std::span<const std::byte> bytes) {
  Features with = features_;
  if (const Result<void> added = add_feature(feature, bytes, header_.order, with); added) {
    features_ = std::move(with);
  } else if (!bytes.empty()) {
    damaged_.push_back(added.error().message);
  }
}

/// Descriptions are in the order of the events.
void Reader::name_events() {
  const std::size_t both = std::min(events_.list().size(), features_.event_names.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (!features_.event_names[i].empty()) {
      events_.rename(i, features_.event_names[i]);
    }
  }
}

Result<ReadSummary> Reader::read(const Visit& visit) {
  visit_ = &visit;
  summary_ = {};
  if (Result<void> read = read_build_ids(visit); !read) {
    return tl::unexpected<Error>(read.error());
  }
  summary_.cut_off = header_.cut_off;
  const std::span<const std::byte> data = bytes_of(file_, header_.data);
  for (std::size_t at = 0; at < data.size();) {
    const std::span<const std::byte> rest = data.subspan(at);
    const Place place{header_.data.offset + at, false};
    const RecordHeader head = header_of(rest, header_.order);
    const bool whole = rest.size() >= header_bytes && head.bytes <= rest.size();
    const bool possible = !whole || head.bytes >= header_bytes;
    if (!possible && summary_.records == 0) {
      return corrupt_at(place, head.type, "it says that it has " + std::to_string(head.bytes) + " bytes");
    }
    const std::uint64_t trailing = whole && possible ? trailing_bytes(rest.first(head.bytes)) : 0;
    if (!whole || !possible || trailing > rest.size() - head.bytes) {
      summary_.cut_off = true;
      break;
    }
    if (Result<void> taken = take(rest.first(head.bytes), place, false); !taken) {
      return tl::unexpected<Error>(taken.error());
    }
    at += head.bytes + static_cast<std::size_t>(trailing);
  }
  const auto hand_on_queued = [this](const QueuedRecord& queued) { return hand_on(queued.bytes, queued.place); };
  if (Result<void> ended = queue_.end(hand_on_queued); !ended) {
    return tl::unexpected<Error>(ended.error());
  }
  summary_.cut_off = summary_.cut_off || decompressor_.incomplete() > 0;
  summary_.out_of_order = queue_.out_of_order();
  summary_.damaged = damaged_;
  return summary_;
}

// Runs before anything else, so that the reader of a mapping knows its file. Old perfs wrote records without a process.
Result<void> Reader::read_build_ids(const Visit& visit) {
  for (const FeatureSection& each : header_.features) {
    if (each.feature != static_cast<std::uint32_t>(Feature::build_id)) {
      continue;
    }
    std::span<const std::byte> rest = bytes_of(file_, each.section);
    while (!rest.empty()) {
      const Place place{static_cast<std::uint64_t>(rest.data() - file_.data()), false};
      const std::size_t size = header_of(rest, header_.order).bytes;
      // Files do not set its type, so it is not checked.
      const auto decoded = size < header_bytes || size > rest.size()
                               ? corrupt_at(place, header_build_id, "it reaches beyond the feature's end")
                               : decode_build_id(rest.first(size), header_.order, place);
      if (!decoded) {
        damaged_.push_back(decoded.error().message);
        break;
      }
      if (Result<void> visited = visit(*decoded); !visited) {
        return visited;
      }
      rest = rest.subspan(size);
    }
  }
  return {};
}

std::uint64_t Reader::trailing_bytes(std::span<const std::byte> record) {
  const RecordHeader head = header_of(record, header_.order);
  ByteCursor body(record.subspan(header_bytes), header_.order);
  if (head.type == header_tracing_data) {
    return rounded_up(body.take<std::uint32_t>());
  }
  if (head.type == auxtrace) {
    const auto bytes = body.take<std::uint64_t>();
    summary_.auxtrace_bytes += bytes;
    return bytes;
  }
  return 0;
}

Result<void> Reader::take(std::span<const std::byte> bytes, const Place& place, bool keep) {
  const RecordHeader head = header_of(bytes, header_.order);
  ++summary_.records;
  if (head.type >= user_record_first) {
    return take_of_perf(bytes, place);
  }
  const std::uint64_t time_ns = time_of_record(bytes, header_.order, events_);
  if (time_ns == 0 || time_ns == UINT64_MAX) {
    return hand_on(bytes, place);
  }
  return queue_.put(time_ns, place, bytes, keep,
                    [this](const QueuedRecord& queued) { return hand_on(queued.bytes, queued.place); });
}

Result<void> Reader::take_of_perf(std::span<const std::byte> bytes, const Place& place) {
  const RecordHeader head = header_of(bytes, header_.order);
  Result<void> result;
  switch (head.type) {
    case header_attribute:
      result = add_event(bytes);
      break;
    case event_update:
      result = update_event(bytes);
      break;
    case header_feature: {
      ByteCursor body(bytes.subspan(header_bytes), header_.order);
      const auto feature = body.take<std::uint64_t>();
      if (!body.whole() || feature > UINT32_MAX) {
        result = fail(ErrorCode::corrupt, "it does not say which feature it is");
        break;
      }
      take_feature(static_cast<std::uint32_t>(feature), body.take_bytes(body.rest()));
      if (feature == static_cast<std::uint64_t>(Feature::event_description)) {
        name_events();
      }
      break;
    }
    case finished_round:
      return queue_.end_round([this](const QueuedRecord& queued) { return hand_on(queued.bytes, queued.place); });
    case compressed:
    case compressed2:
      if (!place.decompressed) {
        return decompress(bytes, place);
      }
      result = fail(ErrorCode::corrupt, "a compressed record holds another");
      break;
    default:
      return hand_on(bytes, place);
  }
  if (!result) {
    return corrupt_at(place, head.type, result.error().message);
  }
  return {};
}

Result<void> Reader::add_event(std::span<const std::byte> record) {
  ByteCursor body(record.subspan(header_bytes), header_.order);
  const Result<Attribute> attribute = take_attribute(body, body.rest());
  if (!attribute) {
    return tl::unexpected<Error>(attribute.error());
  }
  return events_.add(*attribute, body.take_words(body.rest() / sizeof(std::uint64_t)));
}

Result<void> Reader::update_event(std::span<const std::byte> record) {
  constexpr std::uint64_t name = 2;
  ByteCursor body(record.subspan(header_bytes), header_.order);
  const auto kind = body.take<std::uint64_t>();
  const auto event = events_.of_id(body.take<std::uint64_t>());
  if (!body.whole()) {
    return fail(ErrorCode::corrupt, "it is cut off");
  }
  if (kind == name && event) {
    events_.rename(*event, body.take_text(body.rest()));
  }
  return {};
}

Result<void> Reader::decompress(std::span<const std::byte> bytes, const Place& place) {
  const RecordHeader head = header_of(bytes, header_.order);
  ByteCursor body(bytes.subspan(header_bytes), header_.order);
  // The second kind says how much of it is data, so that it can be padded.
  const std::uint64_t size = head.type == compressed2 ? body.take<std::uint64_t>() : body.rest();
  const std::span<const std::byte> piece = body.take_bytes(size);
  if (!body.whole()) {
    return corrupt_at(place, head.type, "its data do not fit into its " + std::to_string(head.bytes) + " bytes");
  }
  Result<void> inside;  // errors of records name their own place
  const Result<void> added = decompressor_.add(piece, [&](std::span<const std::byte> record) {
    inside = take(record, {place.offset, true}, true);
    return inside;
  });
  if (!inside) {
    return inside;
  }
  if (!added) {
    return corrupt_at(place, head.type, added.error().message);
  }
  return {};
}

Result<void> Reader::hand_on(std::span<const std::byte> bytes, const Place& place) {
  const Result<Record> record = decode_record(bytes, header_.order, events_, place);
  if (!record) {
    return tl::unexpected<Error>(record.error());
  }
  summary_.samples += std::holds_alternative<Sample>(record->content) ? 1 : 0;
  summary_.unknown_samples += std::holds_alternative<UnknownSample>(record->content) ? 1 : 0;
  return (*visit_)(*record);
}

}  // namespace crosstalk::perf_data
