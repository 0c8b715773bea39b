// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/mansard_equations.h"

#include <algorithm>
#include <cmath>

namespace crosstalk::models::roofline {
namespace {

Result<void> check_hill(const HillFigures& hill) {
  auto checked = check_positive({{"the most memory instructions a cycle", hill.memory_most},
                                 {"the memory instructions a cycle at the ridge", hill.memory_at_ridge},
                                 {"the non-memory instructions a cycle", hill.other}});
  checked = checked ? check_positive({{"the ridge", hill.ridge()}}) : checked;
  if (checked && hill.memory_at_ridge > hill.memory_most) {
    return fail(ErrorCode::invalid_argument,
                "a level sustains more memory instructions at the ridge than at most; "
                "measure it again");
  }
  return checked;
}

/// Applies a formula of cycles to a valid hill and intensity.
template <class Formula>
Result<double> cycles_by(const HillFigures& hill, double intensity, const Formula& formula) {
  auto checked = check_hill(hill);
  checked = checked ? check_not_negative({{"the intensity", intensity}}) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double ridge = hill.ridge();
  const double result = formula(ridge, (ridge + 1) * hill.memory_at_ridge);
  checked = check_positive({{"the number of cycles", result}});
  return checked ? Result<double>(result) : tl::unexpected<Error>(checked.error());
}

}  // namespace

Result<InFlight> in_flight(double effective_buffer, double ridge, double block_memory_instructions) {
  auto checked = check_positive({{"the effective size of the reorder buffer", effective_buffer},
                                 {"the number of memory instructions in a block", block_memory_instructions}});
  checked = checked ? check_not_negative({{"the ridge", ridge}}) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double blocks = effective_buffer / (block_memory_instructions * (ridge + 1));
  const bool fractional = blocks < 1;
  const double instructions = block_memory_instructions * (fractional ? blocks : std::floor(blocks));
  checked = check_positive({{"the number of instructions in flight", instructions}});
  return checked ? Result<InFlight>(InFlight{instructions, fractional}) : tl::unexpected<Error>(checked.error());
}

Result<double> memory_rate(const InFlight& in_flight, double latency_cycles) {
  auto checked = check_positive(
      {{"the number of instructions in flight", in_flight.instructions}, {"the latency", latency_cycles}});
  const double rate = in_flight.instructions / latency_cycles;
  checked = checked ? check_positive({{"the rate of memory instructions", rate}}) : checked;
  return checked ? Result<double>(rate) : tl::unexpected<Error>(checked.error());
}

Result<double> ridge_ipc(const HillFigures& hill) {
  if (auto checked = check_hill(hill); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double ipc = (hill.ridge() + 1) * hill.memory_at_ridge;
  const auto checked = check_positive({{"the IPC at the ridge", ipc}});
  return checked ? Result<double>(ipc) : tl::unexpected<Error>(checked.error());
}

Result<double> cycles_left(const HillFigures& hill, double intensity) {
  return cycles_by(hill, intensity, [&](double ridge, double ipc_at_ridge) {
    return intensity * (1 + 1 / ridge) / ipc_at_ridge + (1 - intensity / ridge) / hill.memory_most;
  });
}

Result<double> cycles_right(const HillFigures& hill, double intensity) {
  return cycles_by(hill, intensity, [&](double ridge, double ipc_at_ridge) {
    return (ridge + 1) / ipc_at_ridge + (intensity / ridge - 1) / hill.memory_most;
  });
}

Result<double> cycles(const HillFigures& hill, double intensity) {
  return cycles_by(hill, intensity, [&](double ridge, double ipc_at_ridge) {
    return std::min(intensity, ridge) * (1 + 1 / ridge) / ipc_at_ridge +
           std::abs(intensity / ridge - 1) / hill.memory_most;
  });
}

Result<double> hill_ipc(const HillFigures& hill, double intensity, double retire_width) {
  if (auto checked = check_positive({{"the retirement width", retire_width}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto needed = cycles(hill, intensity);
  return needed ? Result<double>(std::min((1 + intensity) / *needed, retire_width)) : needed;
}

Result<bool> rises_past_ridge(const HillFigures& hill) {
  if (auto checked = check_hill(hill); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return hill.memory_at_ridge / hill.memory_most < hill.ridge() / (hill.ridge() + 1);
}

Result<VectorisationResult> vectorisation(const Estimate& ipc_before, const Estimate& ipc_after, double lanes) {
  auto checked = check_positive({{"the number of lanes", lanes}});
  if (checked && lanes <= 1) {
    checked = fail(ErrorCode::invalid_argument, "vectors of one lane or less are no vectors; give two or more");
  }
  const auto efficiency = checked ? quotient(ipc_after, ipc_before, "the IPC before")
                                  : Result<Estimate>(tl::unexpected<Error>(checked.error()));
  if (!efficiency) {
    return tl::unexpected<Error>(efficiency.error());
  }
  const double worst = 1 / lanes;
  const bool may_be_full = efficiency->high() >= 1, may_be_nothing = efficiency->low() <= worst;
  const bool may_be_partial = efficiency->low() < 1 && efficiency->high() > worst;
  VectorisationResult result{*efficiency, Vectorisation::partial};
  // An interval around 1 or around 1 / lanes cannot exclude the values beside it, so it counts as that outcome.
  if (may_be_full && may_be_nothing) {
    result.outcome = Vectorisation::undecided;
  } else if (may_be_full || may_be_nothing || !may_be_partial) {
    result.outcome = may_be_full ? Vectorisation::full : Vectorisation::nothing;
  }
  return result;
}

Result<double> ipc_ratio(double speedup, double fewer_instructions) {
  auto checked = check_positive({{"the speed-up", speedup}, {"the reduction of instructions", fewer_instructions}});
  const double ratio = speedup / fewer_instructions;
  checked = checked ? check_positive({{"the ratio of IPC", ratio}}) : checked;
  return checked ? Result<double>(ratio) : tl::unexpected<Error>(checked.error());
}

}  // namespace crosstalk::models::roofline
