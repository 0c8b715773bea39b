// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/sample_rows.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "collectors/perf_registers.h"
#include "profile/codec.h"

namespace crosstalk::perf_import {
namespace {

std::optional<std::uint64_t> value_of(const perf_data::SampledRegisters& registers, unsigned number) {
  const std::uint64_t bit = std::uint64_t{1} << number;
  const auto index = static_cast<std::size_t>(std::popcount(registers.mask & (bit - 1)));
  if ((registers.mask & bit) == 0 || index >= registers.values.size()) {
    return std::nullopt;
  }
  return registers.values[index];
}

/// All registers of user mode, or none.
std::optional<Registers> user_registers(const perf_data::Sample& sample, bool in_kernel) {
  for (const perf_data::SampledRegisters* from : {&sample.interrupted, &sample.user}) {
    if (from->abi != PERF_SAMPLE_REGS_ABI_64 || (in_kernel && from == &sample.interrupted)) {
      continue;
    }
    Registers registers;
    const bool all = std::all_of(collectors::perf_registers.begin(), collectors::perf_registers.end(),
                                 [&](const collectors::PerfRegister& each) {
                                   const auto value = value_of(*from, each.number);
                                   registers[each.ours] = value.value_or(0);
                                   return value.has_value();
                                 });
    if (all) {
      return registers;
    }
  }
  return std::nullopt;
}

AccessKind access_of(std::uint64_t data_source) {
  const std::uint64_t operation = data_source & 0x1f;  // mem_op of perf_mem_data_src
  const bool load = (operation & PERF_MEM_OP_LOAD) != 0;
  const bool store = (operation & PERF_MEM_OP_STORE) != 0;
  return load && store ? AccessKind::load_store
         : load        ? AccessKind::load
         : store       ? AccessKind::store
                       : AccessKind::none;
}

bool in_user_mode(const perf_data::Record& record) {
  return (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
}

bool in_a_guest(const perf_data::Record& record) {
  const auto mode = record.misc & PERF_RECORD_MISC_CPUMODE_MASK;
  return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

std::uint64_t time_of(std::uint64_t period, const EventUnit& unit, std::uint32_t cycle_ps) {
  if (unit.unit == profile::WeightUnit::ns) {
    return period;
  }
  constexpr double ps_per_ns = 1000;
  constexpr double most = 1e18;
  return unit.unit == profile::WeightUnit::cycles
             ? static_cast<std::uint64_t>(std::min(static_cast<double>(period) * cycle_ps / ps_per_ns, most))
             : 0;
}

}  // namespace

void read_user_calls(const perf_data::Record& record, const perf_data::Sample& sample,
                     std::vector<std::uint64_t>& calls) {
  constexpr auto first_context = static_cast<std::uint64_t>(PERF_CONTEXT_MAX);  // higher words say whose code follows
  calls.clear();
  bool of_user = in_user_mode(record);
  for (std::size_t i = 0; i < sample.call_chain.size() && calls.size() < profile::max_call_chain; ++i) {
    const std::uint64_t word = sample.call_chain[i];
    if (word >= first_context) {
      of_user = word == static_cast<std::uint64_t>(PERF_CONTEXT_USER);
    } else if (of_user && word != 0) {
      calls.push_back(word);
    }
  }
}

std::uint64_t user_ip(const perf_data::Record& record, const perf_data::Sample& sample, const RowSettings& settings) {
  if (in_user_mode(record)) {
    return sample.ip;
  }
  if (in_a_guest(record)) {
    return 0;
  }
  for (std::size_t i = 0; i + 1 < sample.call_chain.size(); ++i) {
    if (sample.call_chain[i] == static_cast<std::uint64_t>(PERF_CONTEXT_USER)) {
      return sample.call_chain[i + 1];
    }
  }
  return settings.x86_64 ? value_of(sample.user, PERF_REG_X86_IP).value_or(0) : 0;
}

profile::SampleRow row_of(const perf_data::Record& record, const perf_data::Sample& sample, const EventUnit& unit,
                          const RowSettings& settings) {
  const bool in_kernel = !in_user_mode(record);
  profile::SampleRow row;
  row.time_ns = record.identity.time_ns;
  row.ip = user_ip(record, sample, settings);
  row.address = sample.address;
  row.cpu = static_cast<std::uint16_t>(std::min<std::uint32_t>(record.identity.cpu, profile::unknown_cpu));
  row.flags = in_kernel ? profile::sample_in_kernel : 0;
  const std::uint64_t period = sample.period != 0 ? sample.period : 1;
  row.cpu_ns = time_of(period, unit, settings.cycle_ps);
  if (row.address != 0) {
    row.access = access_of(sample.data_source);
    row.from = profile::AddressFrom::hardware;
    row.access_ip = unit.at_access && !in_kernel ? row.ip : 0;
  }
  if (settings.x86_64) {
    row.registers = user_registers(sample, in_kernel);
    if (row.registers) {
      row.registers->value[static_cast<std::size_t>(Register::rip)] = row.ip;
    }
  }
  if (unit.source != profile::SourceKind::clock) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    row.measurement = {unit.source, unit.unit, static_cast<std::uint32_t>(std::min(sample.weight, most)), period,
                       sample.data_source};
  }
  return row;
}

}  // namespace crosstalk::perf_import
