// SPDX-License-Identifier: Apache-2.0
// Where each processor of the recorded machine sits: what two of them share decides what it costs when a line of
// memory moves between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::profile {

/// Numbers as Linux gives them; cores are numbered anew in each package. Where the kernel does not say, -1.
struct CpuPlace {
  std::uint32_t cpu = 0;
  std::int32_t core = -1, package = -1;
  std::int32_t l2 = -1, l3 = -1;  // the lowest processor that shares it
  std::int32_t node = -1;         // NUMA
  bool operator==(const CpuPlace&) const = default;
};

/// What two processors share at the closest.
enum class Nearness : std::uint8_t { same_cpu, same_core, same_l2, same_l3, same_package, other_package, unknown };

class Topology {
 public:
  Topology() = default;
  explicit Topology(std::vector<CpuPlace> cpus);
  /// "cpu core package l2 l3 node" of each processor, separated by ';'. nullopt for a text that is not so.
  [[nodiscard]] static std::optional<Topology> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const std::vector<CpuPlace>& cpus() const { return cpus_; }  // by number
  [[nodiscard]] const CpuPlace* find(std::uint32_t cpu) const;
  [[nodiscard]] Nearness between(std::uint32_t a, std::uint32_t b) const;

 private:
  std::vector<CpuPlace> cpus_;
};

}  // namespace crosstalk::profile
