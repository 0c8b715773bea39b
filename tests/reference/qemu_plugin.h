// SPDX-License-Identifier: Apache-2.0
// The part of QEMU's plugin interface, version 1 (QEMU 4.2 to 8.x), that the reference uses. Debian installs the
// emulator without a header; these are declarations of the emulator's own exported functions and the constants that
// they take. https://www.qemu.org/docs/master/devel/tcg-plugins.html describes them.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using QemuPluginId = std::uint64_t;
using QemuMemoryInfo = std::uint32_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

/// The beginning of the emulator's information at installation.
struct QemuInfo {
  const char* target_name;
  struct {
    int lowest, current;
  } version;
  bool system_emulation;
};

enum QemuRegisterUse : int { qemu_no_registers = 0 };
enum QemuMemoryDirection : int { qemu_reads = 1, qemu_writes = 2, qemu_reads_and_writes = 3 };

using QemuVcpuCallback = void (*)(QemuPluginId id, unsigned vcpu);
using QemuBlockCallback = void (*)(QemuPluginId id, qemu_plugin_tb* block);
using QemuDataCallback = void (*)(unsigned vcpu, void* data);
using QemuMemoryCallback = void (*)(unsigned vcpu, QemuMemoryInfo info, std::uint64_t address, void* data);
using QemuEndCallback = void (*)(QemuPluginId id, void* data);
using QemuSyscallCallback = void (*)(QemuPluginId id, unsigned vcpu, std::int64_t number, std::uint64_t a1,
                                     std::uint64_t a2, std::uint64_t a3, std::uint64_t a4, std::uint64_t a5,
                                     std::uint64_t a6, std::uint64_t a7, std::uint64_t a8);

void qemu_plugin_register_vcpu_init_cb(QemuPluginId id, QemuVcpuCallback callback);
void qemu_plugin_register_vcpu_exit_cb(QemuPluginId id, QemuVcpuCallback callback);
void qemu_plugin_register_vcpu_tb_trans_cb(QemuPluginId id, QemuBlockCallback callback);
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb* block, QemuDataCallback callback, QemuRegisterUse use,
                                          void* data);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn* instruction, QemuDataCallback callback,
                                            QemuRegisterUse use, void* data);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn* instruction, QemuMemoryCallback callback, QemuRegisterUse use,
                                      QemuMemoryDirection direction, void* data);
void qemu_plugin_register_vcpu_syscall_cb(QemuPluginId id, QemuSyscallCallback callback);
void qemu_plugin_register_atexit_cb(QemuPluginId id, QemuEndCallback callback, void* data);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb* block);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb* block, std::size_t index);
const void* qemu_plugin_insn_data(const qemu_plugin_insn* instruction);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn* instruction);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn* instruction);
void* qemu_plugin_insn_haddr(const qemu_plugin_insn* instruction);
unsigned qemu_plugin_mem_size_shift(QemuMemoryInfo info);
bool qemu_plugin_mem_is_store(QemuMemoryInfo info);
}
