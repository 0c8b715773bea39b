// SPDX-License-Identifier: Apache-2.0
// Sources: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966; chapters on each microarchitecture),
// AMD Software Optimization Guides for families 17h (55723), 17h models 30h on (56305), 19h (56665), 19h model 11h
// (57647) and 1Ah (58455): floating-point pipes, load/store unit, second-level cache.
#include "models/processor_facts.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace crosstalk::models {
namespace {

constexpr CoreFacts nehalem = {{1, 1, 0, 0}, {1, 1, 0, 0}, {}, 16, 16, 32};
constexpr CoreFacts sandy_bridge = {{1, 1, 1, 0}, {1, 1, 1, 0}, {}, 32, 16, 32};
constexpr CoreFacts haswell = {{1, 1, 1, 0}, {2, 2, 2, 0}, {2, 2, 2, 0}, 64, 32, 64};
constexpr CoreFacts skylake = {{2, 2, 2, 0}, {2, 2, 2, 0}, {2, 2, 2, 0}, 64, 32, 64};
// Some processors of this model have one unit of 512 bits and others two; CPUID does not tell them apart.
constexpr CoreFacts skylake_server = {{2, 2, 2, 0}, {2, 2, 2, 0}, {2, 2, 2, 0}, 128, 64, 64};
constexpr CoreFacts ice_lake = {{2, 2, 2, 1}, {2, 2, 2, 1}, {2, 2, 2, 1}, 128, 64, 64};
constexpr CoreFacts ice_lake_server = {{2, 2, 2, 2}, {2, 2, 2, 2}, {2, 2, 2, 2}, 128, 64, 64};
constexpr CoreFacts zen = {{2, 2, 1, 0}, {2, 2, 1, 0}, {2, 2, 1, 0}, 32, 16, 32};
constexpr CoreFacts zen2 = {{2, 2, 2, 0}, {2, 2, 2, 0}, {2, 2, 2, 0}, 64, 32, 32};
constexpr CoreFacts zen4 = {{2, 2, 2, 1}, {2, 2, 2, 1}, {2, 2, 2, 1}, 64, 32, 32};
constexpr CoreFacts zen5 = {{2, 2, 2, 2}, {2, 2, 2, 2}, {2, 2, 2, 2}, 128, 64, 64};

struct Entry {
  std::uint32_t family, first_model, last_model;
  const CoreFacts* facts;
};

constexpr std::array<Entry, 34> intel = {{
    {6, 0x1a, 0x1a, &nehalem},         {6, 0x1e, 0x1f, &nehalem},         {6, 0x25, 0x25, &nehalem},
    {6, 0x2a, 0x2a, &sandy_bridge},    {6, 0x2c, 0x2c, &nehalem},         {6, 0x2d, 0x2d, &sandy_bridge},
    {6, 0x2e, 0x2f, &nehalem},         {6, 0x3a, 0x3a, &sandy_bridge},    {6, 0x3c, 0x3c, &haswell},
    {6, 0x3d, 0x3d, &haswell},         {6, 0x3e, 0x3e, &sandy_bridge},    {6, 0x3f, 0x3f, &haswell},
    {6, 0x45, 0x46, &haswell},         {6, 0x47, 0x47, &haswell},         {6, 0x4e, 0x4e, &skylake},
    {6, 0x4f, 0x4f, &haswell},         {6, 0x55, 0x55, &skylake_server},  {6, 0x56, 0x56, &haswell},
    {6, 0x5e, 0x5e, &skylake},         {6, 0x6a, 0x6a, &ice_lake_server}, {6, 0x6c, 0x6c, &ice_lake_server},
    {6, 0x7d, 0x7d, &ice_lake},        {6, 0x7e, 0x7e, &ice_lake},        {6, 0x8c, 0x8c, &ice_lake},
    {6, 0x8d, 0x8d, &ice_lake},        {6, 0x8e, 0x8e, &skylake},         {6, 0x8f, 0x8f, &ice_lake_server},
    {6, 0x9e, 0x9e, &skylake},         {6, 0xa5, 0xa5, &skylake},         {6, 0xa6, 0xa6, &skylake},
    {6, 0xa7, 0xa7, &ice_lake},        {6, 0xad, 0xad, &ice_lake_server}, {6, 0xae, 0xae, &ice_lake_server},
    {6, 0xcf, 0xcf, &ice_lake_server},
}};

constexpr std::array<Entry, 9> amd = {{
    {0x17, 0x00, 0x2f, &zen},
    {0x17, 0x30, 0xff, &zen2},
    {0x19, 0x00, 0x0f, &zen2},
    {0x19, 0x10, 0x1f, &zen4},
    {0x19, 0x20, 0x5f, &zen2},
    {0x19, 0x60, 0x7f, &zen4},
    {0x19, 0xa0, 0xaf, &zen4},
    {0x1a, 0x00, 0x1f, &zen5},
    {0x1a, 0x40, 0x4f, &zen5},
}};

constexpr bool ascending(std::span<const Entry> table) {
  for (std::size_t i = 1; i < table.size(); ++i) {
    const Entry& before = table[i - 1];
    const Entry& entry = table[i];
    if (entry.family < before.family || (entry.family == before.family && entry.first_model <= before.last_model)) {
      return false;
    }
  }
  return true;
}
static_assert(ascending(intel) && ascending(amd));

const CoreFacts* find(std::span<const Entry> table, const Identity& identity) {
  const auto* const found = std::find_if(table.data(), table.data() + table.size(), [&](const Entry& e) {
    return e.family == identity.family && e.first_model <= identity.model && identity.model <= e.last_model;
  });
  return found == table.data() + table.size() ? nullptr : found->facts;
}

std::optional<double> if_known(double per_cycle, double hz) {
  return per_cycle > 0 && hz > 0 ? std::optional(per_cycle * hz) : std::nullopt;
}

}  // namespace

const CoreFacts* facts_of(const Identity& identity) {
  if (identity.vendor == "GenuineIntel") {
    return find(intel, identity);
  }
  return identity.vendor == "AuthenticAMD" ? find(amd, identity) : nullptr;
}

std::optional<double> theoretical_flops(const CoreFacts& facts, Width width, Precision precision, Operation operation,
                                        double hz) {
  const auto& instructions = operation == Operation::add   ? facts.add
                             : operation == Operation::mul ? facts.mul
                                                           : facts.fma;
  return if_known(instructions[static_cast<std::size_t>(width)] * flops(width, precision, operation), hz);
}

std::optional<double> theoretical_bandwidth(const CoreFacts& facts, Level level, Traffic traffic, double hz) {
  if (level == Level::l2) {
    return traffic == Traffic::load ? if_known(facts.l2_bytes, hz) : std::nullopt;
  }
  if (level != Level::l1d || facts.l1_load_bytes <= 0 || facts.l1_store_bytes <= 0) {
    return std::nullopt;
  }
  // Loads and stores run at the same time; the slower ones limit the loop.
  const double load_cycles = 1 / facts.l1_load_bytes;
  const double store_cycles = 1 / facts.l1_store_bytes;
  switch (traffic) {
    case Traffic::load:
      return if_known(facts.l1_load_bytes, hz);
    case Traffic::store:
      return if_known(facts.l1_store_bytes, hz);
    case Traffic::copy:
      return if_known(2 / std::max(load_cycles, store_cycles), hz);
    case Traffic::triad:
      return if_known(3 / std::max(2 * load_cycles, store_cycles), hz);
    default:
      return std::nullopt;
  }
}

}  // namespace crosstalk::models
