// SPDX-License-Identifier: Apache-2.0
#include "driver/files/cost_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace crosstalk::driver::cost_file_test {
namespace {

const CostKey here{"1.0", "boot", "6.1.0 #1", "Some CPU/6/1/2", true, true, 4};
const KeptCosts some{{1000, 2, 3, 4, 5, 6, 7, 8, 9}, 1};

TEST(CostFile, what_was_written_is_read) { EXPECT_EQ(parse_costs(to_json(here, some), here), some); }

TEST(CostFile, costs_under_another_key_are_of_no_use) {
  const std::string text = to_json(here, some);
  for (const auto change :
       {+[](CostKey& key) { key.version = "1.1"; }, +[](CostKey& key) { key.boot = "next"; },
        +[](CostKey& key) { key.kernel = "6.2.0 #1"; }, +[](CostKey& key) { key.processor = "Another CPU/6/1/2"; },
        +[](CostKey& key) { key.perf_allowed = false; }, +[](CostKey& key) { key.watchpoints = false; },
        +[](CostKey& key) { key.registers = 3; }, +[](CostKey& key) { key.boot.clear(); }}) {
    CostKey other = here;
    change(other);
    EXPECT_FALSE(parse_costs(text, other));
  }
  CostKey unknown = here;
  unknown.boot.clear();  // then nobody knows whether it is the same
  EXPECT_FALSE(parse_costs(to_json(unknown, some), unknown));
}

TEST(CostFile, a_damaged_file_is_passed_over) {
  const std::string text = to_json(here, some);
  for (std::size_t bytes = 0; bytes + 2 < text.size(); ++bytes) {
    EXPECT_FALSE(parse_costs(text.substr(0, bytes), here)) << bytes;
  }
  for (const char* other : {"[]", "null", "7", "{}", R"({"format": 1})", "\xff\xfe"}) {
    EXPECT_FALSE(parse_costs(other, here)) << other;
  }
  using Json = nlohmann::ordered_json;
  for (const Json& wrong : {Json(-1), Json("1"), Json(1.5), Json(4'000'000'000U), Json(nullptr)}) {
    Json file = Json::parse(text);
    file["costs"]["trap_ns"] = wrong;
    EXPECT_FALSE(parse_costs(file.dump(), here)) << wrong;
  }
}

TEST(CostFile, what_did_not_show_itself_is_tried_again_some_times) {
  EXPECT_FALSE(is_settled({}));
  EXPECT_TRUE(is_settled(some));
  KeptCosts lacking = some;
  lacking.costs.presence = 0;
  EXPECT_FALSE(is_settled(lacking));
  lacking.tries = 3;
  EXPECT_TRUE(is_settled(lacking));
}

TEST(CostFile, a_new_measurement_is_completed_by_an_old_one) {
  const collectors::ObservingCosts fresh{10, 20};
  const collectors::ObservingCosts whole = completed(fresh, some.costs);
  EXPECT_EQ(whole.signal, 10U);
  EXPECT_EQ(whole.trap, 20U);
  EXPECT_EQ(whole.switch_clock, some.costs.switch_clock);
}

class Kept : public testing::Test {
 protected:
  Kept() {
    std::string name = (std::filesystem::temp_directory_path() / "costs.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  ~Kept() override {
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "crosstalk" / "observing-costs.json"; }

  std::filesystem::path folder_;
};

TEST_F(Kept, what_is_kept_is_used_and_what_others_say_is_not) {
  collectors::Probe probe = collectors::probe();
  const CostKey key = cost_key(probe);
  KeptCosts kept = some;
  kept.costs.signal = 123'456;
  std::filesystem::create_directories(file().parent_path());
  std::ofstream(file()) << to_json(key, kept);
  profile::SessionConfig config;
  calibrate_once(probe, config);
  EXPECT_EQ(config.signal_cost_ns, 123'456U);

  CostKey before = key;
  before.boot = "the last one";
  std::ofstream(file()) << to_json(before, kept);
  const auto text = [&] { return std::string(std::istreambuf_iterator<char>(std::ifstream(file()).rdbuf()), {}); };
  constexpr int tries = 20;  // a busy machine may leave nothing to keep
  for (int i = 0; i < tries && !parse_costs(text(), key); ++i) {
    config = {};
    calibrate_once(probe, config);
    EXPECT_NE(config.signal_cost_ns, 123'456U);
  }
  EXPECT_TRUE(parse_costs(text(), key)) << text();
}

TEST_F(Kept, a_folder_of_somebody_else_is_left_as_it_is) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a folder away";
  }
  constexpr uid_t somebody = 65534;
  ASSERT_EQ(::chown(folder_.c_str(), somebody, somebody), 0);
  collectors::Probe probe = collectors::probe();
  profile::SessionConfig config;
  calibrate_once(probe, config);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Kept, where_no_file_may_be_written_none_is) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  collectors::Probe probe = collectors::probe();
  profile::SessionConfig config;
  calibrate_once(probe, config);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Kept, they_are_forgotten) {
  std::filesystem::create_directories(file().parent_path());
  std::ofstream(file()) << "x";
  forget_costs();
  EXPECT_FALSE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace crosstalk::driver::cost_file_test
