// SPDX-License-Identifier: Apache-2.0
// Equations of the mansard roofline model (MaRM): limits of retirement, of the reorder buffer and of latency. Its
// points have the retired instructions a cycle (IPC) of one core over the intensity AI = I_NM / I_M, non-memory
// instructions for each memory instruction. An instruction that loads and computes is one memory instruction.
//
// Source: SPARCITY D1.2, 2.3.1, equations 5 to 11.
//
// The symbols of the equations: M is IPC_M,Max of a level, memory instructions a cycle that the level sustains at most;
// m is IPC_M(IF_M), what it sustains with the accesses that the reorder buffer holds at the ridge; N is IPC_NM of
// non-memory instructions; R = N / M is the ridge; D_M is the number of instructions that a core retires a cycle.
//
// IPC says nothing of the work of an instruction. Fewer or wider instructions may take less time at a lower IPC, so
// reports print the time beside it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "models/roofline/estimate.h"

namespace crosstalk::models::roofline {

/// IF_M: memory instructions in the reorder buffer at the ridge.
struct InFlight {
  double instructions = 0;
  bool fractional = false;  ///< no whole block fits the buffer, so the quotient was not rounded down
};
/// B_M floor(ROB_eff / (B_M (R + 1))) (eq. 6), with B_M memory instructions a block; not rounded where that would be 0.
/// The source's brackets may also mean no rounding, see docs/reasons.md. `ridge` may be 0: memory instructions alone.
[[nodiscard]] Result<InFlight> in_flight(double effective_buffer, double ridge, double block_memory_instructions);
/// m = IF_M / Lat(IF_M), instructions a cycle (Little's law, in the text of eq. 7).
[[nodiscard]] Result<double> memory_rate(const InFlight& in_flight, double latency_cycles);

/// One level's limits, in instructions a cycle.
struct HillFigures {
  double memory_most = 0;                                             ///< M
  double memory_at_ridge = 0;                                         ///< m, at most M
  double other = 0;                                                   ///< N
  [[nodiscard]] double ridge() const { return other / memory_most; }  ///< R, of positive figures
};
/// (R + 1) m (eq. 7): IPC at the ridge.
[[nodiscard]] Result<double> ridge_ipc(const HillFigures& hill);
/// Cycles for each memory instruction left of the ridge (eq. 8), right of it (eq. 9), and anywhere (eq. 10).
[[nodiscard]] Result<double> cycles_left(const HillFigures& hill, double intensity);
[[nodiscard]] Result<double> cycles_right(const HillFigures& hill, double intensity);
[[nodiscard]] Result<double> cycles(const HillFigures& hill, double intensity);
/// min((1 + AI) / cycles, D_M) (eqs 5 and 11). At AI = 0 it is M, at R (R + 1) m, and N in the limit (derived).
[[nodiscard]] Result<double> hill_ipc(const HillFigures& hill, double intensity, double retire_width);
/// True if IPC rises past the ridge: m / M < R / (R + 1) (derived). Latency then limits loops at the ridge.
[[nodiscard]] Result<bool> rises_past_ridge(const HillFigures& hill);

/// The gain of vectorising, if scalar and vector instructions have the same throughput.
enum class Vectorisation : std::uint8_t {
  full,       ///< the IPC did not fall: the time fell by the number of lanes
  partial,    ///< in between
  nothing,    ///< the IPC fell by the number of lanes or more: the time did not fall
  undecided,  ///< the interval spans two of these
};
struct VectorisationResult {
  Estimate efficiency;  ///< IPC_after / IPC_before: 1 full, 1 / lanes nothing gained
  Vectorisation outcome = Vectorisation::undecided;
};
[[nodiscard]] Result<VectorisationResult> vectorisation(const Estimate& ipc_before, const Estimate& ipc_after,
                                                        double lanes);

/// IPC_after / IPC_before of a program that became `speedup` times as fast with its instructions divided by
/// `fewer_instructions` (2.3.3). A loop whose instructions fall by more than its time has a lower IPC.
[[nodiscard]] Result<double> ipc_ratio(double speedup, double fewer_instructions);

}  // namespace crosstalk::models::roofline
