// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/shared_line.h"

namespace crosstalk::simulation {

std::optional<Transfer> SharedLine::transfer(std::uint32_t thread, const Access& access) const {
  if (last_store_ == 0 || last_storer_ == thread || last_store_ <= last_access_[thread]) {
    return std::nullopt;
  }
  return Transfer{last_storer_, stored_[last_storer_][access.word] > last_access_[thread]};
}

bool SharedLine::invalidates(std::uint32_t thread, const Access& access) const {
  return stores(access.kind) && last_toucher_ != UINT32_MAX && last_toucher_ != thread;
}

void SharedLine::touch(std::uint32_t thread, const Access& access) {
  last_access_[thread] = ++now_;
  last_toucher_ = thread;
  if (stores(access.kind)) {
    last_store_ = now_;
    last_storer_ = thread;
    stored_[thread][access.word] = now_;
  }
}

}  // namespace crosstalk::simulation
