// SPDX-License-Identifier: Apache-2.0
#include "driver/files/cost_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/proc_fields.h"
#include "driver/files/machine_file.h"
#include "driver/files/output_file.h"
#include "driver/files/result_file.h"

namespace crosstalk::driver {
namespace {

using Json = nlohmann::ordered_json;
using collectors::NamedCost;

constexpr const char* format_name = "crosstalk.observing-costs/1";
constexpr std::uint32_t enough_tries = 3;
constexpr std::uintmax_t most_bytes = 1U << 14U;

Json json_of(const CostKey& key) {
  return {{"version", key.version},
          {"boot", key.boot},
          {"kernel", key.kernel},
          {"processor", key.processor},
          {"perf_allowed", key.perf_allowed},
          {"watchpoints", key.watchpoints},
          {"registers", key.registers}};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Returns the file's text; empty if there is none, or if it is not ours.
std::string text_of(const std::string& path) {
  std::error_code error;
  const bool usable =
      std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) <= most_bytes && !error;
  return usable ? file_text(path) : "";
}

/// True if this user owns the files there: root with another user's HOME must leave nothing that its owner cannot
/// replace.
bool is_own(std::filesystem::path folder) {
  struct stat facts {};
  while (::stat(folder.c_str(), &facts) != 0) {
    if (!folder.has_relative_path()) {
      return false;
    }
    folder = folder.parent_path();
  }
  return facts.st_uid == ::geteuid();
}

/// False if the file size limit is too low: a write beyond it raises SIGXFSZ, which kills.
bool may_write() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= most_bytes;
}

void keep(const std::string& path, const std::string& text) {
  if (may_write() && is_own(std::filesystem::path(path).parent_path()) && check_writable(path)) {
    static_cast<void>(replace_file(path, text));
  }
}

}  // namespace

CostKey cost_key(const collectors::Probe& probe) {
  CostKey key;
  key.version = CROSSTALK_VERSION;
  key.boot = first_line(file_text("/proc/sys/kernel/random/boot_id"));
  utsname names{};
  if (::uname(&names) == 0) {
    key.kernel = std::string(names.release) + " " + names.version;
  }
  for (const char* name : {"model name", "cpu family", "model", "stepping"}) {
    key.processor += proc_file_field("/proc/cpuinfo", name).value_or("?") + "/";
  }
  key.perf_allowed = probe.perf_allowed;
  key.watchpoints = probe.watchpoints_inside;
  key.registers = probe.debug_registers;
  return key;
}

bool is_settled(const KeptCosts& kept) {
  return kept.tries >= enough_tries ||
         (kept.tries > 0 && std::all_of(collectors::named_costs.begin(), collectors::named_costs.end(),
                                        [&](const NamedCost& cost) { return kept.costs.*cost.field != 0; }));
}

std::string to_json(const CostKey& key, const KeptCosts& kept) {
  Json costs = Json::object();
  for (const NamedCost& cost : collectors::named_costs) {
    costs[std::string(cost.name)] = kept.costs.*cost.field;
  }
  return Json{{"format", format_name}, {"key", json_of(key)}, {"tries", kept.tries}, {"costs", costs}}.dump(2) + "\n";
}

std::optional<KeptCosts> parse_costs(const std::string& text, const CostKey& key) {
  const Json file = Json::parse(text, nullptr, false);
  const auto is_number = [](const Json& object, std::string_view name, std::uint32_t most) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number_unsigned() && found->get<std::uint64_t>() <= most;
  };
  if (key.boot.empty() || !file.is_object() || file.value("format", Json()) != format_name ||
      file.value("key", Json()) != json_of(key) || !is_number(file, "tries", enough_tries) ||
      !file.value("costs", Json()).is_object()) {
    return std::nullopt;
  }
  KeptCosts kept;
  kept.tries = file["tries"].get<std::uint32_t>();
  for (const NamedCost& cost : collectors::named_costs) {
    if (!is_number(file["costs"], cost.name, collectors::absurd_cost)) {
      return std::nullopt;
    }
    kept.costs.*cost.field = file["costs"][std::string(cost.name)].get<std::uint32_t>();
  }
  return kept;
}

Result<std::string> cost_file_path() {
  const auto machine = machine_file_path();
  return machine ? Result<std::string>(std::filesystem::path(*machine).replace_filename("observing-costs.json"))
                 : machine;
}

void calibrate_once(collectors::Probe& probe, profile::SessionConfig& config) {
  const auto path = cost_file_path();
  const CostKey key = cost_key(probe);
  const KeptCosts kept = path ? parse_costs(text_of(*path), key).value_or(KeptCosts{}) : KeptCosts{};
  if (is_settled(kept)) {
    collectors::calibrate(probe, config, kept.costs);
    return;
  }
  const collectors::ObservingCosts costs = completed(collectors::calibrate(probe, config), kept.costs);
  if (path && costs != collectors::ObservingCosts{}) {
    keep(*path, to_json(key, {costs, kept.tries + 1}));
  }
}

void forget_costs() {
  if (const auto path = cost_file_path()) {
    ::unlink(path->c_str());
  }
}

}  // namespace crosstalk::driver
