// SPDX-License-Identifier: Apache-2.0
// Changes `environ` for children that libc starts by itself (system, popen): it gives them all of `environ`.
#pragma once

namespace crosstalk::in_target {

/// While one lives, `environ` has the entries that make children observed. The first of several threads puts them in
/// and the last takes them out. Normal context.
class RevealedEnvironment {
 public:
  RevealedEnvironment();
  ~RevealedEnvironment();
  RevealedEnvironment(const RevealedEnvironment&) = delete;
  RevealedEnvironment& operator=(const RevealedEnvironment&) = delete;
};

}  // namespace crosstalk::in_target
