// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/matrix.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/attribution/roofline_example.h"

namespace crosstalk::driver::matrix_test {
namespace {

Result<SparseShape> read(const std::string& text) {
  std::istringstream input(text);
  return read_matrix_market(input, "A.mtx");
}

const std::string general =
    "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 4\n1 1 2.5\n1 4 -1\n3 2 0\n3 3 7\n";

TEST(MatrixMarket, RowsAreCounted) {
  const auto shape = read(general);
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->size.rows, 3U);
  EXPECT_EQ(shape->size.columns, 4U);
  EXPECT_EQ(shape->size.nonzeros, 4U);
  EXPECT_EQ(shape->row_starts, (std::vector<std::uint32_t>{0, 2, 2, 4}));
}

TEST(MatrixMarket, HalvesAreMirrored) {
  const auto shape = read("%%MatrixMarket matrix coordinate pattern symmetric\r\n3 3 3\r\n1 1\r\n2 1\r\n3 2\r\n");
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->size.nonzeros, 5U);
  EXPECT_EQ(shape->row_starts, (std::vector<std::uint32_t>{0, 2, 4, 5}));
}

TEST(MatrixMarket, WhatIsWrongIsNamedWithItsLine) {
  const std::string header = "%%MatrixMarket matrix coordinate real general\n";
  const std::pair<std::string, const char*> wrong[] = {
      {"", "A.mtx:0: it is empty"},
      {"1 2 3\n", "A.mtx:1: it does not begin"},
      {"%%MatrixMarket matrix array real general\n2 2\n", "its matrix is dense"},
      {"%%MatrixMarket matrix coordinate real diagonal\n2 2 1\n", "its symmetry is 'diagonal'"},
      {header, "it has no size"},
      {header + "2 2\n", "A.mtx:2: it has no size"},
      {header + "0 2 1\n", "it has no size"},
      {header + "99999999999 2 1\n", "it has no size"},
      {header + "2 2 2\n1 1 1\n", "it ends after 1 of 2 entries"},
      {header + "2 2 1\n1 1 1\n2 2 1\n", "there are more than the 1 entries that it promises"},
      {header + "2 2 1\n3 1 1\n", "A.mtx:3: there is no place"},
      {header + "2 2 1\n1 -1 1\n", "there is no place"},
      {header + "2 2 1\n1.5 1 1\n", "there is no place"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 4 1\n1 4 1\n", "there is no place"},
  };
  for (const auto& [text, message] : wrong) {
    const auto shape = read(text);
    ASSERT_FALSE(shape) << text;
    EXPECT_NE(shape.error().message.find(message), std::string::npos) << shape.error().message;
    EXPECT_EQ(shape.error().message.find('\n'), std::string::npos);
  }
}

TEST(MatrixMarket, NoBytesDoHarm) {
  std::mt19937 random(1);  // NOLINT: always the same
  for (int i = 0; i < 3000; ++i) {
    std::string text = general;
    for (int changes = 0; changes < 4; ++changes) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    const auto shape = read(text);
    EXPECT_TRUE(!shape || shape->row_starts.size() == shape->size.rows + 1);
  }
}

MatrixPlace placed(const models::Machine* machine) {
  const auto shape = read(general);
  const auto place = place_of_matrix(*shape, "A.mtx", machine);
  EXPECT_TRUE(place) << (place ? "" : place.error().message);
  return place ? *place : MatrixPlace{};
}

TEST(MatrixPlace, FollowsFromTheShape) {
  const MatrixPlace place = placed(nullptr);
  EXPECT_DOUBLE_EQ(place.mean_row, 4.0 / 3);
  EXPECT_EQ(place.longest_row, 2);
  EXPECT_DOUBLE_EQ(place.bytes, 12 * 4 + 12 * 3 + 8 * 4);
  // eq. 3 with accesses of 20/3 bytes
  EXPECT_DOUBLE_EQ(place.requested_intensity, 2 / (20.0 / 3 * (3 + 4.0 * 3 / 4)));
  EXPECT_DOUBLE_EQ(place.memory_intensity.best, 2 / (12 + 24 / (4.0 / 3)));
  EXPECT_DOUBLE_EQ(place.memory_intensity.worst, 2 / (12 + 64 + 24 / (4.0 / 3)));
  EXPECT_FALSE(place.best_rate);
  EXPECT_FALSE(place.held_in);
}

TEST(MatrixPlace, ThreadsShareItsRows) {
  const auto place = place_of_matrix(*read(general), "A.mtx", nullptr, 2);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->threads, 2U);
  EXPECT_GT(place->utilisation, 1);
  EXPECT_LE(place->utilisation, 2);
  EXPECT_FALSE(place->best_rate);
}

TEST(MatrixPlace, AMachineBoundsIt) {
  models::Machine machine = crosstalk::attribution::test::roofline_machine();
  const MatrixPlace place = placed(&machine);
  EXPECT_EQ(place.held_in, models::Level::l1d);
  ASSERT_TRUE(place.best_rate);
  EXPECT_DOUBLE_EQ(*place.best_rate, 10e9 * place.memory_intensity.best);
  const std::string text = render_matrix_text(place, {80, Charset::ascii, false});
  EXPECT_NE(text.find("3 rows, 4 columns, 4 entries"), std::string::npos) << text;
  EXPECT_NE(text.find("fit into L1D"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(render_matrix_json(place));
  EXPECT_EQ(json["schema"], "crosstalk.matrix/1");
  EXPECT_EQ(json["held_in"], "l1d");
}

}  // namespace
}  // namespace crosstalk::driver::matrix_test
