// SPDX-License-Identifier: Apache-2.0
// Exports, read back by another decoder (protozero's reader) and by zlib.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attribution/model/stack_model.h"
#include "driver/export/collapsed.h"
#include "driver/export/gzip.h"
#include "driver/export/pprof.h"
#include "driver/options/export_options.h"

namespace crosstalk::driver::export_test {
namespace {

using attribution::CallersFrom;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

symbolizer::Frame frame(std::string function, std::string file, std::uint32_t line, bool inlined = false) {
  return {std::move(function), {std::move(file), line}, inlined};
}

/// Two threads: one computes, is in the kernel and unsampled; the other pays for communication.
attribution::Analysis an_analysis() {
  attribution::Analysis analysis;
  analysis.session.command = "./app 'a b'";
  analysis.session.version = "1.2.3";
  analysis.session.begin_unix_ns = 1'795'000'000'123'456'789;
  analysis.session.config.period_ns = 4'000'000;
  analysis.duration_s = 2.5;
  analysis.sampling.source = "clock";
  analysis.sampling.method = "watch";
  analysis.sampling.estimator = "post_stratified";
  analysis.warnings = {{"code", "a warning"}};
  analysis.processes.resize(1);
  analysis.processes[0].executable = "/bin/app";
  analysis.processes[0].command = "./app";
  for (std::uint32_t i = 0; i < 2; ++i) {
    attribution::ThreadSummary thread;
    thread.index = i;
    thread.pid = 70;
    thread.tid = static_cast<std::int32_t>(70 + i);
    thread.name = i == 0 ? "main" : "pay;er\n";
    analysis.threads.push_back(thread);
  }
  attribution::WeightedStacks stacks;
  stacks.files = {{"/bin/app", "abcd", 0x1000, 0x3000, 0x1000}, {"/lib/libc.so.6", "", 0x7000, 0x9000, 0}};
  stacks.places = {{0, 0x1100, {frame("hot", "/app.cpp", 7, true), frame("work(int)", "/app.cpp", 20)}, 18, false},
                   {0, 0x1200, {frame("main", "/app.cpp", 40)}, 38, false},
                   {1, 0x7100, {frame("libc.so.6+0x100", "", 0)}, 0, false},
                   {attribution::StackPlace::no_file, 0, {frame("[not sampled]", "", 0)}, 0, false},
                   {attribution::StackPlace::no_file, 0, {frame("futex", "", 0)}, 0, true}};
  stacks.objects = {"counters", "queue"};
  stacks.time = {{0, {0, 1}, CallersFrom::sample, 3, 12'000'000},
                 {0, {0, 1}, CallersFrom::alike, 0, 4'000'000},  // less than half of a sample
                 {0, {3}, CallersFrom::unknown, 0, 400},
                 {1, {4, 2, 1}, CallersFrom::unknown, 2, 8'000'000}};
  stacks.communication = {{1, 0, {0, 1}, CallersFrom::sample, 1, true, 0.5, 0.25, true},
                          {1, 0, {0, 1}, CallersFrom::alike, 0, false, 0.125, 0, false}};
  analysis.stacks = std::make_shared<const attribution::WeightedStacks>(std::move(stacks));
  return analysis;
}

/// The fields of a message by number: numbers, and bytes of messages and strings.
struct Message {
  explicit Message(const std::string& data) {
    protozero::pbf_reader reader(data);
    while (reader.next()) {
      if (reader.wire_type() == protozero::pbf_wire_type::varint) {
        numbers[reader.tag()].push_back(reader.get_int64());
      } else {
        bytes[reader.tag()].push_back(reader.get_string());
      }
    }
  }
  [[nodiscard]] std::int64_t number(std::uint32_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second.at(0);
  }
  [[nodiscard]] std::vector<std::int64_t> packed(std::uint32_t field) const {
    std::vector<std::int64_t> values;
    const std::string data = bytes.at(field).at(0);
    const char* at = data.data();
    while (at != data.data() + data.size()) {
      values.push_back(static_cast<std::int64_t>(protozero::decode_varint(&at, data.data() + data.size())));
    }
    return values;
  }
  std::map<std::uint32_t, std::vector<std::int64_t>> numbers;
  std::map<std::uint32_t, std::vector<std::string>> bytes;
};

constexpr std::uint32_t sample_type = 1, sample = 2, mapping = 3, location = 4, function = 5, string_table = 6;

class PprofTest : public testing::Test {
 protected:
  [[nodiscard]] const std::string& text(std::int64_t number) const {
    return profile_.bytes.at(string_table).at(static_cast<std::size_t>(number));
  }
  /// "type/unit" of each.
  [[nodiscard]] std::vector<std::string> types() const {
    std::vector<std::string> names;
    for (const std::string& data : profile_.bytes.at(sample_type)) {
      names.push_back(text(Message(data).number(1)) + "/" + text(Message(data).number(2)));
    }
    return names;
  }
  [[nodiscard]] std::map<std::string, std::string> labels(std::size_t row) const {
    std::map<std::string, std::string> found;
    const Message stack(profile_.bytes.at(sample).at(row));
    for (const std::string& data : stack.bytes.at(3)) {
      found[text(Message(data).number(1))] = text(Message(data).number(2));
    }
    return found;
  }

  Message profile_{encode_pprof(an_analysis())};
};

TEST_F(PprofTest, HasAllQuantities) {
  EXPECT_THAT(types(), ElementsAre("samples/count", "cpu/nanoseconds", "communication/nanoseconds",
                                   "communication_gain/nanoseconds"));
  EXPECT_EQ(text(profile_.number(14)), "cpu");
  const auto& samples = profile_.bytes.at(sample);
  ASSERT_EQ(samples.size(), 6U);
  EXPECT_THAT(Message(samples[0]).packed(1), ElementsAre(1, 2));
  EXPECT_THAT(Message(samples[0]).packed(2), ElementsAre(3, 12'000'000, 0, 0));
  EXPECT_THAT(Message(samples[4]).packed(2), ElementsAre(0, 0, 500'000'000, 250'000'000));
}

TEST_F(PprofTest, HasNoCommunicationThatIsNotKnown) {
  attribution::Analysis analysis = an_analysis();
  attribution::WeightedStacks stacks = *analysis.stacks;
  stacks.communication.erase(stacks.communication.begin());  // the one whose gain is known
  analysis.stacks = std::make_shared<const attribution::WeightedStacks>(stacks);
  profile_ = Message(encode_pprof(analysis));
  EXPECT_THAT(types(), ElementsAre("samples/count", "cpu/nanoseconds", "communication/nanoseconds"));
  EXPECT_THAT(Message(profile_.bytes.at(sample).back()).packed(2), ElementsAre(0, 0, 125'000'000));
  stacks.communication.clear();
  analysis.stacks = std::make_shared<const attribution::WeightedStacks>(stacks);
  profile_ = Message(encode_pprof(analysis));
  EXPECT_THAT(types(), ElementsAre("samples/count", "cpu/nanoseconds"));
}

TEST_F(PprofTest, LabelsNameThreadPartnerAndObject) {
  EXPECT_THAT(labels(0), ElementsAre(Pair("callers", "sampled"), Pair("pid", "70"), Pair("process", "app"),
                                     Pair("thread", "main"), Pair("tid", "70")));
  EXPECT_THAT(labels(4), AllOf(Contains(Pair("object", "queue")), Contains(Pair("partner", "main")),
                               Contains(Pair("partner_tid", "70")), Contains(Pair("sharing", "true")),
                               Contains(Pair("tid", "71")), Not(Contains(Pair("gain", "unknown")))));
  EXPECT_THAT(labels(5), AllOf(Contains(Pair("gain", "unknown")), Contains(Pair("sharing", "false")),
                               Contains(Pair("callers", "alike"))));
}

TEST_F(PprofTest, LocationsHaveInlinedFunctionsInnermostFirst) {
  const auto& locations = profile_.bytes.at(location);
  const auto& functions = profile_.bytes.at(function);
  ASSERT_EQ(locations.size(), 5U);
  for (std::size_t i = 0; i < locations.size(); ++i) {
    EXPECT_EQ(Message(locations[i]).number(1), static_cast<std::int64_t>(i + 1));
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    EXPECT_EQ(Message(functions[i]).number(1), static_cast<std::int64_t>(i + 1));
  }
  const Message first(locations[0]);
  EXPECT_EQ(first.number(2), 1);
  EXPECT_EQ(first.number(3), 0x1100);
  ASSERT_EQ(first.bytes.at(4).size(), 2U);
  std::vector<std::string> lines;
  for (const std::string& line : first.bytes.at(4)) {
    const Message known(functions.at(static_cast<std::size_t>(Message(line).number(1)) - 1));
    lines.push_back(text(known.number(2)) + " " + text(known.number(4)) + ":" +
                    std::to_string(Message(line).number(2)) + " begins " + std::to_string(known.number(5)));
  }
  EXPECT_THAT(lines, ElementsAre("hot /app.cpp:7 begins 0", "work(int) /app.cpp:20 begins 18"));
  const Message kernel(locations[4]);
  EXPECT_EQ(kernel.number(2), 0) << "it is in no file";
  const Message line(kernel.bytes.at(4).at(0));
  EXPECT_EQ(text(Message(functions.at(static_cast<std::size_t>(line.number(1)) - 1)).number(2)), "futex_[k]");
}

TEST_F(PprofTest, MappingsHaveBuildIds) {
  const auto& mappings = profile_.bytes.at(mapping);
  ASSERT_EQ(mappings.size(), 2U);
  const Message program(mappings[0]);
  EXPECT_EQ(program.number(1), 1);
  EXPECT_EQ(program.number(2), 0x1000);
  EXPECT_EQ(program.number(3), 0x3000);
  EXPECT_EQ(program.number(4), 0x1000);
  EXPECT_EQ(text(program.number(5)), "/bin/app");
  EXPECT_EQ(text(program.number(6)), "abcd");
  for (const std::uint32_t known : {7, 8, 9, 10}) {
    EXPECT_EQ(program.number(known), 1);
  }
  const Message library(mappings[1]);
  EXPECT_EQ(library.number(6), 0);
  EXPECT_EQ(library.number(7), 1);
  for (const std::uint32_t unknown : {8, 9, 10}) {
    EXPECT_EQ(library.number(unknown), 0);
  }
}

TEST_F(PprofTest, HasTheRecording) {
  EXPECT_EQ(text(0), "");
  EXPECT_EQ(profile_.number(9), 1'795'000'000'123'456'789);
  EXPECT_EQ(profile_.number(10), 2'500'000'000);
  EXPECT_EQ(profile_.number(12), 4'000'000);
  const Message period(profile_.bytes.at(11).at(0));
  EXPECT_EQ(text(period.number(1)) + "/" + text(period.number(2)), "cpu/nanoseconds");
  std::vector<std::string> comments;
  for (const std::int64_t number : profile_.numbers.at(13)) {
    comments.push_back(text(number));
  }
  EXPECT_THAT(
      comments,
      ElementsAre("recorded by crosstalk 1.2.3: ./app 'a b'", "source clock, method watch, estimator post_stratified",
                  AllOf(HasSubstr("50 %"), HasSubstr("17 %"), HasSubstr("33 %")), HasSubstr("[not sampled]: 0.0004 ms"),
                  HasSubstr("gain is not known"), "warning: a warning"));
}

TEST_F(PprofTest, AnEventThatIsNoTimeHasItsOwnName) {
  attribution::Analysis analysis = an_analysis();
  analysis.shares_of = "cache-misses";
  analysis.session.config.period_ns = 0;
  analysis.sampling.events = {{"cache-misses", 1000, "occurrences", 9}};
  profile_ = Message(encode_pprof(analysis));
  EXPECT_EQ(types()[1], "cache-misses/count");
  EXPECT_EQ(text(profile_.number(14)), "cache-misses");
  EXPECT_EQ(profile_.number(12), 1000);
}

TEST_F(PprofTest, TheSameAnalysisGivesTheSameBytes) {
  EXPECT_EQ(encode_pprof(an_analysis()), encode_pprof(an_analysis()));
  EXPECT_EQ(*gzip(encode_pprof(an_analysis())), *gzip(encode_pprof(an_analysis())));
}

TEST_F(PprofTest, NothingIsAProfile) {
  attribution::Analysis analysis = an_analysis();
  analysis.stacks = std::make_shared<const attribution::WeightedStacks>();
  profile_ = Message(encode_pprof(analysis));
  EXPECT_THAT(types(), ElementsAre("samples/count", "cpu/nanoseconds"));
  EXPECT_EQ(profile_.bytes.count(sample), 0U);
}

TEST(Gzip, IsUnpackedByZlib) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}}) {
    std::string data(size, 'a');
    for (std::size_t i = 0; i < size; i += 3) {
      data[i] = static_cast<char>(i * i >> 3U);
    }
    const auto packed = gzip(data);
    ASSERT_TRUE(packed);
    EXPECT_EQ(packed->substr(0, 2), "\x1f\x8b");
    EXPECT_EQ(packed->substr(4, 4), std::string(4, '\0')) << "a time makes each file another";
    std::string unpacked(size + 1, '\0');
    z_stream stream{};
    ASSERT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
    std::string input = *packed;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
    stream.avail_out = static_cast<uInt>(unpacked.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    unpacked.resize(stream.total_out);
    inflateEnd(&stream);
    EXPECT_EQ(unpacked, data);
  }
}

TEST_F(PprofTest, StringsAreUtf8) {
  attribution::Analysis analysis = an_analysis();
  analysis.threads[0].name = "\xff";
  profile_ = Message(encode_pprof(analysis));
  EXPECT_EQ(labels(0).at("thread"), "\xef\xbf\xbd");
}

TEST(Collapsed, ALineIsAStackOutermostFirst) {
  EXPECT_EQ(render_collapsed(an_analysis(), {StackValue::cpu, false}),
            "main;libc.so.6+0x100;futex_[k] 8000\n"
            "main;work(int);hot 16000\n")
      << "without the stack of 400 ns";
}

TEST(Collapsed, TheThreadIsTheRootOnRequest) {
  EXPECT_EQ(render_collapsed(an_analysis(), {StackValue::cpu, true}),
            "main (tid 70);main;work(int);hot 16000\n"
            "pay:er? (tid 71);main;libc.so.6+0x100;futex_[k] 8000\n")
      << "';' and line breaks part frames and lines";
}

TEST(Collapsed, OtherQuantities) {
  EXPECT_EQ(render_collapsed(an_analysis(), {StackValue::communication, false}), "main;work(int);hot 625000\n");
  EXPECT_EQ(render_collapsed(an_analysis(), {StackValue::gain, false}), "main;work(int);hot 250000\n");
  attribution::Analysis analysis = an_analysis();
  analysis.shares_of = "cache-misses";
  EXPECT_THAT(render_collapsed(analysis, {StackValue::cpu, false}), HasSubstr("main;work(int);hot 16000000\n"))
      << "an event's own unit";
}

TEST(ExportOptions, TheNameOfTheFileTellsTheForm) {
  const std::map<std::string, ExportFormat> forms = {{"a.pb.gz", ExportFormat::pprof},
                                                     {"b/a.pprof", ExportFormat::pprof},
                                                     {"a.folded", ExportFormat::collapsed},
                                                     {"a.collapsed", ExportFormat::collapsed}};
  for (const auto& [name, form] : forms) {
    const auto parsed = parse_export({"-o", name});
    ASSERT_TRUE(parsed && parsed->request) << name;
    EXPECT_EQ(parsed->request->format, form) << name;
    EXPECT_EQ(parsed->request->output, name);
    EXPECT_EQ(parsed->request->input, "crosstalk.db");
  }
  const auto told =
      parse_export({"run.db", "--format", "collapsed", "--by", "thread", "--value", "gain", "-o", "a.pb.gz"});
  ASSERT_TRUE(told && told->request);
  EXPECT_EQ(told->request->format, ExportFormat::collapsed);
  EXPECT_EQ(told->request->value, StackValue::gain);
  EXPECT_TRUE(told->request->by_thread && told->request->lend);
  EXPECT_EQ(told->request->input, "run.db");
  EXPECT_FALSE(parse_export({"-o", "a.pb.gz", "--own-stacks"})->request->lend);
}

TEST(ExportOptions, BadOnesAreRefusedInALine) {
  const std::vector<std::pair<Arguments, std::string>> bad = {
      {{}, "the form is not known"},
      {{"-o", "run.svg"}, "'run.svg' ends in none of"},
      {{"-o", ".pb.gz"}, "'.pb.gz' ends in none of"},
      {{"-o", ""}, "ends in none of"},
      {{"-o", "", "--format", "pprof"}, "the name of the file is empty"},
      {{"--format", "svg"}, "--format: there is no 'svg'; choose one of: collapsed, pprof"},
      {{"-o", "a.folded", "--value", "time"}, "--value: there is no 'time'"},
      {{"-o", "a.folded", "--by", "object"}, "--by: there is no 'object'"},
      {{"-o", "a.pb.gz", "--by", "thread"}, "--by is of --format collapsed"},
      {{"-o", "a.pb.gz", "--value", "cpu"}, "--value is of --format collapsed"},
      {{"-o", "a.pb.gz", "-i", "a.db", "b.db"}, "two profiles are named, a.db and b.db"},
      {{"-o", "a.pb.gz", "--sysroot", "/no/such"}, "/no/such"},
      {{"-o", "a.pb.gz", "--formt", "pprof"}, "--format"}};
  for (const auto& [arguments, words] : bad) {
    const auto parsed = parse_export(arguments);
    ASSERT_FALSE(parsed) << words;
    EXPECT_THAT(parsed.error().message, AllOf(HasSubstr(words), Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace crosstalk::driver::export_test
