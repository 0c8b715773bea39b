// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/address_space.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>

namespace crosstalk::attribution {
namespace {

bool alive(const MappedModule& module, std::uint64_t time_ns) {
  return module.loaded_ns <= time_ns && (module.unloaded_ns == 0 || time_ns < module.unloaded_ns);
}

/// Chooses among the mappings at an address: the latest one mapped at the time, else the first one mapped later.
class Choice {
 public:
  explicit Choice(std::uint64_t time_ns) : time_ns_(time_ns) {}
  void offer(const MappedModule& module) {
    if (alive(module, time_ns_)) {
      if (now_ == nullptr || module.loaded_ns > now_->loaded_ns) {
        now_ = &module;
      }
    } else if (module.loaded_ns > time_ns_ && (later_ == nullptr || module.loaded_ns < later_->loaded_ns)) {
      later_ = &module;
    }
  }
  [[nodiscard]] const MappedModule* best() const { return now_ != nullptr ? now_ : later_; }

 private:
  std::uint64_t time_ns_;
  const MappedModule* now_ = nullptr;
  const MappedModule* later_ = nullptr;
};

/// Adds the mappings that each process inherits by fork, ancestors first. Damaged profiles may name a process as its
/// own ancestor; such a chain is cut.
class Inheritance {
 public:
  Inheritance(std::span<const profile::ProcessRow> processes, std::vector<std::vector<MappedModule>>& own)
      : processes_(processes), own_(own), state_(own.size(), State::untouched) {}

  void resolve_all() {
    for (std::uint32_t i = 0; i < own_.size(); ++i) {
      resolve(i);
    }
  }

 private:
  enum class State : std::uint8_t { untouched, on_chain, done };

  void resolve(std::uint32_t process) {
    std::vector<std::uint32_t> chain;  // from the process to its eldest unresolved ancestor
    std::uint32_t at = process;
    while (state_[at] == State::untouched) {
      state_[at] = State::on_chain;
      chain.push_back(at);
      const auto& parent = processes_[at].modules_of;
      if (!parent || parent->value >= own_.size()) {
        break;
      }
      at = parent->value;
    }
    std::for_each(chain.rbegin(), chain.rend(), [this](std::uint32_t id) {
      inherit(id);
      state_[id] = State::done;
    });
  }

  void inherit(std::uint32_t process) {
    const profile::ProcessRow& row = processes_[process];
    if (!row.modules_of || row.modules_of->value >= own_.size() || state_[row.modules_of->value] != State::done) {
      return;
    }
    for (MappedModule module : own_[row.modules_of->value]) {
      if (alive(module, row.begin_ns)) {
        module.loaded_ns = 0;  // before anything that the child loads itself
        module.unloaded_ns = 0;
        own_[process].push_back(module);
      }
    }
  }

  std::span<const profile::ProcessRow> processes_;
  std::vector<std::vector<MappedModule>>& own_;
  std::vector<State> state_;
};

}  // namespace

AddressSpaces::AddressSpaces(std::span<const profile::ProcessRow> processes,
                             std::span<const profile::ModuleRow> modules)
    : spaces_(processes.size()) {
  std::map<std::tuple<std::string, std::string, std::uint64_t, bool>, std::uint32_t> known;
  std::vector<std::vector<MappedModule>> own(processes.size());
  for (const profile::ModuleRow& row : modules) {
    if (row.process.value >= own.size()) {
      continue;
    }
    const auto [it, fresh] = known.try_emplace({row.path, row.build_id, row.content_hash, row.is_vdso},
                                               static_cast<std::uint32_t>(files_.size()));
    if (fresh) {
      files_.push_back({row.path, row.build_id, row.is_vdso, row.content_hash});
    }
    own[row.process.value].push_back({row.begin, row.end, row.bias, it->second, row.tls_offset, row.tls_size,
                                      row.loaded_ns, row.unloaded_ns, row.file_offset});
  }
  Inheritance(processes, own).resolve_all();
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (const MappedModule& module : own[i]) {
      spaces_[i].add(module.begin, module.end, module);
    }
    spaces_[i].build();
  }
}

std::uint64_t AddressSpaces::bias_of(const MappedModule& module) const {
  if (!module.file_offset || !address_of_) {
    return module.bias;
  }
  const auto [known, fresh] = addresses_.try_emplace({module.file, *module.file_offset});
  if (fresh) {
    known->second = address_of_(module.file, *module.file_offset);
  }
  return known->second ? module.begin - *known->second : module.bias;
}

std::optional<ModulePlace> AddressSpaces::find(Moment moment, std::uint64_t address) const {
  if (moment.process.value >= spaces_.size()) {
    return std::nullopt;
  }
  Choice choice(moment.time_ns);
  spaces_[moment.process.value].covering(
      address, [&](const MappedModule& module, std::uint64_t, std::uint64_t) { choice.offer(module); });
  const MappedModule* best = choice.best();
  if (best == nullptr) {
    return std::nullopt;
  }
  return ModulePlace{best->file, address - bias_of(*best)};
}

std::vector<MappedModule> AddressSpaces::mapped(Moment moment) const {
  std::vector<MappedModule> result = all(moment.process);
  const auto behind = std::stable_partition(result.begin(), result.end(),
                                            [&](const MappedModule& module) { return alive(module, moment.time_ns); });
  std::vector<MappedModule> later;
  std::copy_if(behind, result.end(), std::back_inserter(later),
               [&](const MappedModule& module) { return module.loaded_ns > moment.time_ns; });
  result.erase(behind, result.end());
  std::stable_sort(later.begin(), later.end(),
                   [](const MappedModule& a, const MappedModule& b) { return a.loaded_ns < b.loaded_ns; });
  for (const MappedModule& module : later) {
    const bool taken = std::any_of(result.begin(), result.end(), [&](const MappedModule& other) {
      return module.begin < other.end && other.begin < module.end;
    });
    if (!taken) {
      result.push_back(module);
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const MappedModule& a, const MappedModule& b) { return a.begin < b.begin; });
  return result;
}

std::vector<MappedModule> AddressSpaces::all(ProcessId process) const {
  std::vector<MappedModule> result;
  if (process.value < spaces_.size()) {
    spaces_[process.value].each(
        [&](const MappedModule& module, std::uint64_t, std::uint64_t) { result.push_back(module); });
  }
  for (MappedModule& module : result) {
    module.bias = bias_of(module);
  }
  return result;
}

}  // namespace crosstalk::attribution
