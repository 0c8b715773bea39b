// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/module_cache.h"

#include "symbolizer/module.h"

namespace crosstalk::symbolizer {

ModuleCache::ModuleCache() = default;
ModuleCache::~ModuleCache() = default;

void ModuleCache::begin() {
  ++now_;
  std::erase_if(entries_, [this](const auto& entry) { return entry.second.used + kept_unused < now_; });
}

std::shared_ptr<Module> ModuleCache::module(const ModuleSpec& spec, const Options& options, Debuginfod& servers) {
  Entry& entry = entries_[{spec.path, spec.build_id, options.sysroot, options.foreign_architecture, options.other_host,
                           spec.content_hash, spec.is_vdso}];
  entry.used = now_;
  const bool found_now = entry.module && entry.module->has_no_file() && options.kept_copy && options.kept_copy(spec);
  if (!entry.module || found_now) {
    entry.module = std::make_shared<Module>(spec, options, servers);
  } else {
    entry.module->serve(options, servers);
  }
  return entry.module;
}

}  // namespace crosstalk::symbolizer
