// SPDX-License-Identifier: Apache-2.0
// The code that processes have mapped, and its rows in the profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collectors/perf_data/records.h"
#include "profile/model.h"

namespace crosstalk::perf_import {

/// Texts, many of which are equal; keeps each once, at a fixed address.
class Names {
 public:
  [[nodiscard]] const std::string* intern(std::string_view text);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::unordered_set<std::string> names_;
  std::size_t bytes_ = 0;
};

/// An executable mapping of a process.
struct CodeMapping {
  std::uint64_t begin = 0, end = 0, file_offset = 0;
  std::uint64_t loaded_ns = 0, unloaded_ns = 0;  // unloaded 0: never
  const std::string* name = nullptr;
  const std::string* build_id = nullptr;          // hexadecimal; null: not in the record
  std::uint64_t inode = 0, inode_generation = 0;  // of the file; 0: not in the record
};

/// True for code of a file. Code that a program makes at run time has no file to be found in.
[[nodiscard]] bool is_code_of_file(const perf_data::Mapping& mapping);

/// True for code without a file: code made at run time, an executable heap, ...
[[nodiscard]] bool is_other_code(const perf_data::Mapping& mapping);

/// The present and past mappings of a process.
class CodeMappings {
 public:
  /// Adds a mapping; ends the mappings that it replaces.
  void add(const CodeMapping& mapping);
  /// Ends the mappings in [begin, end), where something else is mapped from now on; they go on beside it.
  void end(std::uint64_t begin, std::uint64_t end, std::uint64_t time_ns);
  void clear();
  [[nodiscard]] const std::vector<CodeMapping>& all() const { return all_; }

 private:
  void go_on(CodeMapping part, std::uint64_t time_ns);

  std::vector<CodeMapping> all_;
  std::map<std::uint64_t, std::size_t> now_;  // by begin; they do not overlap
};

/// Build ids by names of files. Kept apart from mappings: old files list them once, for all processes.
class BuildIds {
 public:
  void add(const perf_data::BuildId& id, Names& names);
  [[nodiscard]] const std::string* of(const CodeMapping& mapping) const;

 private:
  std::unordered_map<const std::string*, const std::string*> of_name_;
};

/// True if the file at the mapping's path, on the machine that was recorded, is another one than was mapped: it has
/// another inode. False where a file system's inodes do not tell.
[[nodiscard]] bool is_replaced(const CodeMapping& mapping);

/// Turns mappings into rows. If the file exists and has the mapped build id, its headers give the places of its code
/// and its data. Otherwise only the mapping and its place in the file are known, and a later reader of the file finds
/// its segments.
class ModuleRows {
 public:
  /// `replaced`: the file at the path is another one.
  [[nodiscard]] std::vector<profile::ModuleRow> rows(ProcessId process, const CodeMapping& mapping,
                                                     const std::string* build_id, bool replaced = false);

 private:
  struct Segment {
    std::uint64_t offset = 0, address = 0, file_bytes = 0, memory_bytes = 0;
    bool executable = false;
  };
  struct File {
    std::string build_id;
    std::vector<Segment> segments;  // none: it cannot be read
  };
  [[nodiscard]] const File& file(const std::string& path);
  [[nodiscard]] static File read_file(const std::string& path);

  std::unordered_map<std::string, File> files_;
};

}  // namespace crosstalk::perf_import
