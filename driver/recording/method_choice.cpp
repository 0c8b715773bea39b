// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/method_choice.h"

namespace crosstalk::driver {
namespace {

using profile::Method;

/// Returns why lines cannot be probed; empty if they can.
std::string obstacle_to_probes(const collectors::Probe& probe) {
  const auto* const facility = facility_of(probe, "line probes");
  return facility == nullptr || facility->available ? "" : facility->found;
}

bool can_watch(const collectors::Probe& probe, bool from_outside) {
  return from_outside ? probe.watchpoints_allowed : probe.watchpoints_inside;
}

std::string remedy_for_watches(const collectors::Probe& probe, bool from_outside) {
  return !from_outside && probe.watchpoints_allowed && !probe.watchpoints_inside ? "record with --observer"
                                                                                 : probe.watch_trial.remedy;
}

tl::unexpected<Error> refusal(const std::string& option, const std::string& obstacle, const std::string& remedy) {
  return fail(ErrorCode::unsupported, option + ": " + obstacle + (remedy.empty() ? "" : "; " + remedy));
}

}  // namespace

Result<MethodChoice> choose_method(MethodWish wish, const collectors::Probe& probe, bool from_outside,
                                   std::uint32_t registers) {
  const std::string no_probes = obstacle_to_probes(probe);
  switch (wish) {
    case MethodWish::watch:
      if (!can_watch(probe, from_outside)) {
        return refusal("--method watch", probe.watch_trial.why, remedy_for_watches(probe, from_outside));
      }
      return MethodChoice{Method::watch, "--method watch asked for it", true};
    case MethodWish::probe:
      if (!no_probes.empty()) {
        return refusal("--method probe", no_probes, "");
      }
      return MethodChoice{Method::probe, "--method probe asked for it", true};
    case MethodWish::automatic:
      break;
  }
  const std::string& found = probe.watch_trial.why;
  if (can_watch(probe, from_outside) && registers != 0) {
    return MethodChoice{Method::watch, found.empty() ? "the self-test of watchpoints passed" : found};
  }
  const std::string no_watches = registers == 0 ? "--watchpoints 0 leaves no debug register" : found;
  return no_probes.empty() ? MethodChoice{Method::probe, no_watches}
                           : MethodChoice{Method::none, no_watches + ", and " + no_probes};
}

}  // namespace crosstalk::driver
