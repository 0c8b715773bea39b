# SPDX-License-Identifier: Apache-2.0
# crosstalk_python_tests(LABEL label FILES file... [ENVIRONMENT setting...] [SERIAL class...] [SERIAL_ALL] [TIMEOUT s])
# Each test method of the files (unittest; test_SUBJECT.py) is a test of its own for ctest, LABEL.SUBJECT.CLASS.METHOD, so
# that a report names what failed. A test that ends with 77 was skipped. Those of the classes SERIAL, or all, run alone:
# they compare measured times with the truth, and the machine may have only two processors.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

function(crosstalk_python_tests)
  cmake_parse_arguments(PARSE_ARGV 0 want "SERIAL_ALL" "LABEL;TIMEOUT" "FILES;ENVIRONMENT;SERIAL")
  if(NOT want_TIMEOUT)
    set(want_TIMEOUT 180)
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${want_FILES})
  foreach(test_file IN LISTS want_FILES)
    get_filename_component(subject ${test_file} NAME_WE)
    string(REGEX REPLACE "^test_" "" subject ${subject})
    file(STRINGS ${test_file} definitions REGEX "^(class [A-Za-z]+|    def test_[a-z0-9_]+)")
    set(class "")
    foreach(definition IN LISTS definitions)
      if(definition MATCHES "^class ([A-Za-z]+)")
        set(class ${CMAKE_MATCH_1})
        continue()
      endif()
      string(REGEX MATCH "test_[a-z0-9_]+" method "${definition}")
      set(name ${want_LABEL}.${subject}.${class}.${method})
      add_test(NAME ${name} COMMAND Python3::Interpreter -B ${test_file} ${class}.${method})
      set_tests_properties(${name} PROPERTIES LABELS ${want_LABEL} SKIP_RETURN_CODE 77 TIMEOUT ${want_TIMEOUT}
        ENVIRONMENT "${want_ENVIRONMENT}")
      if(want_SERIAL_ALL OR class IN_LIST want_SERIAL)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
      endif()
    endforeach()
  endforeach()
endfunction()
