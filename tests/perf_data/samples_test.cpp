// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "collectors/perf_data/record_decoder.h"
#include "tests/perf_data/file_bytes.h"

namespace crosstalk::perf_data::samples_test {
namespace {

Attribute attribute_of(ByteOrder order, const AttributeText& text) {
  const Bytes bytes = attribute(order, text);
  ByteCursor cursor(bytes.all(), order);
  const Result<Attribute> taken = take_attribute(cursor, bytes.size());
  EXPECT_TRUE(taken.has_value());
  EXPECT_EQ(cursor.rest(), 0U);
  return taken.value_or(Attribute{});
}

struct Decoded {
  Identity identity;
  std::optional<Sample> sample;
};

Decoded decode(const Bytes& fields, const AttributeText& text) {
  Decoded decoded;
  decoded.sample =
      decode_sample(ByteCursor(fields.all(), fields.order()), attribute_of(fields.order(), text), decoded.identity);
  return decoded;
}

TEST(PerfAttribute, FieldsAreTheSameInBothByteOrders) {
  for (const ByteOrder order : both_orders) {
    AttributeText text;
    text.type = PERF_TYPE_RAW;
    text.config = 0x1cd;
    text.read_format = PERF_FORMAT_LOST;
    text.branch_type = PERF_SAMPLE_BRANCH_HW_INDEX;
    text.registers_user = 0xff0fff;
    text.registers_interrupted = 0x1ff;
    text.flags = 1U | 1U << 5U | frequency | 2U << 15U | sample_id_all | 1U << 25U;
    const Attribute attribute = attribute_of(order, text);
    EXPECT_EQ(attribute.type, static_cast<std::uint32_t>(PERF_TYPE_RAW));
    EXPECT_EQ(attribute.config, 0x1cdU);
    EXPECT_EQ(attribute.config1, 1U);
    EXPECT_EQ(attribute.period_or_frequency, 4000U);
    EXPECT_EQ(attribute.sample_type, text.sample_type);
    EXPECT_EQ(attribute.read_format, static_cast<std::uint64_t>(PERF_FORMAT_LOST));
    EXPECT_EQ(attribute.branch_sample_type, text.branch_type);
    EXPECT_EQ(attribute.registers_user, text.registers_user);
    EXPECT_EQ(attribute.registers_interrupted, text.registers_interrupted);
    EXPECT_EQ(attribute.flags, text.flags);
    EXPECT_TRUE(attribute.is_frequency() && attribute.all_have_ids());
    EXPECT_EQ(attribute.precision(), 2U);
  }
}

TEST(PerfAttribute, OneOfTheFirstVersionLacksFields) {
  AttributeText text;
  text.bytes = 64;
  const Attribute attribute = attribute_of(ByteOrder::little, text);
  EXPECT_EQ(attribute.config1, 1U);
  EXPECT_EQ(attribute.branch_sample_type, 0U);
}

TEST(PerfAttribute, SizesAreNotTrusted) {
  for (const std::uint32_t size : {1U, 63U, 137U, 0xffffffffU}) {
    Bytes bytes = attribute(ByteOrder::little, {});
    std::memcpy(bytes.data().data() + 4, &size, sizeof size);
    ByteCursor cursor(bytes.all(), ByteOrder::little);
    const auto taken = take_attribute(cursor, bytes.size());
    ASSERT_FALSE(taken) << size;
    EXPECT_NE(taken.error().message.find(std::to_string(size)), std::string::npos) << taken.error().message;
  }
}

TEST(PerfAttribute, AnEventWithoutANameHasPerfsName) {
  Attribute attribute;
  EXPECT_EQ(name_of(attribute), "cycles");
  attribute.config = 0x400000000;  // of a hybrid's big cores
  EXPECT_EQ(name_of(attribute), "cycles");
  attribute.type = PERF_TYPE_SOFTWARE;
  attribute.config = PERF_COUNT_SW_TASK_CLOCK;
  EXPECT_EQ(name_of(attribute), "task-clock");
  attribute.type = PERF_TYPE_RAW;
  attribute.config = 0x1cd;
  EXPECT_EQ(name_of(attribute), "r1cd");
  attribute.type = 9;
  EXPECT_EQ(name_of(attribute), "type 9, config 0x1cd");
}

TEST(PerfSamples, FieldsComeInTheKernelsOrder) {
  for (const ByteOrder order : both_orders) {
    AttributeText text;
    text.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                       PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                       PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |
                       PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
    Bytes fields(order);
    fields.words({5, 0x401000}).u32(10).u32(11).words({1000, 0x7000, 5, 6}).u32(3).u32(0);
    fields.words({77, 300, 0x68100142, 8, 9, 12, 4096, 8192});
    const auto [identity, sample] = decode(fields, text);
    ASSERT_TRUE(sample);
    EXPECT_EQ(identity.pid, 10);
    EXPECT_EQ(identity.tid, 11);
    EXPECT_EQ(identity.time_ns, 1000U);
    EXPECT_EQ(identity.cpu, 3U);
    EXPECT_EQ(sample->ip, 0x401000U);
    EXPECT_EQ(sample->address, 0x7000U);
    EXPECT_EQ(sample->period, 77U);
    EXPECT_EQ(sample->weight, 300U);
    EXPECT_EQ(sample->data_source, 0x68100142U);
  }
}

// The kernel's union is laid out so that the 64 bits have the same meaning in both byte orders.
TEST(PerfSamples, TheFirstPartOfAWeightInThreePartsIsTaken) {
  for (const ByteOrder order : both_orders) {
    AttributeText text;
    text.sample_type = PERF_SAMPLE_WEIGHT_STRUCT;
    Bytes fields(order);
    fields.u64(std::uint64_t{7} << 48U | std::uint64_t{9} << 32U | 0xfffffff0U);
    const auto [identity, sample] = decode(fields, text);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->weight, 0xfffffff0U);
  }
}

TEST(PerfSamples, ThePeriodIsTheEventsWhereItDoesNotSay) {
  AttributeText text;
  text.sample_type = PERF_SAMPLE_IP;
  text.period = 10009;
  const Bytes fields = Bytes(ByteOrder::little).u64(1);
  EXPECT_EQ(decode(fields, text).sample->period, 10009U);
  text.flags |= frequency;  // then 10009 is no period
  EXPECT_EQ(decode(fields, text).sample->period, 0U);
}

struct WordsOfRead {
  std::uint64_t format;
  std::size_t words;
};

TEST(PerfSamples, CountsHaveTheFormatsLength) {
  constexpr std::uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  for (const ByteOrder order : both_orders) {
    for (const auto& [format, words] :
         {WordsOfRead{0, 1}, WordsOfRead{PERF_FORMAT_ID, 2}, WordsOfRead{times, 3},
          WordsOfRead{times | PERF_FORMAT_ID | PERF_FORMAT_LOST, 5}, WordsOfRead{PERF_FORMAT_GROUP, 3},
          WordsOfRead{PERF_FORMAT_GROUP | times | PERF_FORMAT_ID | PERF_FORMAT_LOST, 9}}) {
      AttributeText text;
      text.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_DATA_SRC;
      text.read_format = format;
      Bytes fields(order);
      fields.u64(2);  // of a group: its counters
      for (std::size_t i = 1; i < words; ++i) {
        fields.u64(i);
      }
      fields.u64(99);
      const auto [identity, sample] = decode(fields, text);
      ASSERT_TRUE(sample) << format;
      EXPECT_EQ(sample->data_source, 99U) << format;
    }
  }
}

TEST(PerfSamples, ArraysSayTheirLengthThemselves) {
  for (const ByteOrder order : both_orders) {
    AttributeText text;
    text.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
                       PERF_SAMPLE_STACK_USER | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX;
    text.branch_type = PERF_SAMPLE_BRANCH_HW_INDEX | std::uint64_t{1} << 19U;  // with counters
    text.registers_user = 0x5;
    text.registers_interrupted = 0x7;
    Bytes fields(order);
    fields.words({3, PERF_CONTEXT_USER, 0x401000, 0x402000});
    fields.u32(4).raw("rawb");
    fields.words({2, 55}).words({1, 2, 3, 4, 5, 6}).words({70, 71});
    fields.words({PERF_SAMPLE_REGS_ABI_64, 100, 102});
    fields.u64(16).raw("0123456789abcdef").u64(10);
    fields.u64(42);
    fields.words({PERF_SAMPLE_REGS_ABI_64, 200, 201, 202});
    fields.u64(8).raw("auxtrace");
    const auto [identity, sample] = decode(fields, text);
    ASSERT_TRUE(sample);
    ASSERT_EQ(sample->call_chain.size(), 3U);
    EXPECT_EQ(sample->call_chain[2], 0x402000U);
    EXPECT_EQ(sample->user.mask, 5U);
    ASSERT_EQ(sample->user.values.size(), 2U);
    EXPECT_EQ(sample->user.values[1], 102U);
    EXPECT_EQ(sample->data_source, 42U);
    ASSERT_EQ(sample->interrupted.values.size(), 3U);
    EXPECT_EQ(sample->interrupted.values[2], 202U);
  }
}

TEST(PerfSamples, AThreadOfTheKernelHasNoRegistersAndNoStack) {
  AttributeText text;
  text.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_DATA_SRC;
  text.registers_user = 0xff0fff;
  const auto [identity, sample] = decode(Bytes(ByteOrder::little).words({PERF_SAMPLE_REGS_ABI_NONE, 0, 42}), text);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->user.abi, 0U);
  EXPECT_TRUE(sample->user.values.empty());
  EXPECT_EQ(sample->data_source, 42U);
}

TEST(PerfSamples, NoLengthIsTrusted) {
  const std::uint64_t fields_with_lengths[] = {PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_STACK_USER,
                                               PERF_SAMPLE_AUX, PERF_SAMPLE_READ};
  for (const std::uint64_t field : fields_with_lengths) {
    for (const std::uint64_t length :
         {std::uint64_t{9}, std::uint64_t{1} << 32U, std::uint64_t{1} << 61U, UINT64_MAX / 3, UINT64_MAX}) {
      AttributeText text;
      text.sample_type = field;
      text.read_format = PERF_FORMAT_GROUP;
      const Bytes fields = Bytes(ByteOrder::little).words({length, 1});
      EXPECT_FALSE(decode(fields, text).sample) << field << " " << length;
    }
  }
  AttributeText text;
  text.sample_type = PERF_SAMPLE_RAW;
  EXPECT_FALSE(decode(Bytes(ByteOrder::little).u32(0xffffffff).u32(0), text).sample);
}

}  // namespace
}  // namespace crosstalk::perf_data::samples_test
