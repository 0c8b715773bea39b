// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/file_header.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

namespace crosstalk::perf_data {
namespace {

constexpr std::uint64_t magic = 0x32454c4946524550;        // "PERFILE2", in the writer's byte order
constexpr std::uint64_t first_magic = 0x454c494646524550;  // "PERFFILE", always: of perf before 2.6.38
constexpr std::uint64_t pipe_header_bytes = 16;
constexpr std::uint64_t header_bytes_least = 104;
constexpr unsigned hostname_bit = 3;

Section take_section(ByteCursor& fields) {
  Section section;
  section.offset = fields.take<std::uint64_t>();
  section.bytes = fields.take<std::uint64_t>();
  return section;
}

tl::unexpected<Error> outside(const char* what, const Section& section, std::size_t file_bytes) {
  char text[160];
  std::snprintf(text, std::size(text), "%s is at offset 0x%llx, 0x%llx bytes, and the file has 0x%llx", what,
                static_cast<unsigned long long>(section.offset), static_cast<unsigned long long>(section.bytes),
                static_cast<unsigned long long>(file_bytes));
  return fail(ErrorCode::corrupt, text);
}

using FeatureBits = std::array<std::uint64_t, 4>;

bool has(const FeatureBits& bits, unsigned feature) { return (bits[feature / 64] >> (feature % 64) & 1U) != 0; }

/// A bit field of longs: 32-bit machines of the other byte order have the halves of each word the other way round. All
/// files have the name of their host, which tells.
FeatureBits take_feature_bits(ByteCursor& fields) {
  FeatureBits bits{};
  for (std::uint64_t& word : bits) {
    word = fields.take<std::uint64_t>();
  }
  if (fields.order() == ByteOrder::big && !has(bits, hostname_bit)) {
    FeatureBits halves = bits;
    for (std::uint64_t& word : halves) {
      word = word << 32U | word >> 32U;
    }
    return has(halves, hostname_bit) ? halves : bits;
  }
  return bits;
}

/// Reads the table of the features' sections, which follows the data. Leaves out sections that a shortened file does
/// not have any more.
void read_features(std::span<const std::byte> file, const FeatureBits& bits, FileHeader& header) {
  constexpr std::uint64_t section_bytes = 16;
  constexpr unsigned most = 256;
  std::uint64_t at = header.data.offset + header.data.bytes;
  for (unsigned feature = 0; feature < most; ++feature) {
    if (!has(bits, feature)) {
      continue;
    }
    const Section entry{at, section_bytes};
    if (!within(entry, file.size())) {
      header.cut_off = true;
      return;
    }
    ByteCursor fields(bytes_of(file, entry), header.order);
    const Section section = take_section(fields);
    at += section_bytes;
    if (within(section, file.size())) {
      header.features.push_back({feature, section});
    } else {
      header.cut_off = true;
    }
  }
}

/// The command that unpacks a file that was packed as a whole; null: it was not.
const char* unpacker_of(std::span<const std::byte> file) {
  struct Packer {
    std::string_view begin;
    const char* command;
  };
  constexpr std::array packers{Packer{"\x1f\x8b", "gunzip"}, Packer{"\3757zXZ", "unxz"},
                               Packer{"\x28\xb5\x2f\xfd", "unzstd"}, Packer{"BZh", "bunzip2"}};
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto* const found =
      std::ranges::find_if(packers, [&](const Packer& packer) { return text.starts_with(packer.begin); });
  return found != packers.end() ? found->command : nullptr;
}

Result<ByteOrder> byte_order_of(std::span<const std::byte> file) {
  if (file.size() < pipe_header_bytes) {
    return fail(ErrorCode::corrupt,
                "it has " + std::to_string(file.size()) + " bytes, which is too short for a perf.data file");
  }
  if (integer_at<std::uint64_t>(file.data(), ByteOrder::little) == magic) {
    return ByteOrder::little;
  }
  if (integer_at<std::uint64_t>(file.data(), ByteOrder::big) == magic) {
    return ByteOrder::big;
  }
  if (integer_at<std::uint64_t>(file.data(), ByteOrder::little) == first_magic) {
    return fail(ErrorCode::unsupported,
                "it is of a perf before 2.6.38, whose format is not known here; record again with a newer perf");
  }
  if (const char* unpacker = unpacker_of(file); unpacker != nullptr) {
    return fail(ErrorCode::unsupported, std::string("it is packed; unpack it first: ") + unpacker);
  }
  return fail(ErrorCode::corrupt, "it does not begin with PERFILE2, so it is no perf.data file");
}

}  // namespace

Result<FileHeader> read_file_header(std::span<const std::byte> file) {
  const Result<ByteOrder> order = byte_order_of(file);
  if (!order) {
    return tl::unexpected<Error>(order.error());
  }
  FileHeader header;
  header.order = *order;
  ByteCursor fields(file, *order);
  fields.take<std::uint64_t>();
  const auto bytes = fields.take<std::uint64_t>();
  if (bytes == pipe_header_bytes) {
    header.pipe = true;
    header.data = {pipe_header_bytes, file.size() - pipe_header_bytes};
    return header;
  }
  if (bytes < header_bytes_least || file.size() < header_bytes_least) {
    return fail(ErrorCode::corrupt, "its header of " + std::to_string(bytes) + " bytes is too short or cut off");
  }
  header.attribute_bytes = fields.take<std::uint64_t>();
  header.attributes = take_section(fields);
  header.data = take_section(fields);
  take_section(fields);  // names of tracepoints, in files before 3.0
  const FeatureBits bits = take_feature_bits(fields);
  if (!within(header.attributes, file.size())) {
    return outside("the list of events", header.attributes, file.size());
  }
  if (header.data.bytes == 0 && header.data.offset <= file.size()) {  // perf fills it in at its end
    header.data.bytes = file.size() - header.data.offset;
    return header;
  }
  if (header.data.offset > file.size()) {
    return outside("the data", header.data, file.size());
  }
  if (!within(header.data, file.size())) {
    header.cut_off = true;
    header.data.bytes = file.size() - header.data.offset;
    return header;
  }
  read_features(file, bits, header);
  return header;
}

}  // namespace crosstalk::perf_data
