# SPDX-License-Identifier: Apache-2.0
# Writes the names of the kernel's system calls, as its headers have them: `{0, "read"},` a line.
execute_process(
  COMMAND ${CMAKE_C_COMPILER} -E -dM -x c -include asm/unistd_64.h /dev/null
  OUTPUT_VARIABLE definitions
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "#define __NR_[a-z0-9_]+ [0-9]+" definitions "${definitions}")
list(SORT definitions)
list(TRANSFORM definitions REPLACE "#define __NR_([a-z0-9_]+) ([0-9]+)" "{\\2, \"\\1\"},\n")
list(JOIN definitions "" definitions)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/system_call_names.inc CONTENT "${definitions}" @ONLY)
