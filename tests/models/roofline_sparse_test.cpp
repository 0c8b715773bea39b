// SPDX-License-Identifier: Apache-2.0
// Sparse products: the figures of SPARCITY D1.2, 2.1.2 and 2.2, and its pairs of worst and best matrices.
#include <gtest/gtest.h>

#include "models/roofline/ceilings.h"
#include "models/roofline/sparse.h"
#include "models/roofline/sparse_pattern.h"
#include "tests/models/roofline_example.h"

namespace crosstalk::models::roofline::sparse_test {
namespace {

using namespace example;

constexpr double single = 4;  // bytes

double fit(double capacity, double element) { return elements_that_fit(capacity, element).value(); }

TEST(RooflineSparse, SourceCapacities) {
  constexpr double mega = 1e6;
  expect_vectors({
      {"non-zeros in L1 of a core, printed", fit(32 * kibi, 12), 2700, 50},
      {"non-zeros in L1 of a core", fit(32 * kibi, 12), 2730.67, 0.005},
      {"non-zeros in 48 L1, printed", fit(48 * 32 * kibi, 12), 130000, 5000},
      {"non-zeros in 48 L1", fit(48 * 32 * kibi, 12), 131072, 1e-6},
      {"non-zeros in L3", fit(66 * mebi, 12) / mega, 5.8, 0.05},
      {"non-zeros in L2 and L3", fit(114 * mebi, 12) / mega, 10, 0.5},
      {"columns in 48 L1", fit(1.5 * mebi, 8), 196608, 1e-6},
      {"columns in L3", fit(66 * mebi, 8) / mega, 8.7, 0.05},
      {"columns in L2 and L3", fit(114 * mebi, 8) / mega, 14.9, 0.05},
  });
}

TEST(RooflineSparse, BracketOfGatheredLoads) {
  const IntensityBracket source = gather_bracket(spmv_of_doubles().value()).value();
  const IntensityBracket warm = gather_bracket({.streamed_bytes = 20, .gathered = 0}).value();
  const IntensityBracket rows = gather_bracket(spmv_of_doubles(6).value()).value();  // 24 / 6 = 4 bytes more
  expect_vectors({
      {"best", source.best, 1.0 / 6, 1e-6},
      {"worst", source.worst, 1.0 / 38, 1e-6},
      {"ratio", source.best / source.worst, 38.0 / 6, 1e-6},
      {"ratio, printed", source.best / source.worst, 6.3, 0.05},
      {"all three arrays", warm.best, 1.0 / 10, 1e-6},
      {"best with rows", rows.best, 2.0 / 16, 1e-6},
      {"worst with rows", rows.worst, 2.0 / 80, 1e-6},
  });
  EXPECT_FALSE(spmv_of_doubles(0.5));
  EXPECT_FALSE(gather_bracket({.streamed_bytes = 0}));
}

TEST(RooflineSparse, IntensityLimits) {
  const IntensityBracket limits = spmv_intensity_limits(single).value();
  const auto dense = [](std::uint64_t columns) {
    return spmv_intensity({1000, columns, 1000 * columns}, single).value();
  };
  expect_vectors({
      {"one non-zero a row", limits.worst, 0.071429, 5e-7},
      {"many non-zeros a row", limits.best, 0.166667, 5e-7},
      {"one column", dense(1), 2 / (7 * single), 1e-12},
      {"two columns", dense(2), 0.1, 1e-6},
      {"8704 columns", dense(8704), 0.166641, 5e-7},
      // Fig. 9 prints this for two columns; equation 4 has it at 7.50 non-zeros a row.
      {"7.50 non-zeros a row", spmv_intensity({100, 100, 750}, single).value(), 0.14152, 2e-5},
  });
}

struct TableRow {
  const char* name;
  std::uint64_t rows, nonzeros;
  double printed_kbyte, intensity;
};

TEST(RooflineSparse, Table2) {
  const std::vector<TableRow> table = {
      {"Freescale1", 3428755, 17052626, 173400, 0.131431}, {"patents", 3774768, 14970767, 161190, 0.124733},
      {"torso1", 116158, 8516500, 67900, 0.163690},        {"Stanford", 281903, 2312497, 21370, 0.143364},
      {"ns3Da", 20414, 1679599, 13360, 0.164009},          {"poisson3Db", 85623, 2374949, 19560, 0.159022},
      {"sme3Db", 29067, 2081063, 16600, 0.163620},         {"mixtank_new", 29957, 1990919, 15900, 0.163389},
      {"SS", 1652780, 34753577, 290880, 0.156729},         {"Fullchip", 2987012, 26621983, 242990, 0.144978},
      {"wb-edu", 9845725, 57156537, 561920, 0.135537},
  };
  for (const TableRow& row : table) {
    const MatrixSize matrix{row.rows, row.rows, row.nonzeros};
    EXPECT_NEAR(spmv_intensity(matrix, single).value(), row.intensity, 5.0001e-7) << row.name;
    EXPECT_NEAR(csr_bytes(matrix, single).value() / kibi, row.printed_kbyte, 6) << row.name;
    EXPECT_DOUBLE_EQ(2.0 * static_cast<double>(row.nonzeros) / requested_bytes(matrix, single).value(),
                     spmv_intensity(matrix, single).value());
  }
}

TEST(RooflineSparse, NearestLevelThatHoldsTheMatrix) {
  const CacheSizes caches{32 << 10, 1 << 20, 11 << 20};  // i7-7820X
  // 2.2.3: the matrix of a pair with 64 KB of X is in L3, a share of an eighth in L2; with 4 KB in L2, then in L1.
  for (const auto& [columns, alone, share] : {std::tuple{16384, Level::l3, Level::l2}, {1024, Level::l2, Level::l1d}}) {
    const double bytes = 8.0 * 32 * columns;
    EXPECT_EQ(level_holding(bytes, caches).value(), alone);
    EXPECT_EQ(level_holding(bytes / 8, caches).value(), share);
  }
  EXPECT_EQ(level_holding(1e9, caches).value(), Level::memory);
  EXPECT_FALSE(level_holding(std::numeric_limits<double>::quiet_NaN(), caches));
  EXPECT_EQ(sparse_roof_name(Level::l2, Level::l1d), "A in L2, X in L1D");
}

TEST(RooflineSparse, SpeedupsDivideIntoBalanceAndLocality) {
  const auto locality = [](double speedup, double before, double after) {
    return speedup_parts(speedup, before, after).value().locality;
  };
  expect_vectors({
      {"poisson3Db, RCM", locality(1.6, 3.6, 6.2), 0.929, 0.0005},
      {"torso1, RCM", locality(0.27, 5.3, 1.35), 1.06, 0.005},
      {"Freescale1, AMD: balance", speedup_parts(1, 6.31, 7.95).value().balance, 1.259905, 1e-6},
      {"Stanford, ND: balance", speedup_parts(1, 5.92, 4.7).value().balance, 0.793919, 1e-6},
      {"mixtank_new, RCM: balance", speedup_parts(1, 3.92, 6.87).value().balance, 1.752551, 1e-6},
  });
}

TEST(RooflineSparse, BandsBoundTheGainOfReordering) {
  for (const double speedup : {2.10, 1.39, 1.28}) {  // 2.2.3: of DRAM, L3 and L2 with eight threads
    const Band band{Level::memory, exact(1), exact(speedup)};
    const BandVerdict inside = judge_band(band, exact(1)).value();
    EXPECT_EQ(inside.position, BandPosition::inside);
    EXPECT_DOUBLE_EQ(inside.gain_bound.value().value(), speedup);
    EXPECT_EQ(inside.advice, std::vector{Advice::reorder_matrix});
    EXPECT_EQ(judge_band(band, exact(0.5)).value().advice.back(), Advice::balance_load);
    const BandVerdict above = judge_band(band, exact(3)).value();
    EXPECT_EQ(above.position, BandPosition::above);
    EXPECT_FALSE(above.gain_bound);
    EXPECT_EQ(judge_band(band, within(0.9, 1, 1.1)).value().position, BandPosition::undecided);
  }
  EXPECT_FALSE(judge_band({Level::l2, exact(2), exact(1)}, exact(1)));
  EXPECT_FALSE(judge_band({Level::l2, exact(1), exact(2)}, exact(0)));
}

TEST(RooflineSparse, NonZerosOfThreads) {
  const std::vector<std::uint32_t> starts = {0, 4, 5, 6, 7};  // rows of 4, 1, 1 and 1
  EXPECT_EQ(nonzeros_by_thread(starts, 2).value(), (std::vector<double>{5, 2}));
  EXPECT_EQ(nonzeros_by_thread(starts, 8).value().size(), 8U);
  EXPECT_DOUBLE_EQ(utilisation(nonzeros_by_thread(starts, 4).value()).value(), 1.75);
  EXPECT_FALSE(nonzeros_by_thread(starts, 0));
  EXPECT_FALSE(nonzeros_by_thread({}, 1));
  EXPECT_FALSE(nonzeros_by_thread(std::vector<std::uint32_t>{0, 5, 3}, 1));
}

// ---- pairs of matrices --------------------------------------------------------------------------------------

TEST(RooflinePairs, SourceExample) {
  const CsrPattern worst = worst_pattern({.block_rows = 1}).value();  // fig. 10: 4096 columns, blocks of 1 x 64
  EXPECT_EQ(worst.rows(), 64U);
  const auto row = [&worst](std::uint32_t r) {
    return std::vector(worst.column_of.begin() + worst.row_starts[r],
                       worst.column_of.begin() + worst.row_starts[r + 1]);
  };
  EXPECT_EQ(row(0)[1] - row(0)[0], 64U);  // d
  EXPECT_EQ(row(1)[0], 16U);              // a line further
  EXPECT_EQ(row(3)[0], 48U);
  EXPECT_EQ(row(4)[0], 1U);  // after n = 4 rows, an element further
  EXPECT_EQ(row(63)[63], 4095U);
  const CsrPattern repeated = worst_pattern({}).value();  // fig. 11b: 32 times
  EXPECT_EQ(repeated.rows(), 2048U);
  EXPECT_EQ(repeated.column_of.size(), 131072U);
}

TEST(RooflinePairs, TheBestIsThePermutedWorstExactly) {
  for (const PairShape& shape :
       {PairShape{}, PairShape{1, 64, 4096, 16}, PairShape{32, 64, 1024, 16}, PairShape{3, 5, 60, 4},
        PairShape{2, 8, 64, 8}, PairShape{1, 1, 1, 1}, PairShape{7, 2, 48, 1}}) {
    const CsrPattern worst = worst_pattern(shape).value(), best = best_pattern(shape).value();
    EXPECT_EQ(permuted(worst, worst_to_best(shape).value()).value(), best);
    EXPECT_EQ(worst.column_of.size(), best.column_of.size());
  }
}

TEST(RooflinePairs, BestHasDenseBlocksOnItsDiagonal) {
  const CsrPattern best = best_pattern({2, 4, 16, 2}).value();
  EXPECT_EQ(best.rows(), 8U);
  EXPECT_EQ(std::vector(best.column_of.begin(), best.column_of.begin() + 8),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(best.column_of.back(), 15U);
}

TEST(RooflinePairs, ImpossibleShapesAreRefused) {
  for (const PairShape& shape : {PairShape{0, 64, 4096, 16}, PairShape{32, 0, 4096, 16}, PairShape{32, 64, 0, 16},
                                 PairShape{32, 64, 4096, 0}, PairShape{32, 64, 4095, 16}, PairShape{32, 64, 64, 16},
                                 PairShape{~0U, 1, ~0U, 1}, PairShape{1, ~0U, ~0U, ~0U}}) {
    EXPECT_FALSE(worst_pattern(shape));
    EXPECT_FALSE(best_pattern(shape));
    EXPECT_FALSE(worst_to_best(shape));
  }
  const CsrPattern small = best_pattern({1, 1, 2, 1}).value();
  EXPECT_FALSE(permuted(small, {{0, 0}, {0, 1}}));
  EXPECT_FALSE(permuted(small, {{0, 1}, {0}}));
  EXPECT_FALSE(permuted({.columns = 1, .row_starts = {0, 2}, .column_of = {0}}, {{0}, {0}}));
  EXPECT_FALSE(permuted({.columns = 1, .row_starts = {}, .column_of = {}}, {}));
}

void expect_sane_bracket(const Result<IntensityBracket>& bracket) {
  expect_sane(bracket ? Result<double>(bracket->best) : tl::unexpected<Error>(bracket.error()));
  expect_sane(bracket ? Result<double>(bracket->worst) : tl::unexpected<Error>(bracket.error()));
}

TEST(RooflineSparse, HostileNumbersStayFiniteOrAreRefused) {
  with_hostile_numbers(4, [](const std::vector<double>& x) {
    expect_sane_bracket(gather_bracket({x[0], x[1], x[2], x[3], 0}));
    expect_sane_bracket(gather_bracket({2, x[0], x[1], x[2], x[3]}));
  });
  with_hostile_numbers(3, [](const std::vector<double>& x) {
    expect_sane(elements_that_fit(x[0], x[1]));
    expect_sane_bracket(spmv_intensity_limits(x[0]));
    if (const auto loop = spmv_of_doubles(x[0])) {
      expect_sane(loop->outer_bytes);
    }
    const auto parts = speedup_parts(x[0], x[1], x[2]);
    expect_sane(parts ? Result<double>(parts->locality) : tl::unexpected<Error>(parts.error()));
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      expect_sane(spmv_intensity({count, count, count}, x[0]));
      expect_sane(spmv_intensity({1, count, count}, x[0]));
      expect_sane(csr_bytes({count, count, count}, x[0]));
    }
  });
  with_extreme_estimates(3, [](const std::vector<Estimate>& x) {
    const auto verdict = judge_band({Level::l2, x[0], x[1]}, x[2]);
    expect_sane(verdict ? verdict->gain_bound : tl::unexpected<Error>(verdict.error()));
  });
}

}  // namespace
}  // namespace crosstalk::models::roofline::sparse_test
