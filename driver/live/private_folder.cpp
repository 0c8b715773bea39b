// SPDX-License-Identifier: Apache-2.0
#include "driver/live/private_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace crosstalk::driver::live {

Result<PrivateFolder> PrivateFolder::make() {
  const char* const chosen = std::getenv("TMPDIR");
  const std::string below = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::string path = below + "/crosstalk-top-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {  // with mode 0700
    return fail(errno == EACCES || errno == EROFS ? ErrorCode::permission : ErrorCode::system,
                "no folder can be made in " + below + ": " + std::strerror(errno) +
                    "; name another place by the variable TMPDIR");
  }
  return PrivateFolder(path);
}

PrivateFolder::~PrivateFolder() {
  if (!path_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace crosstalk::driver::live
