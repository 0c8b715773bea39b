// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/weighted_stacks.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "attribution/stacks/communication_stacks.h"
#include "attribution/stacks/stack_places.h"
#include "attribution/stacks/time_stacks.h"

namespace crosstalk::attribution {
namespace {

auto rank_of(const TimeStack& row) { return std::tie(row.thread, row.places, row.callers); }
auto rank_of(const CommunicationStack& row) {
  return std::tie(row.thread, row.places, row.producer, row.object, row.true_sharing, row.callers);
}
void join(TimeStack& into, const TimeStack& row) {
  into.samples += row.samples;
  into.weight += row.weight;
}
void join(CommunicationStack& into, const CommunicationStack& row) {
  into.cost_s += row.cost_s;
  into.gain_s += row.gain_s;
}

/// Numbers the places anew, sorts the rows and joins equal ones.
template <class Row>
void settle(std::vector<Row>& rows, const std::vector<std::uint32_t>& index) {
  for (Row& row : rows) {
    std::transform(row.places.begin(), row.places.end(), row.places.begin(),
                   [&](std::uint32_t place) { return index[place]; });
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return rank_of(a) < rank_of(b); });
  std::vector<Row> joined;
  for (Row& row : rows) {
    if (!joined.empty() && rank_of(joined.back()) == rank_of(row)) {
      join(joined.back(), row);
    } else {
      joined.push_back(std::move(row));
    }
  }
  rows = std::move(joined);
}

}  // namespace

WeightedStacks weighted_stacks(const StackInputs& inputs, const StacksWanted& wanted) {
  WeightedStacks result;
  StackWriter writer(inputs.view, inputs.stacks);
  TimeStacks time(inputs, writer);
  time.read();
  result.time = time.finish(wanted.lend);
  CommunicationStacks communication(inputs, writer, time.lenders());
  communication.read();
  result.communication = communication.finish(wanted.lend, result.objects);
  StackPlaces::Finished places = std::move(writer.places()).finish();
  result.files = std::move(places.files);
  result.places = std::move(places.places);
  settle(result.time, places.index);
  settle(result.communication, places.index);
  return result;
}

}  // namespace crosstalk::attribution
