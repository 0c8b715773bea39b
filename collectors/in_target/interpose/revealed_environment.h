// SPDX-License-Identifier: Apache-2.0
// What `environ` has for children that libc starts by itself (system, popen): it gives them all of it.
#pragma once

namespace crosstalk::in_target {

/// While one lives, `environ` has what makes children observed. Where several threads are at it, the first puts it in
/// and the last takes it out. Normal context.
class RevealedEnvironment {
 public:
  RevealedEnvironment();
  ~RevealedEnvironment();
  RevealedEnvironment(const RevealedEnvironment&) = delete;
  RevealedEnvironment& operator=(const RevealedEnvironment&) = delete;
};

}  // namespace crosstalk::in_target
