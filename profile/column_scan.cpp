// SPDX-License-Identifier: Apache-2.0
#include "profile/column_scan.h"

namespace crosstalk::profile {

void ColumnScan::reject(const char* name, std::int64_t value) {
  if (error_.empty()) {
    error_ = std::string(name) + " is " + std::to_string(value);
  }
}

void ColumnScan::reject_length(const char* name, std::span<const std::uint8_t> blob) {
  reject(("the length of " + std::string(name)).c_str(), static_cast<std::int64_t>(blob.size()));
}

}  // namespace crosstalk::profile
