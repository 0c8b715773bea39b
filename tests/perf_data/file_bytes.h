// SPDX-License-Identifier: Apache-2.0
// perf.data files made by hand, byte by byte, in either byte order.
#pragma once

#include <linux/perf_event.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_cursor.h"
#include "collectors/perf_data/features.h"
#include "collectors/perf_data/records.h"

namespace crosstalk::perf_data {

class Bytes {
 public:
  explicit Bytes(ByteOrder order) : order_(order) {}

  template <class T>
  Bytes& put(T value) {
    std::byte copy[sizeof value];
    std::memcpy(copy, &value, sizeof value);
    if (order_ == ByteOrder::big) {
      std::reverse(copy, copy + sizeof value);
    }
    data_.insert(data_.end(), copy, copy + sizeof value);
    return *this;
  }
  Bytes& u16(std::uint16_t value) { return put(value); }
  Bytes& u32(std::uint32_t value) { return put(value); }
  Bytes& u64(std::uint64_t value) { return put(value); }
  Bytes& words(std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values) {
      put(value);
    }
    return *this;
  }
  Bytes& add(std::span<const std::byte> bytes) {
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Bytes& add(const Bytes& bytes) { return add(bytes.all()); }
  Bytes& raw(std::string_view bytes) { return add(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  /// With a NUL, and more of them up to a multiple of 8.
  Bytes& text(std::string_view text) {
    raw(text);
    data_.resize(data_.size() + 8 - text.size() % 8);
    return *this;
  }
  /// As in feature sections: the room comes first.
  Bytes& counted(std::string_view content) {
    constexpr std::uint32_t room = 64;
    u32(room).raw(content);
    data_.resize(data_.size() + room - content.size());
    return *this;
  }
  Bytes& zeros(std::size_t count) {
    data_.resize(data_.size() + count);
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> all() const { return data_; }
  [[nodiscard]] std::size_t size() const { return data_.size(); }
  [[nodiscard]] ByteOrder order() const { return order_; }
  [[nodiscard]] std::vector<std::byte>& data() { return data_; }

 private:
  ByteOrder order_;
  std::vector<std::byte> data_;
};

inline Bytes record(std::uint32_t type, std::uint16_t misc, const Bytes& body) {
  Bytes bytes(body.order());
  bytes.u32(type).u16(misc).u16(static_cast<std::uint16_t>(8 + body.size()));
  return bytes.add(body);
}

/// perf_event_attr's bit fields, `bits` counting from `disabled`, as the machine lays them out.
inline void put_flags(Bytes& bytes, std::uint64_t bits) {
  const bool big = bytes.order() == ByteOrder::big;
  std::uint64_t fields = bits;
  if (big) {  // the first field is the highest bit; `precise_ip` has two, the higher first
    fields = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const unsigned at = bit == 15 ? 16 : bit == 16 ? 15 : bit;
      fields |= (bits >> bit & 1U) << (63 - at);
    }
  }
  bytes.u64(fields);
}

inline constexpr std::uint64_t sample_id_all = std::uint64_t{1} << 18U;
inline constexpr std::uint64_t frequency = std::uint64_t{1} << 10U;

struct AttributeText {
  std::uint32_t type = PERF_TYPE_HARDWARE;
  std::uint64_t config = 0;
  std::uint64_t period = 4000;
  std::uint64_t sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID;
  std::uint64_t read_format = 0;
  std::uint64_t flags = sample_id_all;
  std::uint64_t branch_type = 0, registers_user = 0, registers_interrupted = 0;
  std::uint32_t bytes = 136;
};

inline Bytes attribute(ByteOrder order, const AttributeText& text) {
  Bytes bytes(order);
  bytes.u32(text.type).u32(text.bytes);
  bytes.words({text.config, text.period, text.sample_type, text.read_format});
  put_flags(bytes, text.flags);
  bytes.u32(0).u32(0).words({1, 2});  // wakeups, breakpoint, config1, config2
  bytes.words({text.branch_type, text.registers_user});
  bytes.u32(0).u32(7);  // stack, clock
  bytes.u64(text.registers_interrupted);
  bytes.data().resize(text.bytes);
  return bytes;
}

inline Bytes attribute_record(ByteOrder order, const AttributeText& text, std::initializer_list<std::uint64_t> ids) {
  return record(header_attribute, 0, attribute(order, text).words(ids));
}

inline Bytes pipe_file(ByteOrder order) { return Bytes(order).u64(0x32454c4946524550).u64(16); }

struct FeatureText {
  std::uint32_t feature = 0;
  Bytes bytes;
};

/// header, ids, events, data, table of features, features.
inline Bytes data_file(ByteOrder order, const AttributeText& event, std::initializer_list<std::uint64_t> ids,
                       const Bytes& data, const std::vector<FeatureText>& features = {}, bool unfinished = false) {
  constexpr std::uint64_t header_size = 104;
  const Bytes described = attribute(order, event);
  const std::uint64_t ids_at = header_size, ids_bytes = ids.size() * 8;
  const std::uint64_t events_at = ids_at + ids_bytes, events_bytes = described.size() + 16;
  const std::uint64_t data_at = events_at + events_bytes;
  std::uint64_t bits[4] = {};
  for (const FeatureText& each : features) {
    bits[each.feature / 64] |= std::uint64_t{1} << (each.feature % 64);
  }
  Bytes file(order);
  file.words({0x32454c4946524550, header_size, described.size() + 16, events_at, events_bytes, data_at,
              unfinished ? 0 : data.size(), 0, 0, bits[0], bits[1], bits[2], bits[3]});
  file.words(ids).add(described).words({ids_at, ids_bytes}).add(data);
  std::uint64_t at = file.size() + 16 * features.size();
  for (const FeatureText& each : features) {
    file.words({at, each.bytes.size()});
    at += each.bytes.size();
  }
  for (const FeatureText& each : features) {
    file.add(each.bytes);
  }
  return file;
}

/// Pieces of one zstd stream, as perf makes them: each flushed, none ended.
class Compressor {
 public:
  Compressor() : context_(ZSTD_createCCtx()) {}
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() { ZSTD_freeCCtx(context_); }

  std::vector<std::byte> piece(std::span<const std::byte> bytes) {
    std::vector<std::byte> out(ZSTD_compressBound(bytes.size()) + 64);
    ZSTD_inBuffer from{bytes.data(), bytes.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    ZSTD_compressStream2(context_, &to, &from, ZSTD_e_flush);
    out.resize(to.pos);
    return out;
  }

 private:
  ZSTD_CCtx* context_;
};

inline constexpr ByteOrder both_orders[] = {ByteOrder::little, ByteOrder::big};

}  // namespace crosstalk::perf_data
