// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/measured_access.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <optional>

#include "collectors/access/code.h"
#include "collectors/access/instruction_decoder.h"
#include "collectors/memory_samples/ibs_op.h"

namespace crosstalk::collectors {
namespace {

constexpr std::uint64_t user_end = 1ULL << 47U;

/// Returns perf's kind of the access: perf_mem_data_src's mem_op.
AccessKind kind_in(std::uint64_t data_source) {
  constexpr std::uint64_t operation_bits = 0x1f;
  const std::uint64_t operation = data_source & operation_bits;
  const bool load = (operation & PERF_MEM_OP_LOAD) != 0;
  const bool store = (operation & PERF_MEM_OP_STORE) != 0;
  return static_cast<AccessKind>((load ? 1U : 0U) | (store ? 2U : 0U));
}

AccessKind kind_of(Accesses accesses) {
  switch (accesses) {
    case Accesses::loads:
      return AccessKind::load;
    case Accesses::stores:
      return AccessKind::store;
    case Accesses::both:
      break;
  }
  return AccessKind::none;
}

/// Returns `given`, or for kernels before 6.2, which do not say where an access of IBS found its line, whether it was
/// in the first cache. This is enough to tell if another thread can have stored to the line since.
std::uint64_t data_source_of(const IbsOp& op, std::uint64_t given) {
  perf_mem_data_src source{};
  source.val = given;
  const bool told = (source.mem_lvl & ~std::uint64_t{PERF_MEM_LVL_NA}) != 0 ||
                    (source.mem_lvl_num != 0 && source.mem_lvl_num != PERF_MEM_LVLNUM_NA);
  if (!told) {
    source.mem_op = (loads(op.kind) ? PERF_MEM_OP_LOAD : 0U) | (stores(op.kind) ? PERF_MEM_OP_STORE : 0U);
    source.mem_lvl = PERF_MEM_LVL_L1 | (op.missed ? PERF_MEM_LVL_MISS : PERF_MEM_LVL_HIT);
  }
  return source.val;
}

/// Takes an access that IBS has tagged from its registers: the kernel's other fields say the same or less.
void take_ibs(const IbsOp& op, Observation& seen) {
  seen.ip = op.ip != 0 ? op.ip : seen.ip;
  seen.skid_known = op.ip != 0;
  seen.address = op.address;
  seen.kind = op.kind;
  seen.width = op.width;
  seen.latency_cycles = op.latency_cycles;
  seen.data_source = op.kind != AccessKind::none ? data_source_of(op, seen.data_source) : 0;
}

/// Completes the access from the instruction itself. An instruction that loads and stores is one access: if its load
/// and its store are sampled apart, the load stands for it.
Measured complete_from(const in_target::FoundAccess& found, Observation& seen) {
  seen.access_ip = found.instruction;
  seen.width = seen.width != 0 ? seen.width : found.width;
  if (found.kind == AccessKind::load_store && seen.kind == AccessKind::store) {
    return Measured::half_an_update;
  }
  seen.kind = seen.kind == AccessKind::none || found.kind == AccessKind::load_store ? found.kind : seen.kind;
  return Measured::access;
}

/// The bytes of an instruction that can be read: the next page may not be readable.
std::size_t read_instruction(const in_target::CodeReader& reader, std::uint64_t ip,
                             std::array<std::uint8_t, in_target::longest_instruction>& code) {
  constexpr std::uint64_t page = 4096;
  const std::size_t first = std::min<std::size_t>(code.size(), page - ip % page);
  if (!reader.read(reader.context, ip, code.data(), first)) {
    return 0;
  }
  const bool whole =
      first == code.size() || reader.read(reader.context, ip + first, code.data() + first, code.size() - first);
  return whole ? code.size() : first;
}

/// Returns the access of the instruction at `ip`, if it is to one place; does not compute its address.
std::optional<in_target::FoundAccess> access_at(const in_target::CodeReader& reader, std::uint64_t ip) {
  std::array<std::uint8_t, in_target::longest_instruction> code{};
  const std::size_t bytes = read_instruction(reader, ip, code);
  in_target::DecodedInstruction instruction;
  if (bytes == 0 || !in_target::decode_instruction(code.data(), bytes, instruction) ||
      !instruction.has(in_target::trait_explicit_access) || instruction.operation == in_target::Operation::string) {
    return std::nullopt;
  }
  in_target::FoundAccess access;
  access.instruction = ip;
  access.width = instruction.width;
  access.kind = instruction.kind();
  return access;
}

/// Returns the access around the sampled place that touches `address`: the one before it, else the next.
std::optional<in_target::FoundAccess> access_touching(const PerfSample& sample, const AccessView& view,
                                                      std::uint64_t address) {
  const auto touches = [address](const in_target::FoundAccess& access) {
    return access.address == address || address - access.address < access.width;
  };
  in_target::FoundAccess access;
  if (!sample.has_registers) {
    return std::nullopt;
  }
  if (view.finder.find_retired(sample.registers, sample.flags, view.fs_base, view.reader, access) && touches(access)) {
    return access;
  }
  if (view.finder.find_next(sample.registers, sample.flags, view.fs_base, view.reader, access) && touches(access)) {
    return access;
  }
  return std::nullopt;
}

}  // namespace

Measured measured_access(const PerfSample& sample, const SampledEvent& event, const AccessView& view,
                         Observation& seen) {
  if (sample.in_kernel) {
    return Measured::in_kernel;
  }
  seen.source = event.source;
  seen.weight_unit = event.weight_unit;
  seen.ip = sample.ip;
  seen.skid_known = sample.exact_ip;
  seen.address = sample.address;
  seen.data_source = sample.data_source;
  seen.kind = kind_in(sample.data_source);
  seen.latency_cycles = sample.latency_cycles;
  const bool ibs = event.source == profile::SourceKind::ibs || event.source == profile::SourceKind::ibs_kmod;
  const auto op = ibs ? decode_ibs_op(sample.raw) : std::nullopt;
  if (op) {
    take_ibs(*op, seen);
  }
  if (seen.address == 0 || seen.address >= user_end) {
    return Measured::no_access;
  }
  seen.from = profile::AddressFrom::hardware;
  seen.kind = seen.kind != AccessKind::none ? seen.kind : kind_of(event.accesses);
  seen.access_ip = seen.skid_known ? seen.ip : 0;
  const auto found = seen.skid_known ? access_at(view.reader, seen.ip) : access_touching(sample, view, seen.address);
  const Measured measured = found ? complete_from(*found, seen) : Measured::access;
  return seen.kind != AccessKind::none ? measured : Measured::no_access;
}

}  // namespace crosstalk::collectors
