# SPDX-License-Identifier: Apache-2.0
# ccache, where it is installed. Paths below the project are hashed relative to it, so that one checkout's objects serve
# every other. -DCROSSTALK_CCACHE=OFF compiles without it.
option(CROSSTALK_CCACHE "compile through ccache where it is installed" ON)
find_program(CROSSTALK_CCACHE_PROGRAM ccache)
mark_as_advanced(CROSSTALK_CCACHE_PROGRAM)
if(CROSSTALK_CCACHE AND CROSSTALK_CCACHE_PROGRAM)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CROSSTALK_CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
# Debug information names sources relative to the project, too.
add_compile_options("$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CROSSTALK_BARE>>>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>")
