// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/record_decoder.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <iterator>
#include <string>

namespace crosstalk::perf_data {
namespace {

constexpr std::array<const char*, 23> kernel_names = {"of type 0",
                                                      "MMAP",
                                                      "LOST",
                                                      "COMM",
                                                      "EXIT",
                                                      "THROTTLE",
                                                      "UNTHROTTLE",
                                                      "FORK",
                                                      "READ",
                                                      "SAMPLE",
                                                      "MMAP2",
                                                      "AUX",
                                                      "ITRACE_START",
                                                      "LOST_SAMPLES",
                                                      "SWITCH",
                                                      "SWITCH_CPU_WIDE",
                                                      "NAMESPACES",
                                                      "KSYMBOL",
                                                      "BPF_EVENT",
                                                      "CGROUP",
                                                      "TEXT_POKE",
                                                      "AUX_OUTPUT_HW_ID",
                                                      "CALLCHAIN_DEFERRED"};
constexpr std::array<const char*, 21> user_names = {
    "HEADER_ATTR",   "HEADER_EVENT_TYPE", "HEADER_TRACING_DATA", "HEADER_BUILD_ID", "FINISHED_ROUND", "ID_INDEX",
    "AUXTRACE_INFO", "AUXTRACE",          "AUXTRACE_ERROR",      "THREAD_MAP",      "CPU_MAP",        "STAT_CONFIG",
    "STAT",          "STAT_ROUND",        "EVENT_UPDATE",        "TIME_CONV",       "HEADER_FEATURE", "COMPRESSED",
    "FINISHED_INIT", "COMPRESSED2",       "BPF_METADATA"};

constexpr std::uint64_t fields_at_end = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                        PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

/// Returns the bytes of thread and time at the end of a record that is no sample.
std::size_t identity_bytes(const Attribute& attribute) {
  return attribute.all_have_ids()
             ? static_cast<std::size_t>(std::popcount(attribute.sample_type & fields_at_end)) * word_bytes
             : 0;
}

Identity take_identity(ByteCursor fields, const Attribute& attribute) {
  Identity identity;
  if (attribute.samples(PERF_SAMPLE_TID)) {
    identity.pid = fields.take<std::int32_t>();
    identity.tid = fields.take<std::int32_t>();
  }
  if (attribute.samples(PERF_SAMPLE_TIME)) {
    identity.time_ns = fields.take<std::uint64_t>();
  }
  for (const std::uint64_t unused : {PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID}) {
    if (attribute.samples(unused)) {
      fields.take<std::uint64_t>();
    }
  }
  if (attribute.samples(PERF_SAMPLE_CPU)) {
    identity.cpu = fields.take<std::uint32_t>();
  }
  return identity;
}

Mapping take_mapping(ByteCursor& fields, const RecordHeader& header) {
  Mapping mapping;
  mapping.pid = fields.take<std::int32_t>();
  fields.take<std::int32_t>();  // tid
  mapping.begin = fields.take<std::uint64_t>();
  mapping.bytes = fields.take<std::uint64_t>();
  mapping.file_offset = fields.take<std::uint64_t>();
  mapping.is_data = (header.misc & PERF_RECORD_MISC_MMAP_DATA) != 0;
  if (header.type == PERF_RECORD_MMAP2) {
    if ((header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
      constexpr std::size_t room = 20;
      const std::size_t size = fields.take<std::uint8_t>();
      fields.take_bytes(3);  // reserved
      const std::span<const std::byte> bytes = fields.take_bytes(room);
      mapping.build_id = bytes.first(size < bytes.size() ? size : bytes.size());
    } else {
      fields.take<std::uint64_t>();  // device
      mapping.inode = fields.take<std::uint64_t>();
      mapping.inode_generation = fields.take<std::uint64_t>();
    }
    mapping.protection = fields.take<std::uint32_t>();
    fields.take<std::uint32_t>();  // flags
    mapping.has_protection = true;
  }
  mapping.name = fields.take_text(fields.rest());
  return mapping;
}

Fork take_fork(ByteCursor& fields, const RecordHeader& header) {
  Fork fork;
  fork.pid = fields.take<std::int32_t>();
  fork.parent_pid = fields.take<std::int32_t>();
  fork.tid = fields.take<std::int32_t>();
  fork.parent_tid = fields.take<std::int32_t>();
  fields.take<std::uint64_t>();  // time
  fork.exec = (header.misc & PERF_RECORD_MISC_FORK_EXEC) != 0;
  return fork;
}

Comm take_comm(ByteCursor& fields, const RecordHeader& header) {
  Comm comm;
  comm.pid = fields.take<std::int32_t>();
  comm.tid = fields.take<std::int32_t>();
  comm.name = fields.take_text(fields.rest());
  comm.exec = (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  return comm;
}

/// After `unused` bytes.
Lost take_lost(ByteCursor& fields, std::size_t unused) {
  fields.take_bytes(unused);
  return {fields.take<std::uint64_t>()};
}

Content take_content(ByteCursor& fields, const RecordHeader& header) {
  switch (header.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return take_mapping(fields, header);
    case PERF_RECORD_COMM:
      return take_comm(fields, header);
    case PERF_RECORD_FORK:
      return take_fork(fields, header);
    case PERF_RECORD_EXIT: {  // laid out as a fork
      const Fork ended = take_fork(fields, header);
      return Exit{ended.pid, ended.tid};
    }
    case PERF_RECORD_LOST:
      return take_lost(fields, word_bytes);  // the event's id
    case PERF_RECORD_LOST_SAMPLES:
      return take_lost(fields, 0);
    case PERF_RECORD_THROTTLE:
      return Throttle{};
    default:
      return Other{};
  }
}

BuildId take_build_id(ByteCursor& fields, const RecordHeader& header) {
  constexpr std::uint16_t has_size = 1U << 15U;  // else the usual 20
  constexpr std::size_t usual = 20;
  BuildId id;
  id.pid = fields.take<std::int32_t>();
  const std::span<const std::byte> bytes = fields.take_bytes(usual);
  const std::size_t size = fields.take<std::uint8_t>();
  fields.take_bytes(3);  // reserved
  id.bytes = bytes.first((header.misc & has_size) != 0 && size < bytes.size() ? size : bytes.size());
  id.name = fields.take_text(fields.rest());
  id.of_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
  return id;
}

Result<Record> decode_kernel_record(const RecordHeader& header, ByteCursor body, WordView words, const Events& events,
                                    Record record) {
  const bool is_sample = header.type == PERF_RECORD_SAMPLE;
  const auto event = events.of_record(is_sample, words);
  if (is_sample) {
    if (events.empty()) {
      return corrupt_at(record.place, header.type, "no event was described before it");
    }
    if (!event) {
      const std::size_t at = *words_before_id(events.list().front().attribute);
      if (at >= words.size()) {
        return corrupt_at(record.place, header.type, "it is too short for its event's id");
      }
      record.content = UnknownSample{words[at]};
      return record;
    }
    auto sample = decode_sample(body, events.list()[*event].attribute, record.identity);
    if (!sample) {
      return corrupt_at(record.place, header.type,
                        "its fields do not fit into its " + std::to_string(header.bytes) + " bytes");
    }
    sample->event = *event;
    record.content = *sample;
    return record;
  }
  const std::size_t at_end = event ? identity_bytes(events.list()[*event].attribute) : 0;
  if (at_end > body.rest()) {
    return corrupt_at(record.place, header.type, "it is too short to say who and when");
  }
  ByteCursor fields(body.take_bytes(body.rest() - at_end), body.order());
  if (event && at_end > 0) {
    record.identity = take_identity(body, events.list()[*event].attribute);
  }
  record.content = take_content(fields, header);
  if (!fields.whole()) {
    return corrupt_at(record.place, header.type,
                      "its fields do not fit into its " + std::to_string(header.bytes) + " bytes");
  }
  return record;
}

}  // namespace

std::string record_name(std::uint32_t type) {
  if (type > 0 && type < kernel_names.size()) {
    return kernel_names[type];
  }
  if (type >= user_record_first && type - user_record_first < user_names.size()) {
    return user_names[type - user_record_first];
  }
  return "of type " + std::to_string(type);
}

std::string place_in_words(const Place& place, std::uint32_t type) {
  char text[32];
  std::snprintf(text, std::size(text), "0x%llx", static_cast<unsigned long long>(place.offset));
  return std::string("at offset ") + text +
         (place.decompressed ? ", in the compressed record there, record " : ", record ") + record_name(type);
}

tl::unexpected<Error> corrupt_at(const Place& place, std::uint32_t type, const std::string& what) {
  return fail(ErrorCode::corrupt, place_in_words(place, type) + ": " + what);
}

RecordHeader header_of(std::span<const std::byte> bytes, ByteOrder order) {
  ByteCursor fields(bytes, order);
  RecordHeader header;
  header.type = fields.take<std::uint32_t>();
  header.misc = fields.take<std::uint16_t>();
  header.bytes = fields.take<std::uint16_t>();
  return header;
}

Result<Record> decode_record(std::span<const std::byte> bytes, ByteOrder order, const Events& events,
                             const Place& place) {
  Record record;
  record.place = place;
  if (bytes.size() < header_bytes) {
    return corrupt_at(place, 0, "it is cut off");
  }
  const RecordHeader header = header_of(bytes, order);
  record.type = header.type;
  record.misc = header.misc;
  const std::span<const std::byte> rest = bytes.subspan(header_bytes);
  ByteCursor body(rest, order);
  if (header.type < user_record_first) {
    return decode_kernel_record(header, body, WordView(rest, order), events, record);
  }
  return header.type == header_build_id ? decode_build_id(bytes, order, place) : Result<Record>(record);
}

Result<Record> decode_build_id(std::span<const std::byte> bytes, ByteOrder order, const Place& place) {
  const RecordHeader header = header_of(bytes, order);
  ByteCursor body(bytes.subspan(std::min(bytes.size(), header_bytes)), order);
  Record record;
  record.place = place;
  record.type = header_build_id;
  record.misc = header.misc;
  record.content = take_build_id(body, header);
  if (!body.whole()) {
    return corrupt_at(place, header_build_id,
                      "its fields do not fit into its " + std::to_string(header.bytes) + " bytes");
  }
  return record;
}

std::uint64_t time_of_record(std::span<const std::byte> bytes, ByteOrder order, const Events& events) {
  if (bytes.size() < header_bytes) {
    return 0;
  }
  const bool is_sample = header_of(bytes, order).type == PERF_RECORD_SAMPLE;
  const WordView words(bytes.subspan(header_bytes), order);
  const auto event = events.of_record(is_sample, words);
  if (!event) {
    return 0;
  }
  const Attribute& attribute = events.list()[*event].attribute;
  if (!attribute.samples(PERF_SAMPLE_TIME) || (!is_sample && !attribute.all_have_ids())) {
    return 0;
  }
  constexpr std::uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
  constexpr std::uint64_t behind = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
  const auto apart = static_cast<std::size_t>(std::popcount(attribute.sample_type & (is_sample ? before : behind)));
  return apart < words.size() ? words[is_sample ? apart : words.size() - 1 - apart] : 0;
}

}  // namespace crosstalk::perf_data
