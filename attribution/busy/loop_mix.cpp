// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_mix.h"

namespace crosstalk::attribution {
namespace {

/// Both have the same order (flop_kinds.h, machine.h).
models::FlopMix mix_of(const symbolizer::FlopsByKind& flops) {
  static_assert(symbolizer::FlopsByKind::kinds == sizeof(models::FlopMix::of) / sizeof(double));
  static_assert(
      symbolizer::FlopsByKind::index(symbolizer::FlopWidth::avx2, symbolizer::FlopType::float32,
                                     symbolizer::FlopOperation::fma) ==
      models::FlopMix::index(models::Width::avx2, models::Precision::single_precision, models::Operation::fma));
  models::FlopMix mix;
  mix.of = flops.of;
  mix.other = flops.other;
  return mix;
}

}  // namespace

LoopMix mix_of(const LoopRow& loop, const std::optional<symbolizer::LoopBodyFacts>& body,
               std::span<const InnerLoop<LoopMix>> inner) {
  constexpr double most = 0.5;
  LoopMix result;
  const Rate& flops = loop.rates.flops;
  if (!flops.per_s || *flops.per_s <= 0) {
    return result;
  }
  models::FlopMix mix;
  if (body && loop.rates.iterations.per_s) {
    mix.add(mix_of(body->flops), *loop.rates.iterations.per_s);
  }
  for (const InnerLoop<LoopMix>& each : inner) {
    mix.add(each.figure->flops, each.cpu_s / loop.cpu_s);
  }
  const double found = mix.total();
  if (found < most * *flops.per_s) {
    result.unknown = "by which instructions its operations are done is not known";
    return result;
  }
  result.flops.add(mix, *flops.per_s / found);
  return result;
}

double store_share_of(const LoopRow& loop, const std::optional<symbolizer::LoopBodyFacts>& body,
                      std::span<const InnerLoop<double>> inner) {
  double stores = loop.rates.stores.per_s.value_or(0);
  double all = stores + loop.rates.loads.per_s.value_or(0);
  if (all <= 0 && !inner.empty()) {
    for (const InnerLoop<double>& each : inner) {
      stores += *each.figure * each.cpu_s;
      all += each.cpu_s;
    }
  } else if (all <= 0 && body) {
    stores = body->stores;
    all = body->stores + body->loads;
  }
  return all > 0 ? stores / all : 0;
}

std::optional<models::Width> widest_of(const models::FlopMix& mix) {
  for (const models::Width width :
       {models::Width::avx512, models::Width::avx2, models::Width::sse, models::Width::scalar}) {
    if (mix.of_width(width) > 0) {
      return width;
    }
  }
  return std::nullopt;
}

std::optional<models::Width> widest_of(const models::Machine& machine) {
  for (const models::Width width : {models::Width::avx512, models::Width::avx2, models::Width::sse}) {
    const models::Figure* figure =
        machine.flops_of(width, models::Precision::double_precision, models::Operation::add, models::Scope::one_core);
    if (figure != nullptr && figure->value) {
      return width;
    }
  }
  return std::nullopt;
}

}  // namespace crosstalk::attribution
