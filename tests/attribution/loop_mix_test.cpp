// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_mix.h"

#include <gtest/gtest.h>

#include "tests/attribution/loop_rows.h"

namespace crosstalk::attribution::test::loop_mix_test {
namespace {

using models::Operation;
using models::Precision;
using models::Width;

LoopMix adds(Width width, double flops) {
  LoopMix mix;
  mix.flops.add(width, Precision::double_precision, Operation::add, flops);
  return mix;
}

TEST(LoopMix, TheRateDecidesTheSumAndTheCodeTheParts) {
  LoopRow loop = loop_of({{0, 2, 2, 0}});
  loop.rates.iterations.per_s = 100;
  loop.rates.flops.per_s = 600;
  symbolizer::LoopBodyFacts body;
  body.flops.of[models::FlopMix::index(Width::avx2, Precision::double_precision, Operation::fma)] = 3;
  body.flops.of[models::FlopMix::index(Width::scalar, Precision::double_precision, Operation::add)] = 1;
  const LoopMix mix = mix_of(loop, body, {});
  EXPECT_EQ(mix.unknown, "");
  EXPECT_NEAR(mix.flops.total(), 600, 1e-9);
  EXPECT_NEAR(mix.flops.of_width(Width::avx2), 450, 1e-9);
}

TEST(LoopMix, InnerLoopsCountByTheirShareOfItsTime) {
  LoopRow loop = loop_of({{0, 4, 4, 0}});
  loop.rates.flops.per_s = 50;
  const LoopMix wide = adds(Width::avx2, 40);
  const LoopMix narrow = adds(Width::sse, 120);
  const std::vector<InnerLoop<LoopMix>> inner = {{2, &wide}, {1, &narrow}};
  const LoopMix mix = mix_of(loop, std::nullopt, inner);
  EXPECT_NEAR(mix.flops.of_width(Width::avx2), 20, 1e-9);
  EXPECT_NEAR(mix.flops.of_width(Width::sse), 30, 1e-9);
}

TEST(LoopMix, IsNotKnownIfMostOperationsAreFoundNowhere) {
  LoopRow loop = loop_of({{0, 2, 2, 0}});
  EXPECT_EQ(mix_of(loop, std::nullopt, {}).unknown, "") << "it has none";
  loop.rates.flops.per_s = 100;
  const LoopMix few = adds(Width::sse, 49);
  const std::vector<InnerLoop<LoopMix>> inner = {{2, &few}};
  const LoopMix mix = mix_of(loop, std::nullopt, inner);
  EXPECT_NE(mix.unknown, "");
  EXPECT_EQ(mix.flops.total(), 0);
}

TEST(LoopMix, StoresAreCountedElseThoseOfInnerLoopsElseThoseOfTheCode) {
  LoopRow loop = loop_of({{0, 4, 4, 0}});
  symbolizer::LoopBodyFacts body;
  body.loads = 3;
  body.stores = 1;
  const double half = 0.5;
  const double all = 1;
  const std::vector<InnerLoop<double>> inner = {{1, &half}, {1, &all}};
  EXPECT_NEAR(store_share_of(loop, std::nullopt, {}), 0, 1e-9);
  EXPECT_NEAR(store_share_of(loop, body, {}), 0.25, 1e-9);
  EXPECT_NEAR(store_share_of(loop, body, inner), 0.75, 1e-9);
  loop.rates.loads.per_s = 9;
  loop.rates.stores.per_s = 1;
  EXPECT_NEAR(store_share_of(loop, body, inner), 0.1, 1e-9);
}

TEST(LoopMix, TheWidestInstructionsAreFound) {
  EXPECT_FALSE(widest_of(models::FlopMix{}));
  models::FlopMix mix = adds(Width::scalar, 1).flops;
  EXPECT_EQ(widest_of(mix), Width::scalar);
  mix.add(Width::avx2, Precision::single_precision, Operation::mul, 0.01);
  EXPECT_EQ(widest_of(mix), Width::avx2);
}

}  // namespace
}  // namespace crosstalk::attribution::test::loop_mix_test
