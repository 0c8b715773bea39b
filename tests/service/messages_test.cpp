// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace crosstalk::service::messages_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_refused(const std::string& message, ErrorCode code, const std::string& why) {
  const auto request = parse_request(message);
  ASSERT_FALSE(request) << message.substr(0, 200);
  EXPECT_EQ(request.error().code, code) << message.substr(0, 200);
  EXPECT_THAT(request.error().message, HasSubstr(why));
  EXPECT_EQ(request.error().message.find('\n'), std::string::npos);
}

/// A request to record process 1 with these options.
std::string with_options(const std::string& options) {
  return R"({"request":"record","pids":[1],"options":{)" + options + "}}";
}

SessionOptions options_of(const std::string& options) {
  const auto request = parse_request(with_options(options));
  EXPECT_TRUE(request) << request.error().message;
  return request ? request->options : SessionOptions{};
}

bool is_before(const std::vector<std::string>& words, const std::string& option, const std::string& value) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found != words.end() && found + 1 != words.end() && *(found + 1) == value;
}

TEST(Request, OfEachKindComesBack) {
  for (const auto kind : {RequestKind::stop, RequestKind::status}) {
    EXPECT_EQ(parse_request(to_message(Request{kind, {}, {}, "", ""}))->kind, kind);
  }
  const auto fetch = parse_request(to_message(Request{RequestKind::fetch, {}, {}, "web", "web.db.1"}));
  EXPECT_EQ(fetch->kind, RequestKind::fetch);
  EXPECT_EQ(fetch->service, "web");
  EXPECT_EQ(fetch->profile, "web.db.1");
  EXPECT_EQ(parse_request(to_message(Request{RequestKind::profiles, {}, {}, "web", ""}))->service, "web");
}

TEST(Request, OptionsComeBack) {
  for (const auto kind : {RequestKind::record, RequestKind::top}) {
    const SessionOptions options{true, 1.5, 2'000'000, 0.25, "probe", "next-store", 0.5, 30.0, 0};
    const auto request = parse_request(to_message(Request{kind, {7, 1'000'000}, options, "", ""}));
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->kind, kind);
    EXPECT_THAT(request->pids, ElementsAre(7, 1'000'000));
    EXPECT_TRUE(request->options.children);
    EXPECT_EQ(request->options.duration_s, 1.5);
    EXPECT_EQ(request->options.period_ns, 2'000'000U);
    EXPECT_EQ(request->options.budget_percent, 0.25);
    EXPECT_EQ(request->options.method, "probe");
    EXPECT_EQ(request->options.partner, "next-store");
    EXPECT_EQ(request->options.refresh_s, 0.5);
    EXPECT_EQ(request->options.window_s, 30.0);
    EXPECT_EQ(request->options.watchpoints, 0U);
  }
}

TEST(Request, LeavesAbsentAndNullOptionsToTheDefault) {
  for (const char* const message : {R"({"request":"top","pids":[3]})", R"({"request":"top","pids":[3],"options":null})",
                                    R"({"request":"top","pids":[3],"options":{"window_s":null,"children":null}})"}) {
    const auto request = parse_request(message);
    ASSERT_TRUE(request) << message;
    EXPECT_FALSE(request->options.children);
    EXPECT_EQ(request->options.window_s, std::nullopt);
    EXPECT_EQ(request->options.budget_percent, std::nullopt);
  }
  EXPECT_TRUE(parse_request(R"({"request":"status","of a later version":[{}]})"));
}

TEST(Request, GarbageIsRefused) {
  for (const char* const message :
       {"", "{", "null", "[]", "5", "\"record\"", "{}}", "\xff\xfe", "record", "{\"a\":\"\xff\"}"}) {
    expect_refused(message, ErrorCode::corrupt, "no JSON object");
  }
  expect_refused(std::string(100, '\0'), ErrorCode::corrupt, "no JSON object");
  for (const char* const message : {"{}", R"({"request":null})", R"({"request":5})", R"({"request":"Record"})",
                                    R"({"request":["status"]})", R"({"request":""})"}) {
    expect_refused(message, ErrorCode::invalid_argument, "of no kind");
  }
}

TEST(Request, NestedDeepOrHugeIsRefused) {
  const std::string start = R"({"request":"status","x":)";
  for (const std::size_t depth : {40UL, 1000UL, 30'000UL}) {
    expect_refused(start + std::string(depth, '[') + std::string(depth, ']') + "}", ErrorCode::corrupt,
                   "no JSON object");
  }
  std::string objects = start;
  for (int i = 0; i < 40; ++i) {
    objects += R"({"a":)";
  }
  expect_refused(objects + "1" + std::string(41, '}'), ErrorCode::corrupt, "no JSON object");
  EXPECT_TRUE(parse_request(start + std::string(20, '[') + std::string(20, ']') + "}"));
  // Brackets in texts nest nothing, whatever is escaped there.
  EXPECT_TRUE(parse_request(start + "\"" + std::string(1000, '[') + "\\\"\\\\" + std::string(1000, '{') + "\"}"));
  expect_refused(start + "\"" + std::string(most_message_bytes, 'a') + "\"}", ErrorCode::corrupt, "no JSON object");
}

TEST(Request, PidsAreOneTo64Numbers) {
  const auto record = [](const std::string& pids) { return R"({"request":"record","pids":)" + pids + "}"; };
  for (const char* const pids :
       {"null", "5", "[]", "{}", "\"5\"", "[0]", "[-1]", "[1.0]", "[\"1\"]", "[1,null]", "[1,[2]]", "[1073741825]",
        "[4294967297]", "[18446744073709551615]", "[18446744073709551616]"}) {
    expect_refused(record(pids), ErrorCode::invalid_argument, "'pids' must be 1 to 64 process ids");
  }
  expect_refused(R"({"request":"top"})", ErrorCode::invalid_argument, "'pids'");
  std::string many = "1";
  for (int i = 2; i <= 64; ++i) {
    many += "," + std::to_string(i);
  }
  EXPECT_EQ(parse_request(record("[" + many + "]"))->pids.size(), 64U);
  expect_refused(record("[" + many + ",65]"), ErrorCode::invalid_argument, "'pids'");
  EXPECT_THAT(parse_request(record("[1,1073741824]"))->pids, ElementsAre(1, 1073741824));
}

TEST(Request, AProcessIsNamedOnce) {
  EXPECT_THAT(parse_request(R"({"request":"record","pids":[7,5,7,5]})")->pids, ElementsAre(7, 5));
}

TEST(Request, EachOptionHasItsTypeAndRange) {
  struct Case {
    const char* key;
    std::vector<const char*> good, bad;
  };
  const char* const number = "1";
  const Case cases[] = {
      {"children", {"true", "false"}, {"1", "\"true\"", "[]", "{}"}},
      {"duration_s", {"0.001", "1", "1e6"}, {"0", "-1", "1000001", "\"1\"", "true", "[1]", "{}"}},
      {"period_ns",
       {"10000", "4000000", "100000000000"},
       {"9999", "100000000001", "1e6", "20000.5", "-4000000", "\"4ms\""}},
      {"budget_percent", {"0.1", "3", "100"}, {"0.09", "0", "-3", "101", "\"3%\"", "[]"}},
      {"method",
       {"\"watch\"", "\"next-new\"", "\"\""},
       {"5", "\"-o\"", "\"--help\"", "\"a b\"", "\"A\"", R"("a\u0000")", "[]"}},
      {"partner", {"\"auto\"", "\"next-store\""}, {"false", "\"-\"", "\"/etc\"", "\"a,b\"", R"("a\nb")"}},
      {"refresh_s", {"0.1", "2", "3600"}, {"0", "0.05", "3601", "\"2\""}},
      {"window_s", {"0.1", "86400"}, {"0", "86401", "null5", "{}"}},
      {"watchpoints", {"0", "4"}, {"5", "-1", "2.5", "\"2\"", "18446744073709551616"}},
  };
  for (const Case& each : cases) {
    for (const char* const value : each.good) {
      EXPECT_TRUE(parse_request(with_options("\"" + std::string(each.key) + "\":" + value))) << each.key << value;
    }
    for (const char* const value : each.bad) {
      const auto request = parse_request(with_options("\"" + std::string(each.key) + "\":" + value));
      EXPECT_FALSE(request) << each.key << value;
      EXPECT_EQ(request.error().message.find('\n'), std::string::npos);
    }
  }
  expect_refused(with_options(R"("method":")" + std::string(33, 'a') + '"'), ErrorCode::invalid_argument, "'method'");
  expect_refused(R"({"request":"record","pids":[1],"options":[]})", ErrorCode::invalid_argument,
                 "'options' must be an object");
  expect_refused(R"({"request":"fetch","service":5})", ErrorCode::invalid_argument, "'service' must be a text");
  expect_refused(R"({"request":"fetch","service":"a","profile":{}})", ErrorCode::invalid_argument, "'profile'");
  expect_refused(R"({"request":"fetch","service":")" + std::string(4097, 'a') + "\"}", ErrorCode::invalid_argument,
                 "4096");
  EXPECT_EQ(options_of("\"watchpoints\":" + std::string(number)).watchpoints, 1U);
}

TEST(Reply, OfEachKindComesBack) {
  const auto started = parse_reply(to_message(Reply{Reply::Kind::started, 7, 0.025, 0, {}, ""}));
  EXPECT_EQ(started->kind, Reply::Kind::started);
  EXPECT_EQ(started->session, 7U);
  EXPECT_EQ(started->budget, 0.025);
  const auto ended = parse_reply(to_message(Reply{Reply::Kind::ended, 8, 0, 137, {}, ""}));
  EXPECT_EQ(ended->kind, Reply::Kind::ended);
  EXPECT_EQ(ended->session, 8U);
  EXPECT_EQ(ended->exit_status, 137);
  for (const auto code :
       {ErrorCode::invalid_argument, ErrorCode::not_found, ErrorCode::not_executable, ErrorCode::refused,
        ErrorCode::permission, ErrorCode::corrupt, ErrorCode::unsupported, ErrorCode::system}) {
    const auto refused = parse_reply(to_message(Reply{Reply::Kind::refused, 0, 0, 0, code, "why \"not\""}));
    EXPECT_EQ(refused->kind, Reply::Kind::refused);
    EXPECT_EQ(refused->code, code);
    EXPECT_EQ(refused->text, "why \"not\"");
  }
  for (const auto kind : {Reply::Kind::status, Reply::Kind::profiles}) {
    const auto content = parse_reply(to_message(Reply{kind, 0, 0, 0, {}, R"({"services":[{"name":"a"}]})"}));
    EXPECT_EQ(content->kind, kind);
    EXPECT_EQ(content->text, R"({"services":[{"name":"a"}]})");
  }
  EXPECT_EQ(parse_reply(to_message(Reply{Reply::Kind::profile, 0, 0, 0, {}, ""}))->kind, Reply::Kind::profile);
}

TEST(Reply, ThatIsDamagedIsRefused) {
  for (const std::string& message :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"reply":"finished"})"),
        std::string(R"({"reply":5})"), std::string(R"({"reply":"started","session":-1})"),
        std::string(R"({"reply":"started","session":"7"})"), std::string(R"({"reply":"ended","exit_status":256})"),
        std::string(R"({"reply":"started","budget":2})"), std::string(R"({"reply":"refused","message":5})"),
        std::string(R"({"reply":"status"})"), std::string(R"({"reply":"profiles","content":5})"),
        R"({"reply":"status","content":)" + std::string(30'000, '[') + std::string(30'000, ']') + "}"}) {
    const auto reply = parse_reply(message);
    ASSERT_FALSE(reply) << message.substr(0, 100);
    EXPECT_EQ(reply.error().code, ErrorCode::corrupt);
  }
  EXPECT_EQ(parse_reply(R"({"reply":"refused","code":"of a later version","message":"m"})")->code, ErrorCode::refused);
}

TEST(Reply, TextsNeedNotBeUtf8) {
  const auto refused = parse_reply(to_message(Reply{Reply::Kind::refused, 0, 0, 0, ErrorCode::refused, "a\xff"}));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->text, "a\xef\xbf\xbd");
}

TEST(Arguments, OfARecording) {
  Request request{RequestKind::record, {7, 9}, {}, "", ""};
  EXPECT_THAT(arguments_for(request, {3, 4}, std::nullopt, 0.03, "/s/1.db"),
              ElementsAre("record", "-p", "7,9", "--pidfd", "3,4", "--budget", "3", "-o", "/s/1.db"));
  request.options = {true, 2.5, 10'000, 0.1, "probe", "board", 9.0, 9.0, 0};
  const auto words = arguments_for(request, {3, 4}, uid_t{1000}, 0.0015, "/s/1.db");
  EXPECT_TRUE(is_before(words, "--owner", "1000"));
  EXPECT_TRUE(is_before(words, "--budget", "0.15"));
  EXPECT_TRUE(is_before(words, "--duration", "2.5"));
  EXPECT_TRUE(is_before(words, "--period", "10000ns"));
  EXPECT_TRUE(is_before(words, "--method", "probe"));
  EXPECT_TRUE(is_before(words, "--partner", "board"));
  EXPECT_TRUE(is_before(words, "--watchpoints", "0"));
  EXPECT_THAT(words, ::testing::Contains("--children"));
  EXPECT_THAT(words, ::testing::Not(::testing::Contains("--refresh")));
}

TEST(Arguments, OfALiveView) {
  Request request{RequestKind::top, {7}, {}, "", ""};
  request.options.refresh_s = 0.5;
  request.options.window_s = 60;
  request.options.duration_s = 5;
  const auto words = arguments_for(request, {3}, std::nullopt, 0.01, "/s/1.db");
  EXPECT_EQ(words.front(), "top");
  EXPECT_THAT(words, ::testing::Contains("--json"));
  EXPECT_TRUE(is_before(words, "--refresh", "0.5"));
  EXPECT_TRUE(is_before(words, "--window", "60"));
  EXPECT_THAT(words, ::testing::Not(::testing::Contains("-o")));
}

TEST(Arguments, PercentSignsOfAPathStay) {
  const Request request{RequestKind::record, {7}, {}, "", ""};
  EXPECT_TRUE(is_before(arguments_for(request, {3}, std::nullopt, 0.01, "/100%/%p.db"), "-o", "/100%%/%%p.db"));
}

TEST(Arguments, LongDurationsKeepTheirDigits) {
  Request request{RequestKind::record, {7}, {}, "", ""};
  request.options.duration_s = 1e6;
  EXPECT_TRUE(is_before(arguments_for(request, {3}, std::nullopt, 0.01, "o"), "--duration", "1000000"));
  request.options.duration_s = 123456.75;
  EXPECT_TRUE(is_before(arguments_for(request, {3}, std::nullopt, 0.01, "o"), "--duration", "123456.75"));
}

}  // namespace
}  // namespace crosstalk::service::messages_test
