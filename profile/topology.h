// SPDX-License-Identifier: Apache-2.0
// The position of each processor of the recorded machine. The caches that two processors share decide the cost of
// moving a line of memory between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::profile {

/// Linux's numbers; cores are renumbered within each package. -1 if the kernel does not say.
struct CpuPlace {
  std::uint32_t cpu = 0;
  std::int32_t core = -1, package = -1;
  std::int32_t l2 = -1, l3 = -1;  // the lowest processor that shares it
  std::int32_t node = -1;         // NUMA
  bool operator==(const CpuPlace&) const = default;
};

/// The closest part of the machine that two processors share.
enum class Nearness : std::uint8_t { same_cpu, same_core, same_l2, same_l3, same_package, other_package, unknown };

class Topology {
 public:
  Topology() = default;
  explicit Topology(std::vector<CpuPlace> cpus);
  /// "cpu core package l2 l3 node" of each processor, separated by ';'. nullopt for any other text.
  [[nodiscard]] static std::optional<Topology> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const std::vector<CpuPlace>& cpus() const { return cpus_; }  // by number
  [[nodiscard]] const CpuPlace* find(std::uint32_t cpu) const;
  [[nodiscard]] Nearness between(std::uint32_t a, std::uint32_t b) const;

 private:
  std::vector<CpuPlace> cpus_;
};

}  // namespace crosstalk::profile
