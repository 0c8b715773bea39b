# SPDX-License-Identifier: Apache-2.0
# Half of a unit's compilation is the parsing of headers that its neighbours parse too, so several sources are compiled as
# one unit. Names in unnamed namespaces must differ within a library. -DCROSSTALK_BATCH=1 compiles each source by itself.
set(CROSSTALK_BATCH 10 CACHE STRING "sources that are compiled as one unit")

# crosstalk_batches(VARIABLE SOURCE...): sets VARIABLE to the files to compile for these sources of the current folder.
# Batches hold neighbours in the list, and name their sources relative to the project, so that a compiler cache serves
# every checkout. A source with a COMPILE_OPTIONS property stays by itself, as does what is not C++.
function(crosstalk_batches variable)
  if(CROSSTALK_BATCH LESS_EQUAL 1)
    set(${variable} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(files)
  set(batched)
  foreach(source IN LISTS ARGN)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options OR NOT source MATCHES "[.]cpp$" OR source MATCHES "\\$<")
      list(APPEND files ${source})
    else()
      get_filename_component(source ${source} ABSOLUTE)
      list(APPEND batched ${source})
    endif()
  endforeach()
  list(LENGTH batched count)
  # Full batches and a rest, so that a source that is appended to its list changes the last batch only.
  math(EXPR batches "(${count} + ${CROSSTALK_BATCH} - 1) / ${CROSSTALK_BATCH}")
  foreach(batch RANGE 1 ${batches})
    if(batches EQUAL 0)
      break()
    endif()
    math(EXPR first "(${batch} - 1) * ${CROSSTALK_BATCH}")
    list(SUBLIST batched ${first} ${CROSSTALK_BATCH} members)
    set(content "// Compiled together; made by cmake/batches.cmake.\n")
    foreach(member IN LISTS members)
      file(RELATIVE_PATH member ${CMAKE_SOURCE_DIR} ${member})
      string(APPEND content "#include \"${member}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${variable}_${batch}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${content}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# crosstalk_library(NAME SOURCE...): a static library of these sources, compiled in batches.
function(crosstalk_library name)
  crosstalk_batches(${name} ${ARGN})
  add_library(${name} STATIC ${${name}})
endfunction()
