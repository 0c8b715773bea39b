// SPDX-License-Identifier: Apache-2.0
// Threads are known to end by a pthread key: its destructor runs on return, pthread_exit and cancellation alike.
#pragma once

namespace crosstalk::in_target {

/// Makes the key. Normal context, once.
void end_threads_with_a_key();

}  // namespace crosstalk::in_target
