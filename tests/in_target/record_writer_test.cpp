// SPDX-License-Identifier: Apache-2.0
// Records on their way into a thread's ring, read back as the recorder reads them (fake_kernel.h).
#include "collectors/in_target/core/record_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/ring.h"
#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::record_writer_test {
namespace {

profile::Message message(const char* code) {
  profile::Message record;
  record.header.type = profile::RecordType::message;
  record.time_ns = 77;
  std::strncpy(record.code, code, sizeof record.code - 1);
  return record;
}

class RecordWriter : public testing::Test {
 protected:
  bool append_text(const std::string& text) {
    const profile::Message record = message("code");
    return append(self_, &record, sizeof record, text.data(), text.size());
  }
  std::vector<std::byte> only_record() {
    const auto all = kernel_.records(self_);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? std::vector<std::byte>(sizeof(profile::Message)) : all.front();
  }
  static profile::RecordHeader header_of(const std::vector<std::byte>& record) {
    profile::RecordHeader header;
    std::memcpy(&header, record.data(), sizeof header);
    return header;
  }
  static std::string tail_of(const std::vector<std::byte>& record) {
    const auto* text = reinterpret_cast<const char*>(record.data() + sizeof(profile::Message));
    return {text, header_of(record).tail};
  }

  test::FakeKernel kernel_;
  ThreadState& self_ = kernel_.add_thread();
};

TEST_F(RecordWriter, ARecordComesOutAsItWentInWithItsSizes) {
  ASSERT_TRUE(append_text("words"));
  const auto record = only_record();
  EXPECT_EQ(header_of(record).type, profile::RecordType::message);
  EXPECT_EQ(header_of(record).tail, 5U);
  EXPECT_EQ(header_of(record).size, profile::record_bytes(sizeof(profile::Message), 5));
  EXPECT_EQ(record.size(), header_of(record).size);
  profile::Message out;
  std::memcpy(&out, record.data(), sizeof out);
  EXPECT_EQ(out.time_ns, 77U);
  EXPECT_STREQ(out.code, "code");
  EXPECT_EQ(tail_of(record), "words");
}

TEST_F(RecordWriter, ATailIsOptional) {
  ASSERT_TRUE(append_text(""));
  EXPECT_EQ(header_of(only_record()).tail, 0U);
}

TEST_F(RecordWriter, RecordsFollowEachOtherWhateverTheirTails) {
  const std::array<std::string, 4> texts = {"a", "1234567", "12345678", "123456789"};
  for (const std::string& text : texts) {
    ASSERT_TRUE(append_text(text));
  }
  const auto all = kernel_.records(self_);
  ASSERT_EQ(all.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tail_of(all[i]), texts[i]);
  }
}

TEST_F(RecordWriter, AFullRingLosesTheRecordAndCountsIt) {
  const std::string text(60'000, 'x');
  std::uint64_t written = 0;
  while (append_text(text)) {
    ASSERT_LT(++written, 100U);
  }
  const std::size_t size = profile::record_bytes(sizeof(profile::Message), text.size());
  EXPECT_EQ(self_.slot->lost_records.load(), 1U);
  EXPECT_EQ(self_.slot->lost_bytes.load(), size);
  EXPECT_EQ(kernel_.records(self_).size(), written);
  EXPECT_TRUE(append_text(text)) << "there is room again";
}

TEST_F(RecordWriter, ARecordThatNoHeaderCanDescribeIsLost) {
  EXPECT_FALSE(append_text(std::string(profile::max_record_bytes, 'x')));
  EXPECT_EQ(self_.slot->lost_records.load(), 1U);
  EXPECT_TRUE(kernel_.records(self_).empty());
}

TEST_F(RecordWriter, AThreadWithoutARingWritesNothing) {
  self_.ring.detach();
  EXPECT_FALSE(append_text("words"));
  EXPECT_EQ(self_.slot->lost_records.load(), 0U);
}

TEST_F(RecordWriter, WhatIsEmittedGoesIntoTheCallingThreadsRing) {
  ThreadState& other = kernel_.add_thread();
  emit_message("said", "in one line");
  EXPECT_TRUE(kernel_.records(other).empty());
  const auto record = only_record();
  profile::Message out;
  std::memcpy(&out, record.data(), sizeof out);
  EXPECT_STREQ(out.code, "said");
  EXPECT_GT(out.time_ns, 0U);
  EXPECT_EQ(tail_of(record), "in one line");
}

TEST_F(RecordWriter, ACodeIsCutToItsRoom) {
  emit_message("a_code_that_is_quite_a_lot_longer_than_its_room", "");
  const auto record = only_record();
  profile::Message out;
  std::memcpy(&out, record.data(), sizeof out);
  EXPECT_EQ(std::string(out.code), std::string("a_code_that_is_quite_a_lot_longer_than_its_room").substr(0, 31));
}

TEST_F(RecordWriter, NothingIsEmittedInAProcessThatSharesTheMemory) {
  runtime().pid = kernel_process_id() + 1;  // as a vfork child sees it
  const profile::Message record = message("code");
  EXPECT_FALSE(emit(&record, sizeof record, nullptr, 0));
  EXPECT_TRUE(kernel_.records(self_).empty());
}

TEST_F(RecordWriter, NothingIsEmittedByAThreadThatIsNotObserved) {
  registry().remove(self_);
  const profile::Message record = message("code");
  EXPECT_FALSE(emit(&record, sizeof record, nullptr, 0));
}

}  // namespace
}  // namespace crosstalk::in_target::record_writer_test
