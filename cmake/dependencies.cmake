# SPDX-License-Identifier: Apache-2.0
# Debian's packages, each with its reason in docs/dependencies.md.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ELFUTILS REQUIRED IMPORTED_TARGET libdw libelf)
pkg_check_modules(DEBUGINFOD REQUIRED IMPORTED_TARGET libdebuginfod)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(zydis REQUIRED)
find_library(PFM pfm REQUIRED)
