# SPDX-License-Identifier: Apache-2.0
# -DCROSSTALK_SANITIZE=address,undefined or thread. Never applied to a target whose property CROSSTALK_BARE is
# set: libcrosstalk.so, which lives in other people's processes, and the programs that are observed in tests.
set(CROSSTALK_SANITIZE "" CACHE STRING "sanitizers for host code and tests")
if(CROSSTALK_SANITIZE)
  set(CROSSTALK_SANITIZE_FLAGS -fsanitize=${CROSSTALK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  set(crosstalk_sanitized "$<NOT:$<BOOL:$<TARGET_PROPERTY:CROSSTALK_BARE>>>")
  add_compile_options("$<${crosstalk_sanitized}:${CROSSTALK_SANITIZE_FLAGS}>")
  add_link_options("$<${crosstalk_sanitized}:${CROSSTALK_SANITIZE_FLAGS}>")
endif()
if(CROSSTALK_FUZZ)
  add_compile_options("$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CROSSTALK_BARE>>>:-fsanitize=fuzzer-no-link>")
endif()
# -DCROSSTALK_COVERAGE=ON: the same code counts which of its lines run (`./dev coverage`).
option(CROSSTALK_COVERAGE "count the lines that run" OFF)
if(CROSSTALK_COVERAGE)
  add_compile_options("$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CROSSTALK_BARE>>>:--coverage>")
  add_link_options(--coverage)  # workloads, too: some link the calibration's kernels
endif()
