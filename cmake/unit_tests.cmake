# SPDX-License-Identifier: Apache-2.0
# Unit tests: one program for each room under tests/, made with GoogleTest. They are built under sanitizers
# (CROSSTALK_SANITIZE), which is where they are run; a build without has only those that a sanitizer would disturb
# (PLAIN). A developer's build has all of them.
set(CROSSTALK_UNIT_TESTS "AUTO" CACHE STRING
  "AUTO: under a sanitizer the tests that it can check, else only the others; ALL: all tests of either kind")
find_package(GTest REQUIRED)

# Each run of a program leaves its results here (GoogleTest's XML), for tests/count_tests.py.
set(crosstalk_unit_results ${CMAKE_BINARY_DIR}/unit_results)

# Sets `variable` to those of a program's sources that this build compiles; empty: it has no such program.
function(crosstalk_chosen_sources variable plain sources concurrent)
  if(CROSSTALK_SANITIZE MATCHES "thread")
    set(sources ${concurrent})
  endif()
  if(CROSSTALK_SANITIZE AND plain)
    set(sources)
  elseif(NOT CROSSTALK_SANITIZE AND NOT plain AND NOT CROSSTALK_UNIT_TESTS STREQUAL "ALL")
    set(sources)
  endif()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# One test of ctest's: a program with a filter of its tests' names.
function(crosstalk_unit_entry name target filter labels timeout environment)
  add_test(NAME ${name} COMMAND ${target} --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS 2
    ENVIRONMENT "GTEST_OUTPUT=xml:${crosstalk_unit_results}/${name}.xml;${environment}")
endfunction()

# crosstalk_test_program(NAME SOURCES file... [HELPERS file...] [LIBRARIES library...] [DEFINITIONS definition...]
#                        [DEPENDS target...] [CONCURRENT file...] [SHARDS n] [TIMEOUT seconds] [PLAIN] [VERIFY])
# The program test_NAME. A start under a sanitizer takes a quarter of a second, so ctest has one entry for all its tests,
# unit.NAME, or SHARDS of them, unit.NAME.1 and so on, which run side by side.
#   HELPERS      what the tests need and has no tests
#   CONCURRENT   those of SOURCES whose subject threads share: the thread sanitizer's build has these, with HELPERS
#   PLAIN        a sanitizer would change what is tested: in builds without one only
#   VERIFY       takes minutes: with the label `verify`, for `./dev verify` only
function(crosstalk_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 want "PLAIN;VERIFY" "SHARDS;TIMEOUT"
    "SOURCES;HELPERS;LIBRARIES;DEFINITIONS;DEPENDS;CONCURRENT")
  if(want_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "crosstalk_test_program(${name}) knows no ${want_UNPARSED_ARGUMENTS}")
  endif()
  crosstalk_chosen_sources(sources "${want_PLAIN}" "${want_SOURCES}" "${want_CONCURRENT}")
  if(NOT sources)
    return()
  endif()
  set(target test_${name})
  crosstalk_batches(${target} ${want_HELPERS} ${sources})
  add_executable(${target} ${${target}})
  target_link_libraries(${target} PRIVATE ${want_LIBRARIES} GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_definitions(${target} PRIVATE ${want_DEFINITIONS})
  if(want_DEPENDS)
    add_dependencies(${target} ${want_DEPENDS})
  endif()
  if(NOT want_TIMEOUT)
    set(want_TIMEOUT 300)
  endif()
  if(want_VERIFY)
    set_target_properties(${target} PROPERTIES CROSSTALK_VERIFY ON)
    crosstalk_unit_entry(unit.${name} ${target} "*" "unit;verify" 3600 "")
    return()
  endif()
  if(NOT want_SHARDS OR want_SHARDS EQUAL 1)
    crosstalk_unit_entry(unit.${name} ${target} "*" unit ${want_TIMEOUT} "")
    return()
  endif()
  foreach(shard RANGE 1 ${want_SHARDS})
    math(EXPR index "${shard} - 1")
    crosstalk_unit_entry(unit.${name}.${shard} ${target} "*" unit ${want_TIMEOUT}
      "GTEST_TOTAL_SHARDS=${want_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
