// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace crosstalk::service::configuration_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Configuration read(const std::string& text) {
  auto configuration = parse_configuration(text, "file");
  EXPECT_TRUE(configuration) << configuration.error().message;
  return configuration.value_or(Configuration{});
}

/// The error of a file that is refused: one line that begins with the file's name and this line's number.
void expect_refused(const std::string& text, int line, const std::string& why) {
  const auto configuration = parse_configuration(text, "file");
  ASSERT_FALSE(configuration) << text;
  EXPECT_EQ(configuration.error().code, ErrorCode::invalid_argument);
  const std::string& message = configuration.error().message;
  EXPECT_THAT(message, StartsWith("file:" + std::to_string(line) + ": ")) << text;
  EXPECT_THAT(message, HasSubstr(why)) << text;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Configuration, OfAnEmptyFileIsTheDefault) {
  for (const char* const text : {"", "\n", "# only a comment\n", "[daemon]\n[state]\n[metrics]\n"}) {
    const Configuration configuration = read(text);
    EXPECT_EQ(configuration.budget, 0.03);
    EXPECT_EQ(configuration.sessions, 50U);
    EXPECT_EQ(configuration.longest_s, 3600U);
    EXPECT_EQ(configuration.group, "crosstalk");
    EXPECT_EQ(configuration.state, "/var/lib/crosstalk");
    EXPECT_EQ(configuration.max_age_s, 7U * 86400);
    EXPECT_EQ(configuration.max_bytes, 1ULL << 30U);
    EXPECT_EQ(configuration.metrics_address, "127.0.0.1");
    EXPECT_EQ(configuration.metrics_port, 9947);
    EXPECT_EQ(configuration.metrics_rows, 20U);
    EXPECT_TRUE(configuration.services.empty());
  }
}

TEST(Configuration, TakesEachKey) {
  const Configuration configuration = read(R"(
[daemon]
budget = "2%"
sessions = 7
longest_session = "10m"
group = "profilers"
[state]
directory = "/srv/profiles"
max_age = "36h"
max_size = "5G"
[metrics]
address = "::1"
port = 0
rows = 3
[[service]]
name = "a-1_x.y"
unit = "a@1.service"
budget = "0.5%"
interval = "5m"
children = false
watch = false
access = true
pprof = true
[[service]]
name = "b"
cgroup = "/system.slice"
[[service]]
name = "c"
executable = "/opt/*/bin/c"
[[service]]
name = "d"
command = "java * -jar d.jar*"
)");
  EXPECT_EQ(configuration.budget, 0.02);
  EXPECT_EQ(configuration.sessions, 7U);
  EXPECT_EQ(configuration.longest_s, 600U);
  EXPECT_EQ(configuration.group, "profilers");
  EXPECT_EQ(configuration.state, "/srv/profiles");
  EXPECT_EQ(configuration.max_age_s, 36U * 3600);
  EXPECT_EQ(configuration.max_bytes, 5ULL << 30U);
  EXPECT_EQ(configuration.metrics_address, "::1");
  EXPECT_EQ(configuration.metrics_port, 0);
  EXPECT_EQ(configuration.metrics_rows, 3U);
  ASSERT_EQ(configuration.services.size(), 4U);
  const ServiceSettings& first = configuration.services[0];
  EXPECT_EQ(first, (ServiceSettings{"a-1_x.y", {MatchBy::unit, "a@1.service"}, 0.005, 300, false, false, true, true}));
  EXPECT_EQ(configuration.services[1], (ServiceSettings{"b", {MatchBy::cgroup, "/system.slice"}}));
  EXPECT_EQ(configuration.services[2].match, (Match{MatchBy::executable, "/opt/*/bin/c"}));
  EXPECT_EQ(configuration.services[3].match, (Match{MatchBy::command, "java * -jar d.jar*"}));
}

TEST(Configuration, NoMetricsWithoutAnAddress) { EXPECT_EQ(read("[metrics]\naddress = \"\"\n").metrics_address, ""); }

TEST(Configuration, NamesTheLineOfABadValue) {
  expect_refused("[daemon]\n\nbudget = \"1\"\n", 3, "budget must be a percentage from 0.1% to 50%");
  expect_refused("[daemon]\nbudget = 1\n", 2, "budget must be a percentage");
  expect_refused("[daemon]\nbudget = \"60%\"\n", 2, "budget must be a percentage");
  expect_refused("[daemon]\nbudget = \"0.01%\"\n", 2, "budget must be a percentage");
  expect_refused("[daemon]\nsessions = 0\n", 2, "sessions must be a number from 1 to 1000");
  expect_refused("[daemon]\nsessions = 1001\n", 2, "sessions must be");
  expect_refused("[daemon]\nsessions = -1\n", 2, "sessions must be");
  expect_refused("[daemon]\nsessions = 4294967297\n", 2, "sessions must be");
  expect_refused("[daemon]\nsessions = 5.0\n", 2, "sessions must be");
  expect_refused("[daemon]\nsessions = \"5\"\n", 2, "sessions must be");
  expect_refused("[daemon]\nlongest_session = \"2d\"\n", 2, "longest_session must be a duration from 1s to 1d");
  expect_refused("[daemon]\nlongest_session = \"0s\"\n", 2, "longest_session must be");
  expect_refused("[daemon]\ngroup = 5\n", 2, "group must be a string");
  expect_refused("[state]\nmax_age = \"5\"\n", 2, "max_age must be a duration");
  expect_refused("[state]\nmax_size = \"5g\"\n", 2, "max_size must be a size");
  expect_refused("[state]\ndirectory = \"relative\"\n", 1, "directory must be an absolute path; it is 'relative'");
  expect_refused("[metrics]\nport = 65536\n", 2, "port must be a number from 0 to 65535");
  expect_refused("[metrics]\nrows = 1001\n", 2, "rows must be");
  expect_refused("[metrics]\naddress = true\n", 2, "address must be an IP address");
}

TEST(Configuration, NamesTheLineOfABadService) {
  const std::string good = "[[service]]\nname = \"a\"\nunit = \"a.service\"\n";
  expect_refused("[[service]]\nunit = \"a.service\"\n", 1, "needs a name");
  for (const char* const name : {"", ".", "..", ".hidden", "a/b", "a b", "\xc3\xa4"}) {
    expect_refused("[[service]]\nunit = \"a\"\nname = \"" + std::string(name) + "\"\n", 1, "needs a name");
  }
  expect_refused("[[service]]\nname = \"" + std::string(65, 'a') + "\"\nunit = \"a\"\n", 1, "needs a name");
  expect_refused("[[service]]\nname = \"a\"\n", 1, "exactly one of");
  expect_refused(good + "command = \"a\"\n", 4, "exactly one of: unit, cgroup, executable, command; it has 2");
  expect_refused("[[service]]\nname = \"a\"\nunit = \"\"\n", 3, "unit must not be empty");
  expect_refused("[[service]]\nname = \"a\"\nunit = 7\n", 3, "unit must be a string");
  expect_refused("[[service]]\nname = \"a\"\nunit = \"system.slice/a.service\"\n", 3, "without '/'");
  expect_refused("[[service]]\nname = \"a\"\ncgroup = \"system.slice\"\n", 3, "must be a path that begins with '/'");
  expect_refused(good + "budget = \"0%\"\n", 4, "budget must be");
  expect_refused(good + "interval = \"500ms\"\n", 4, "interval must be a duration from 1s to 1d");
  expect_refused(good + "interval = 60\n", 4, "interval must be");
  for (const char* const key : {"children", "watch", "access", "pprof"}) {
    expect_refused(good + key + " = \"true\"\n", 4, std::string(key) + " must be true or false");
    expect_refused(good + key + " = 1\n", 4, "true or false");
  }
  expect_refused(good + "\n" + good, 5, "there are two services 'a'");
  expect_refused(good + "pprof = true\n[[service]]\nname = \"b\"\nunit = \"b\"\ncolour = 1\n", 8, "no key 'colour'");
}

TEST(Configuration, RefusesUnknownKeys) {
  expect_refused("budget = \"1%\"\n", 1, "there is no key 'budget' outside of tables; it may have: daemon, metrics, ");
  expect_refused("[deamon]\nbudget = \"1%\"\n", 1, "there is no key 'deamon'");
  expect_refused("[daemon]\nsessions = 5\nsession = 5\n", 3,
                 "there is no key 'session' in [daemon]; it may have: budget, group, longest_session, sessions");
  expect_refused("[state]\nsize = 5\n", 2, "in [state]");
  expect_refused("[metrics]\nhost = 5\n", 2, "in [metrics]");
  expect_refused("[daemon]\n\"a\\nb\" = 5\n", 2, "there is no key 'a?b'");
}

TEST(Configuration, RefusesATableInAValuesPlaceAndAValueInATables) {
  expect_refused("[daemon]\n[daemon.budget]\nx = 1\n", 2, "budget must be a percentage");
  expect_refused("[daemon]\nbudget = { a = 1 }\n", 2, "budget must be a percentage");
  expect_refused("[daemon]\nsessions = [5]\n", 2, "sessions must be");
  expect_refused("daemon = 5\n", 1, "daemon must be a table: [daemon]");
  expect_refused("[[daemon]]\n", 1, "daemon must be a table");
  expect_refused("[service]\nname = \"a\"\n", 1, "service must be tables: [[service]]");
  expect_refused("service = []\n", 1, "service must be tables");
  expect_refused("service = [1, 2]\n", 1, "service must be tables");
  expect_refused("service = [{ name = \"a\", unit = \"a\" }, 2]\n", 1, "service must be tables");
}

TEST(Configuration, RefusesWhatIsNotToml) {
  expect_refused("[daemon\n", 1, "it is not TOML");
  expect_refused("[daemon]\nbudget = \n", 2, "it is not TOML");
  expect_refused("[daemon]\nsessions = 5\nsessions = 6\n", 3, "it is not TOML");
  expect_refused("[daemon]\n[state]\n[daemon]\n", 3, "it is not TOML");
  expect_refused("\xff\n", 1, "it is not TOML");
  expect_refused("[\x01]\n", 1, "it is not TOML");
  expect_refused("[metrics]\naddress = \"nope\"\n", 2, "address must be an IP address");
  expect_refused("gr\xc3\xb6sse = 1\n", 1, "it is not TOML");  // a letter that keys may not have without quotes
  expect_refused("a = " + std::string(100'000, '['), 1, "it is not TOML");
}

TEST(Configuration, RefusesControlCharactersInStrings) {
  expect_refused("[[service]]\nunit = \"a\"\nname = \"a\\u0000\"\n", 3, "without control characters");
  expect_refused("[state]\ndirectory = \"/a\\u0000b\"\n", 2, "directory must be a string without control characters");
  expect_refused("[[service]]\nname = \"a\"\ncommand = \"a\\nb\"\n", 3, "without control characters");
}

TEST(ReadConfiguration, NamesTheFile) {
  const std::string folder = ::testing::TempDir() + "configuration" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/c.toml";
  EXPECT_EQ(read_configuration(path).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(read_configuration(folder));
  std::ofstream(path) << "[daemon]\nsessions = 9\n";
  EXPECT_EQ(read_configuration(path)->sessions, 9U);
  std::ofstream(path) << "[daemon]\nsessions = 0\n";
  EXPECT_THAT(read_configuration(path).error().message, StartsWith(path + ":2: "));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace crosstalk::service::configuration_test
