// SPDX-License-Identifier: Apache-2.0
// Modules that stay loaded from one Symbolizer to the next: a live view analyses a profile every other second, and
// reading the program's files again each time would cost more than all the rest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "symbolizer/elf/debuginfod.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

class Module;

/// Put it into Options::cache. Not thread-safe: only one of the Symbolizers that share it may live at a time.
class ModuleCache {
 public:
  /// Symbolizers for which a module is kept although they do not have it.
  static constexpr std::uint64_t kept_unused = 30;

  ModuleCache();
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  /// Begins the time of a Symbolizer: drops modules that the last `kept_unused` of them did not have.
  void begin();
  /// Returns the module of the file that `spec` and the options identify, loaded if it was before. A file that could
  /// not be found is looked for again if the options' recording has a copy. `options` and `servers` must outlive the
  /// module's use by the present Symbolizer.
  [[nodiscard]] std::shared_ptr<Module> module(const ModuleSpec& spec, const Options& options, Debuginfod& servers);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Key {  // what identifies a file
    std::string path, build_id, sysroot, architecture, host;
    std::uint64_t content_hash = 0;
    bool is_vdso = false;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::shared_ptr<Module> module;
    std::uint64_t used = 0;
  };
  std::map<Key, Entry> entries_;
  std::uint64_t now_ = 0;  // Symbolizers so far
};

}  // namespace crosstalk::symbolizer
