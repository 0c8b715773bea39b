// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_messages.h"

#include <errno.h>

#include "collectors/in_target/core/messages.h"

namespace crosstalk::in_target {

void watch_events_missing(long error, std::uint32_t opened) {
  constexpr long no_space = -ENOSPC;  // somebody else, a debugger say, holds debug registers
  static constinit Once once;
  if (!once.first()) {
    return;
  }
  if (error == no_space && opened > 0) {
    emit_message("few_debug_registers",
                 "some debug registers are held by another program (a debugger?): fewer lines are watched at a time");
  } else if (error == no_space) {
    emit_message("no_debug_register",
                 "all debug registers are held by another program (a debugger?): communication is not observed");
  } else if (error == -EMFILE) {
    emit_message("few_descriptors",
                 "the program's limit of descriptors leaves none for watchpoints that it would not miss: communication "
                 "is not observed in it; record it from outside, where it gives none: crosstalk record --observer");
  } else {
    emit_message("watchpoints_refused",
                 "the kernel refuses watchpoints to this program: communication is not observed in it");
  }
}

void too_many_strays() {
  static constinit Once once;
  if (once.first()) {
    emit_message("watchpoint_astray", "a watchpoint fired where none was set: some threads are no longer watched");
  }
}

void descriptors_scarce() {
  static constinit Once once;
  if (once.first()) {
    emit_message(
        "descriptors_scarce",
        "the program has few descriptors left under its limit, and could miss one that a watchpoint has for a "
        "moment: while that is so, communication is not observed in it; record it from outside, where it gives "
        "none: crosstalk record --observer");
  }
}

void descriptors_closed() {
  static constinit Once once;
  if (once.first()) {
    emit_message("descriptors_closed",
                 "the program closed descriptors that it did not open: communication is not observed in some threads");
  }
}

}  // namespace crosstalk::in_target
