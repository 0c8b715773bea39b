// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/stack_writer.h"

namespace crosstalk::attribution {

std::uint32_t StackWriter::place_of(const LeafPlace& leaf) {
  const ProcessId process = view_.threads()[leaf.thread].process;
  return leaf.file != 0 ? places_.of(ModulePlace{leaf.file - 1, leaf.address})
                        : places_.of(Moment{process, UINT64_MAX}, leaf.address);
}

void StackWriter::append(const CallerStack& callers, std::vector<std::uint32_t>& to) {
  const auto [known, fresh] = callers_.try_emplace({callers.moment.process.value, callers.number});
  if (fresh) {
    const auto addresses = stacks_.addresses(callers.stack);
    for (std::size_t i = 1; i < addresses.size(); ++i) {
      // A return address may be the first byte of the next line, or of the next function: takes the call before it.
      known->second.push_back(places_.of(callers.moment, addresses[i] - 1));
    }
  }
  to.insert(to.end(), known->second.begin(), known->second.end());
}

}  // namespace crosstalk::attribution
