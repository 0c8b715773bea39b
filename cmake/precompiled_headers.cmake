# SPDX-License-Identifier: Apache-2.0
# A third of a unit test's compilation is the standard library's and GoogleTest's headers, the same for all of them. The
# libraries gain nothing by it, and are compiled without, which finds missing includes.
set(crosstalk_precompiled
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstring> <deque> <filesystem>
  <fstream> <functional> <initializer_list> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span>
  <sstream> <string> <string_view> <thread> <tuple> <type_traits> <unordered_map> <unordered_set> <utility> <variant>
  <vector> <gtest/gtest.h>)

# crosstalk_precompile_test(TARGET): a test made with GoogleTest takes these headers precompiled.
function(crosstalk_precompile_test target)
  if(NOT TARGET crosstalk_test_headers)
    set(source ${CMAKE_BINARY_DIR}/crosstalk_test_headers.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "// Only its precompiled headers are wanted.\n")
    add_library(crosstalk_test_headers OBJECT ${source})
    target_link_libraries(crosstalk_test_headers PRIVATE GTest::gtest)
    target_precompile_headers(crosstalk_test_headers PRIVATE ${crosstalk_precompiled})
  endif()
  target_precompile_headers(${target} REUSE_FROM crosstalk_test_headers)
endfunction()
