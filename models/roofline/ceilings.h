// SPDX-License-Identifier: Apache-2.0
// Ceilings of the original roofline model (ORM): bounds of loops that lack an optimisation, the same for all loops.
//
// Source: appendix A of "Roofline: An Insightful Visual Performance Model for Multicore Architectures" (Williams,
// Waterman, Patterson, CACM 52.4, 2009). Sections are named where they are used; "derived" marks formulas that follow
// from its prose.
//
// Bandwidths here count what moves: a store that fills its line first moves it twice (`moved_per_requested` in
// models/machine.h). STREAM's figures do not count that (A.1.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/roofline/roof.h"

namespace crosstalk::models::roofline {

/// The floating-point hardware that in-core ceilings are computed from.
struct CoreFigures {
  std::uint32_t cores = 1;
  std::uint32_t threads_per_core = 1;  ///< that share a floating-point unit
  double latency_cycles = 1;           ///< of a scalar operation, at least 1
  double lanes = 1;                    ///< w: elements of a vector
  double cycles_per_vector = 1;        ///< tau: cycles from one vector instruction to the next
  Estimate hz;
};

// A.1.3, flop/s of all cores, in ascending order if lanes >= cycles_per_vector. They are for one floating-point pipe;
// cores with several like pipes reach more with more independent operations.
/// C f min(1, T/L): one dependent chain a thread, so the latency is exposed. The source prints max, see
/// docs/reasons.md.
[[nodiscard]] Result<Roof> tlp_ceiling(const CoreFigures& core);
/// C f: independent scalar operations. Derived: the formula is missing in the source's text.
[[nodiscard]] Result<Roof> ilp_ceiling(const CoreFigures& core);
/// C f w / tau: independent vector operations. Derived likewise.
[[nodiscard]] Result<Roof> dlp_ceiling(const CoreFigures& core);
/// 2 C f w / tau: fused, or parallel, multiplications and additions: the peak.
[[nodiscard]] Result<Roof> multiply_add_peak(const CoreFigures& core);
/// C f: the peak of cores that issue one scalar operation a cycle and fuse none. Derived likewise.
[[nodiscard]] Result<Roof> single_issue_peak(const CoreFigures& core);
/// The ceilings above in the order TLP, ILP, DLP, peak.
[[nodiscard]] Result<std::vector<Roof>> in_core_ceilings(const CoreFigures& core);

/// The issue of instructions, for ceilings by instruction mix.
struct IssueFigures {
  double issue_width = 1;            ///< I: instructions a cycle
  double flops_per_instruction = 1;  ///< phi_i
  double stall_cycles = 0;           ///< s: during which a floating-point instruction stops all others from issuing
};
/// A.1.4: C f x phi_i / (1/I + x s), at most the peak, if the part x (0 < x <= 1) of the instructions is floating
/// point. Derived.
[[nodiscard]] Result<Roof> mix_ceiling(const CoreFigures& core, const IssueFigures& issue, double fp_share,
                                       const Roof& peak);
/// For x = 1, 1/2, ... 2^-(count - 1), descending; count 1 to 64.
[[nodiscard]] Result<std::vector<Roof>> mix_ceilings(const CoreFigures& core, const IssueFigures& issue,
                                                     std::uint32_t count, const Roof& peak);

/// Load balance comes before optimisation in a core (fig. A2), or after it (fig. A3). Only the captions of the figures
/// say so; the places of their ceilings are inferred.
enum class ImbalanceOrder : std::uint8_t { first, last };
/// A.2.1: base / 2^k for k = 1 ... log2(threads), down to one thread's part of the base; descending, empty for one
/// thread. The base is the TLP ceiling where balancing comes first, or else the peak.
[[nodiscard]] Result<std::vector<Roof>> imbalance_ceilings(ImbalanceOrder order, const Roof& tlp, const Roof& peak);
/// U = sum(t) / max(t), from 1 to the number of threads: the threads' worth of work that runs at a time. Derived.
[[nodiscard]] Result<double> utilisation(std::span<const double> seconds_by_thread);
/// peak U / P: the ceiling of a loop whose P threads are so loaded. Derived.
[[nodiscard]] Result<Roof> measured_balance_ceiling(const Roof& peak, std::span<const double> seconds_by_thread);

/// One bandwidth, measured with an optimisation and all those before it in `Ceiling`'s order.
struct MeasuredStep {
  Ceiling step = Ceiling::one_socket;  ///< one_socket, affinity, software_prefetch or snoop_filter
  Estimate bytes_per_s;
};
/// A.1.2: ascending. A step that does not raise the bandwidth has no ceiling of its own.
[[nodiscard]] Result<std::vector<Roof>> bandwidth_ceilings(std::vector<MeasuredStep> steps, std::uint32_t threads);

/// A bandwidth that was measured while some of the cores make memory traffic.
struct MeasuredCores {
  std::uint32_t active = 1;
  Estimate bytes_per_s;
};
/// A.2.2, fig. A4: ascending, named by the part of the cores, without steps that do not raise the bandwidth.
[[nodiscard]] Result<std::vector<Roof>> active_core_ceilings(std::vector<MeasuredCores> measured, std::uint32_t cores);

/// Little's law (A.2.2): bytes in flight = latency x bandwidth.
[[nodiscard]] Result<Estimate> bytes_in_flight(const Estimate& latency_s, const Estimate& bytes_per_s);
/// min(B, bytes in flight / latency): the bandwidth of a loop that has fewer bytes in flight. Derived from Little's
/// law.
[[nodiscard]] Result<Estimate> bandwidth_of(const Estimate& in_flight, const Estimate& latency_s,
                                            const Estimate& bytes_per_s);

}  // namespace crosstalk::models::roofline
