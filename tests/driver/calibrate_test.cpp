// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk calibrate`, its tables, and the file that it keeps.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "../models/machine_example.h"
#include "driver/files/machine_file.h"
#include "driver/files/report_machine.h"
#include "driver/options/calibrate_options.h"
#include "driver/terminal/layout.h"
#include "models/machine_json.h"

namespace crosstalk::driver::calibrate_test {
namespace {

TEST(CalibrateOptions, AreReadAndRefused) {
  const auto parsed = parse_calibrate({"-o", "m.json", "--json", "--quick", "-q", "--all"});
  ASSERT_TRUE(parsed && parsed->request);
  EXPECT_EQ(parsed->request->output, "m.json");
  EXPECT_TRUE(parsed->request->json && parsed->request->quick && parsed->request->quiet && parsed->request->all);
  const auto plain = parse_calibrate({});
  EXPECT_FALSE(plain->request->json || plain->request->quick || plain->request->quiet || plain->request->all);
  EXPECT_FALSE(parse_calibrate({"--frobnicate"}));
  EXPECT_FALSE(parse_calibrate({"file.json"}));
}

TEST(CalibrateTables, ShowFiguresWithTheirUnits) {
  const std::string text = render_machine(models::test::example(), {});
  for (const char* const words :
       {"Example 3000", "L1D 32 KiB, L2 1 MiB, L3 32 MiB for 2", "3.70 GHz", "58.0 Gflop/s", "20.0 GB/s", "100 ns",
        "locked add", "an example", "avx2 2:1", "448", "x in l1d", "one, 64, l2"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(CalibrateTables, MarkWhatIsDoubtfulAndSayWhyAFigureIsMissing) {
  models::Machine machine = models::test::example();
  machine.latencies[0].seconds.spread = 0.2;
  machine.chains[0].seconds = {};
  machine.chains[0].seconds.refused = "the machine is too busy";
  const std::string text = render_machine(machine, {});
  EXPECT_NE(text.find("~1.00 ns"), std::string::npos) << text;
  EXPECT_NE(text.find("absent, 1 figure: the machine is too busy"), std::string::npos) << text;
}

TEST(CalibrateTables, AreNoWiderThanTheTerminal) {
  for (const int width : {60, 80, 100}) {
    std::istringstream text(render_machine(models::test::example(), {width}));
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

class MachineFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "crosstalk-machine-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string put(const std::string& text) {
    std::string path = (folder_ / "m.json").string();
    std::ofstream(path) << text;
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(MachineFile, IsReadAsItWasWritten) {
  const std::string path = (folder_ / "m.json").string();
  ASSERT_TRUE(write_machine_file(path, models::test::example()));
  const auto machine = read_machine_file(path);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(models::to_json(*machine), models::to_json(models::test::example()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing else is left behind";
}

TEST_F(MachineFile, IsRefusedWithItsNameAndARemedy) {
  const auto missing = read_machine_file((folder_ / "none.json").string());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  for (const char* const text : {"", "{}", R"({"schema": "crosstalk.machine/9"})"}) {
    const auto machine = read_machine_file(put(text));
    ASSERT_FALSE(machine);
    EXPECT_TRUE(machine.error().message.starts_with(folder_.string())) << machine.error().message;
    EXPECT_NE(machine.error().message.find("crosstalk calibrate"), std::string::npos);
  }
  EXPECT_FALSE(read_machine_file(folder_.string()));
  EXPECT_FALSE(read_machine_file("/dev/zero"));
}

TEST_F(MachineFile, CanNotBeWrittenWhereThereIsNoFolder) {
  EXPECT_FALSE(write_machine_file((folder_ / "no" / "m.json").string(), models::test::example()));
}

TEST_F(MachineFile, IsOfUseForTheSameProcessorOnly) {
  ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  EXPECT_EQ(*machine_file_path(), folder_.string() + "/crosstalk/machine.json");
  EXPECT_EQ(*stamp_of_this_machine(), "") << "no file";
  std::filesystem::create_directory(folder_ / "crosstalk");
  ASSERT_TRUE(write_machine_file(*machine_file_path(), models::test::example()));
  EXPECT_FALSE(stamp_of_this_machine()) << "another machine's";
  profile::Session session;
  session.cpu_model = "Example 3000";
  session.cpus = 2;
  EXPECT_TRUE(machine_of(session).machine);
  EXPECT_EQ(machine_of(session).missing, "");
  session.cpus = 4;
  EXPECT_FALSE(machine_of(session).machine);
  EXPECT_NE(machine_of(session).missing.find("is of another machine"), std::string::npos);
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST_F(MachineFile, IsNotAskedWhereTheProfileHasTheFigures) {
  profile::Session session;
  session.cpu_model = "of another machine";
  session.machine = models::to_json(models::test::example());
  ASSERT_TRUE(machine_of(session).machine) << machine_of(session).missing;
  EXPECT_EQ(machine_of(session).machine->identity.name, models::test::example().identity.name);
  session.machine = "{}";
  EXPECT_FALSE(machine_of(session).machine);
  EXPECT_NE(machine_of(session).missing.find("make no sense"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::driver::calibrate_test
