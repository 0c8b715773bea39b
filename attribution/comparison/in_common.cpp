// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/in_common.h"

#include <algorithm>
#include <set>
#include <string>

#include "attribution/program/own_code.h"
#include "attribution/program/program_names.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

using Names = std::set<std::string>;

/// True for a file of code that does not belong to the system.
bool is_own_module(const std::string& path) {
  return !is_runtime_library(path) && !path.starts_with("/usr/lib") && !path.starts_with("/lib") && path != "[vdso]";
}

Names source_files(const Analysis& analysis) {
  Names files;
  const auto add = [&](const std::string& file, const std::string& module) {
    if (is_own_module(module) && !file.empty() && !file.starts_with("/usr/") &&
        !is_library_code({"", {file, 1}, false})) {
      files.insert(file);
    }
  };
  for (const LinePair& pair : analysis.communication.line_pairs) {
    add(pair.producer_file, pair.producer_module);
    add(pair.consumer_file, pair.consumer_module);
  }
  for (const LoopRow& loop : analysis.loops) {
    add(loop.file, loop.module);
  }
  for (const FunctionRow& function : analysis.functions) {
    add(function.file, function.module);
  }
  return files;
}

/// The program's functions. Without debug information, symbols are the only source.
Names functions(const Analysis& analysis) {
  Names names;
  const auto add = [&](const std::string& function, const std::string& module) {
    const bool everywhere = function == "main" || function == "_start" || function.starts_with("main(");
    if (is_own_module(module) && !everywhere && !is_unknown({function, {}, false})) {
      names.insert(function);
    }
  };
  for (const FunctionRow& row : analysis.functions) {
    add(row.function, row.module);
  }
  for (const LoopRow& row : analysis.loops) {
    add(row.function, row.module);
  }
  return names;
}

/// The names of global variables: other objects are named after their allocation.
Names variables(const Analysis& analysis) {
  Names names;
  for (const ObjectRow& object : analysis.communication.objects) {
    if (object.kind == ObjectKind::global && object.sharing.kind != SharingKind::runtime) {
      names.insert(object.name);
    }
  }
  return names;
}

bool overlap(const Names& a, const Names& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

}  // namespace

bool have_in_common(const Analysis& before, const Analysis& after) {
  return program_of(before.session.command) == program_of(after.session.command) ||
         overlap(source_files(before), source_files(after)) || overlap(functions(before), functions(after)) ||
         overlap(variables(before), variables(after));
}

}  // namespace crosstalk::attribution::comparison
