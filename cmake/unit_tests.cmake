# SPDX-License-Identifier: Apache-2.0
# crosstalk_unit_tests(TARGET [OPTION...]): the tests of an executable made with GoogleTest, each one of its own for ctest,
# with gtest_discover_tests()'s options. A sanitizer's runtime takes a quarter of a second to start, so that
# under one all tests of an executable run in one process: 230 processes instead of 1,750.
include(GoogleTest)
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)

function(crosstalk_unit_tests target)
  if(NOT CROSSTALK_SANITIZE)
    gtest_discover_tests(${target} ${ARGN})
    return()
  endif()
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES TIMEOUT 900)
endfunction()
