// SPDX-License-Identifier: Apache-2.0
// The emulator's plugin: shows every executed instruction and access of the program to the counters, one thread at a
// time, and writes raw counts when the program ends. Arguments: out=FILE, quantum=N instructions, seed=N,
// memory=BYTES.
//
// Callbacks come from the program's threads. The turn guards the shared counts, and a mutex guards translation, which
// the emulator may do for a thread that waits for its turn.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

#include "tests/reference/access_joiner.h"
#include "tests/reference/code_table.h"
#include "tests/reference/counter.h"
#include "tests/reference/heap_notes.h"
#include "tests/reference/modules.h"
#include "tests/reference/qemu_plugin.h"
#include "tests/reference/raw_counts.h"
#include "tests/reference/turn.h"

namespace crosstalk::reference {
namespace {

constexpr int refused_status = 125;
constexpr std::size_t most_vcpus = 1U << 16U;  // at one time

struct Options {
  std::string out;
  std::uint64_t quantum = 100;  // instructions, on average
  std::uint64_t seed = 1;
  std::uint64_t memory = 4ULL << 30U;  // bytes
};

struct Thread {
  ThreadIndex index = 0;
  std::int64_t left = 0;  // instructions of its quantum
  Turn::Seat seat;
  AccessJoiner joiner;
  Counter::Cursor cursor;
};

struct State {
  explicit State(Options chosen) : options(std::move(chosen)), counter(options.memory), random(options.seed) {}

  const Options options;
  Turn turn;
  Counter counter;       // of the thread with the turn
  std::uint64_t random;  // of the thread with the turn
  std::array<std::atomic<Thread*>, most_vcpus> threads{};
  std::atomic<std::uint32_t> thread_count{0};
  std::atomic<bool> silent{false};  // a child made by fork, or the end

  std::mutex translation;
  CodeTable codes;                // translation
  ModuleTable modules;            // translation
  std::set<std::uint64_t> plain;  // translation: pages of code that is no file's
};

State* state = nullptr;  // made at installation; the emulator ends without destructors

void write_file(const auto& writer) {
  const std::string partial = state->options.out + ".part";
  std::ofstream file(partial);
  writer(file);
  file.close();
  if (!file || std::rename(partial.c_str(), state->options.out.c_str()) != 0) {
    std::fprintf(stderr, "crosstalk: %s cannot be written: %s\n", state->options.out.c_str(), std::strerror(errno));
  }
}

[[noreturn]] void give_up(const std::string& message) {
  write_file([&](std::ostream& out) { write_error(out, message); });
  _exit(refused_status);
}

Thread& thread_of(unsigned vcpu) { return *state->threads[vcpu].load(std::memory_order_relaxed); }

/// Uniform in 1 .. 2 * quantum - 1 (xorshift64*), so that no loop is in step with the turns.
std::int64_t draw_quantum() {
  std::uint64_t& x = state->random;
  x ^= x >> 12U;
  x ^= x << 25U;
  x ^= x >> 27U;
  return static_cast<std::int64_t>(1 + ((x * 2685821657736338717ULL) >> 11U) % (2 * state->options.quantum - 1));
}

// ---- threads ----------------------------------------------------------------------------------------------

/// Threads are told apart by their creation: the emulator gives a number again once its thread has ended.
void on_thread_begin(QemuPluginId /*id*/, unsigned vcpu) {
  if (vcpu >= most_vcpus) {
    give_up("the program has more than " + std::to_string(most_vcpus) + " threads at one time; run it with fewer");
  }
  auto made = std::make_unique<Thread>();
  made->index = state->thread_count.fetch_add(1);
  state->threads[vcpu].store(made.release());
}

void on_thread_end(QemuPluginId /*id*/, unsigned vcpu) {
  if (!state->silent) {
    state->turn.release(thread_of(vcpu).seat);
  }
}

void on_forked_child() { state->silent = true; }

// ---- execution --------------------------------------------------------------------------------------------

void on_block(unsigned vcpu, void* data) {
  if (state->silent.load(std::memory_order_relaxed)) {
    return;
  }
  Thread& thread = thread_of(vcpu);
  auto& block = *static_cast<Block*>(data);
  const bool over = thread.left <= 0;
  if (over) {
    state->turn.pass(thread.seat);
  }
  if (!state->turn.enter(thread.seat)) {
    return;
  }
  if (over) {
    thread.left = draw_quantum();
  }
  ++block.executions;
  thread.left -= static_cast<std::int64_t>(block.codes.size());
  Turn::leave(thread.seat);
}

void on_wait(unsigned vcpu, void* /*data*/) { thread_of(vcpu).left = 0; }

void count(Thread& thread, Code& code, const JoinedAccess& access) {
  if (loads(access.kind)) {
    ++code.loads;
    code.load_bytes += access.bytes;
  }
  if (stores(access.kind)) {
    ++code.stores;
    code.store_bytes += access.bytes;
  }
  if (!state->counter.access({thread.index, code.index, access.address, access.bytes, access.kind}, thread.cursor)) {
    give_up("the lines that the program touched need more than " + std::to_string(state->options.memory >> 20U) +
            " MiB to remember; run it on less data or allow more with --memory");
  }
}

void on_access(unsigned vcpu, QemuMemoryInfo info, std::uint64_t address, void* data) {
  if (state->silent.load(std::memory_order_relaxed)) {
    return;
  }
  Thread& thread = thread_of(vcpu);
  auto& code = *static_cast<Code*>(data);
  if (!state->turn.enter(thread.seat)) {
    return;
  }
  const Piece piece{code.index, address, 1U << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info)};
  if (const auto access = thread.joiner.take(piece, code.facts)) {
    count(thread, code, *access);
  }
  Turn::leave(thread.seat);
}

/// Kept in case the next signal ends the program; overwritten otherwise.
void on_unknown_instruction(unsigned /*vcpu*/, void* data) {
  if (!state->silent.load(std::memory_order_relaxed)) {
    write_file([&](std::ostream& out) { write_error(out, *static_cast<std::string*>(data)); });
  }
}

// ---- translation ------------------------------------------------------------------------------------------

FilePlace place_of(std::uint64_t address) {
  auto& modules = state->modules;
  if (const auto place = modules.find(address)) {
    return *place;
  }
  if (!state->plain.contains(address / page_bytes)) {
    modules.read();
    if (const auto place = modules.find(address)) {
      return *place;
    }
    state->plain.insert(address / page_bytes);
  }
  return {no_file, address};
}

/// The emulator has read only as much of an unknown instruction as it needed to refuse it.
std::span<const std::uint8_t> bytes_of(qemu_plugin_insn* instruction) {
  const std::span read(static_cast<const std::uint8_t*>(qemu_plugin_insn_data(instruction)),
                       qemu_plugin_insn_size(instruction));
  if (instruction_facts(read)) {
    return read;
  }
  constexpr std::uint64_t longest = 15;
  const std::uint64_t to_page_end = page_bytes - qemu_plugin_insn_vaddr(instruction) % page_bytes;
  return {static_cast<const std::uint8_t*>(qemu_plugin_insn_haddr(instruction)), std::min(longest, to_page_end)};
}

std::string refusal(const FilePlace& place, std::span<const std::uint8_t> bytes) {
  std::array<char, 32> offset{};
  std::snprintf(offset.data(), offset.size(), "%#llx", static_cast<unsigned long long>(place.offset));
  const std::string file = place.file == no_file ? "address " : state->modules.files()[place.file] + "+";
  return "the program executed '" + instruction_text(bytes) + "' (" + file + offset.data() +
         "): AVX-512, which the emulated processor lacks; build or run it without";
}

Code& translate(qemu_plugin_insn* instruction) {
  const std::uint64_t address = qemu_plugin_insn_vaddr(instruction);
  const FilePlace place = place_of(address);
  const auto bytes = bytes_of(instruction);
  Code& code = state->codes.code(place.file, place.offset, bytes);
  const bool is_notes = place.file != no_file && state->modules.files()[place.file].ends_with(heap_notes_file);
  if (!is_notes) {
    qemu_plugin_register_vcpu_mem_cb(instruction, on_access, qemu_no_registers, qemu_reads_and_writes, &code);
  }
  if (code.facts.waits) {
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_wait, qemu_no_registers, nullptr);
  }
  if (code.facts.is_avx512) {
    // Lives as long as the translation, that is, as the program.
    auto* message = new std::string(refusal(place, bytes));
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_unknown_instruction, qemu_no_registers, message);
  }
  return code;
}

void on_translation(QemuPluginId /*id*/, qemu_plugin_tb* translated) {
  if (state->silent) {
    return;
  }
  const std::lock_guard lock(state->translation);
  std::vector<Code*> codes;
  for (std::size_t n = 0; n < qemu_plugin_tb_n_insns(translated); ++n) {
    codes.push_back(&translate(qemu_plugin_tb_get_insn(translated, n)));
  }
  qemu_plugin_register_vcpu_tb_exec_cb(translated, on_block, qemu_no_registers, &state->codes.block(codes));
}

// ---- system calls -----------------------------------------------------------------------------------------

enum SystemCall : std::int64_t { call_mmap = 9, call_munmap = 11, call_mremap = 25, call_madvise = 28, call_end = 231 };

/// Pages that come and go: new ones have no history. Handled at the call's entry, while the caller still has them.
void on_mapping(std::uint64_t begin, std::uint64_t bytes) {
  state->counter.forget(begin, begin + bytes);
  const std::lock_guard lock(state->translation);
  state->modules.forget(begin, begin + bytes);
  state->plain.clear();
}

void on_call_with_turn(std::int64_t number, std::uint64_t a1, std::uint64_t a2, std::uint64_t a3, std::uint64_t a4) {
  switch (number) {
    case call_munmap:
    case call_mremap:
      return on_mapping(a1, a2);
    case call_mmap:
      return on_mapping(a1, (a4 & MAP_FIXED) != 0 ? a2 : 0);
    case call_madvise:
      return a3 == MADV_DONTNEED ? state->counter.forget(a1, a1 + a2) : void();
    case heap_note_allocated:
      return state->counter.allocated({a1, a2, a3});
    case heap_note_freed:
      return state->counter.freed(a1);
    default:
      return;
  }
}

void on_system_call(QemuPluginId /*id*/, unsigned vcpu, std::int64_t number, std::uint64_t a1, std::uint64_t a2,
                    std::uint64_t a3, std::uint64_t a4, std::uint64_t /*a5*/, std::uint64_t /*a6*/,
                    std::uint64_t /*a7*/, std::uint64_t /*a8*/) {
  if (state->silent) {
    return;
  }
  Turn::Seat& seat = thread_of(vcpu).seat;
  if (!state->turn.enter(seat)) {
    return;
  }
  on_call_with_turn(number, a1, a2, a3, a4);
  if (number == call_end) {
    state->turn.end();
  }
  Turn::leave(seat);
  if (number != heap_note_allocated && number != heap_note_freed) {
    state->turn.release(seat);
  }
}

void on_program_end(QemuPluginId /*id*/, void* /*data*/) {
  if (state->silent.exchange(true)) {
    return;
  }
  const std::lock_guard lock(state->translation);
  RawCounts raw = raw_counts(state->counter, state->codes, state->modules);
  raw.threads = state->thread_count;
  raw.stolen_turns = state->turn.stolen();
  raw.quantum = state->options.quantum;
  raw.seed = state->options.seed;
  write_file([&](std::ostream& out) { write(out, raw); });
}

// ---- installation -----------------------------------------------------------------------------------------

bool parse_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool parse_option(std::string_view text, Options& options) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) {
    return false;
  }
  const std::string_view name = text.substr(0, sign);
  const std::string_view value = text.substr(sign + 1);
  if (name == "out") {
    options.out = value;
    return !value.empty();
  }
  return (name == "quantum" && parse_number(value, options.quantum)) ||
         (name == "seed" && parse_number(value, options.seed)) ||
         (name == "memory" && parse_number(value, options.memory));
}

int install(QemuPluginId id, const QemuInfo& info, std::span<char*> arguments) {
  if (std::strcmp(info.target_name, "x86_64") != 0 || info.system_emulation) {
    std::fprintf(stderr, "crosstalk: the reference is for qemu-x86_64, not for '%s'\n", info.target_name);
    return -1;
  }
  Options options;
  for (const char* argument : arguments) {
    if (!parse_option(argument, options)) {
      std::fprintf(stderr, "crosstalk: '%s' is none of out=FILE, quantum=N, seed=N, memory=BYTES\n", argument);
      return -1;
    }
  }
  if (options.out.empty()) {
    std::fprintf(stderr, "crosstalk: the reference needs out=FILE\n");
    return -1;
  }
  state = new State(options);
  pthread_atfork(nullptr, nullptr, on_forked_child);
  qemu_plugin_register_vcpu_init_cb(id, on_thread_begin);
  qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
  qemu_plugin_register_atexit_cb(id, on_program_end, nullptr);
  return 0;
}

}  // namespace
}  // namespace crosstalk::reference

// The names that the emulator looks for.
extern "C" {
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(QemuPluginId id, const QemuInfo* info, int count,
                                                               char** arguments) {
  return crosstalk::reference::install(id, *info, {arguments, static_cast<std::size_t>(count)});
}
}
