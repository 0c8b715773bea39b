// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/messages.h"

#include <cstddef>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/records.h"

namespace crosstalk::in_target {

void emit_message(const char* code, const char* text) {
  profile::Message record;
  record.header.type = profile::RecordType::message;
  record.time_ns = monotonic_ns();
  for (std::size_t i = 0; i + 1 < sizeof record.code && code[i] != 0; ++i) {
    record.code[i] = code[i];
  }
  std::size_t length = 0;
  while (text[length] != 0) {
    ++length;
  }
  emit(&record, sizeof record, text, length);
}

}  // namespace crosstalk::in_target
