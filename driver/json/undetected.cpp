// SPDX-License-Identifier: Apache-2.0
#include "driver/json/undetected.h"

namespace crosstalk::driver {

Json unseen(const std::optional<attribution::Unseen>& found) {
  if (!found) {
    return nullptr;
  }
  Json consumers = Json::array();
  for (const attribution::UnseenOfConsumer& row : found->consumers) {
    consumers.push_back({{"consumer", row.consumer},
                         {"true_limit_s", number(row.cost.true_s)},
                         {"false_limit_s", number(row.cost.false_s)}});
  }
  return {{"true_limit_s", number(found->cost.true_s)},
          {"false_limit_s", number(found->cost.false_s)},
          {"consumers", consumers}};
}

Json undetected(const attribution::Undetected& found) {
  Json cannot_see = Json::array();
  for (const attribution::CannotSee& one : found.cannot_see) {
    cannot_see.push_back({{"code", one.code}, {"what", one.what}, {"within_limit", one.within_limit}});
  }
  return {{"evidence", attribution::evidence_name(found.evidence)},
          {"at_most_s", known(found.at_most_s)},
          {"why", found.why},
          {"cannot_see", cannot_see}};
}

}  // namespace crosstalk::driver
