// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/tasks.h"

#include <algorithm>
#include <set>

#include "base/build_id.h"

namespace crosstalk::perf_import {
namespace {

// Far beyond any machine: a damaged file names no more either way, and is refused before it takes all memory.
constexpr std::size_t most_tasks = 1'000'000;
constexpr std::size_t most_mappings = 4'000'000;
constexpr std::size_t most_name_bytes = std::size_t{256} << 20U;

}  // namespace

Result<void> Tasks::check_room() const {
  if (processes_.size() + threads_.size() > most_tasks || mappings_ > most_mappings ||
      names_.bytes() > most_name_bytes) {
    return fail(ErrorCode::corrupt, "it tells of more than " + std::to_string(most_tasks) + " processes and threads, " +
                                        std::to_string(most_mappings) + " mappings or " +
                                        std::to_string(most_name_bytes >> 20U) + " MiB of their names");
  }
  return {};
}

Result<std::size_t> Tasks::new_process(std::int32_t pid) {
  if (auto room = check_room(); !room) {
    return tl::unexpected<Error>(room.error());
  }
  Process process;
  process.pid = pid;
  processes_.push_back(std::move(process));
  process_of_pid_[pid] = processes_.size() - 1;
  return processes_.size() - 1;
}

Result<std::size_t> Tasks::process_of(std::int32_t pid) {
  const auto found = process_of_pid_.find(pid);
  return found != process_of_pid_.end() ? Result<std::size_t>(found->second) : new_process(pid);
}

Result<std::size_t> Tasks::new_thread(std::size_t process, std::int32_t tid) {
  if (auto room = check_room(); !room) {
    return tl::unexpected<Error>(room.error());
  }
  Task thread;
  thread.process = process;
  thread.tid = tid;
  thread.name = names_.intern("");
  threads_.push_back(thread);
  processes_[process].threads.push_back(threads_.size() - 1);
  thread_of_tid_[tid] = threads_.size() - 1;
  return threads_.size() - 1;
}

Result<std::size_t> Tasks::thread_of(std::int32_t pid, std::int32_t tid) {
  const auto found = thread_of_tid_.find(tid);
  if (found != thread_of_tid_.end() && processes_[threads_[found->second].process].pid == pid) {
    return found->second;
  }
  const auto process = process_of(pid);
  return process ? new_thread(*process, tid) : process;
}

/// Begins the process anew: without its mappings, and as another one if it was sampled before.
Result<void> Tasks::execute(std::int32_t pid, std::int32_t tid, std::uint64_t time_ns) {
  const auto old = process_of(pid);
  if (!old) {
    return tl::unexpected<Error>(old.error());
  }
  if (!processes_[*old].sampled) {
    mappings_ -= processes_[*old].mappings.all().size();
    processes_[*old].mappings.clear();
    processes_[*old].modules_of.reset();
    return {};
  }
  processes_[*old].end_ns = time_ns;
  for (const std::size_t thread : processes_[*old].threads) {
    threads_[thread].end_ns = threads_[thread].end_ns == 0 ? time_ns : threads_[thread].end_ns;
  }
  const std::int32_t parent = processes_[*old].parent_pid;
  const auto fresh = new_process(pid);
  if (!fresh) {
    return tl::unexpected<Error>(fresh.error());
  }
  processes_[*fresh].parent_pid = parent;
  processes_[*fresh].begin_ns = time_ns;
  const auto thread = new_thread(*fresh, tid);
  if (!thread) {
    return tl::unexpected<Error>(thread.error());
  }
  threads_[*thread].begin_ns = time_ns;
  return {};
}

Result<void> Tasks::add(const perf_data::Comm& comm, std::uint64_t time_ns) {
  if (comm.exec) {
    if (auto executed = execute(comm.pid, comm.tid, time_ns); !executed) {
      return executed;
    }
  }
  const auto thread = thread_of(comm.pid, comm.tid);
  if (!thread) {
    return tl::unexpected<Error>(thread.error());
  }
  threads_[*thread].name = names_.intern(comm.name);
  return {};
}

Result<void> Tasks::add(const perf_data::Fork& fork, std::uint64_t time_ns) {
  const bool made_up = fork.exec || time_ns == 0;  // by perf, for processes that existed when it began
  if (made_up && thread_of_tid_.contains(fork.tid)) {
    return {};
  }
  std::optional<std::size_t> process;
  if (fork.pid == fork.tid) {
    const auto fresh = new_process(fork.pid);
    if (!fresh) {
      return tl::unexpected<Error>(fresh.error());
    }
    process = *fresh;
    processes_[*fresh].parent_pid = fork.parent_pid;
    processes_[*fresh].begin_ns = time_ns;
    const auto parent = process_of_pid_.find(fork.parent_pid);
    if (!made_up && parent != process_of_pid_.end() && parent->second != *fresh) {
      processes_[*fresh].modules_of = parent->second;
    }
  } else {
    const auto known = process_of(fork.pid);
    if (!known) {
      return tl::unexpected<Error>(known.error());
    }
    process = *known;
  }
  const auto parent = thread_of_tid_.find(fork.parent_tid);
  const std::string* name = parent == thread_of_tid_.end() ? names_.intern("") : threads_[parent->second].name;
  const auto thread = new_thread(*process, fork.tid);
  if (!thread) {
    return tl::unexpected<Error>(thread.error());
  }
  threads_[*thread].name = name;
  threads_[*thread].begin_ns = time_ns;
  return {};
}

void Tasks::add(const perf_data::Exit& exit, std::uint64_t time_ns) {
  const auto thread = thread_of_tid_.find(exit.tid);
  if (thread != thread_of_tid_.end() && processes_[threads_[thread->second].process].pid == exit.pid) {
    threads_[thread->second].end_ns = time_ns;
    if (exit.tid == exit.pid) {
      processes_[threads_[thread->second].process].end_ns = time_ns;
    }
  }
}

Result<void> Tasks::add(const perf_data::Mapping& mapping, std::uint64_t time_ns) {
  if (is_other_code(mapping)) {
    const auto there = process_of_pid_.find(mapping.pid);
    if (there != process_of_pid_.end()) {
      processes_[there->second].mappings.end(mapping.begin, mapping.begin + mapping.bytes, time_ns);
    }
    return {};
  }
  if (!is_code_of_file(mapping)) {
    return {};
  }
  const auto process = process_of(mapping.pid);
  const auto room = check_room();
  if (!process || !room) {
    return tl::unexpected<Error>(process ? room.error() : process.error());
  }
  CodeMapping code{
      mapping.begin, mapping.begin + mapping.bytes, mapping.file_offset, time_ns, 0, names_.intern(mapping.name),
      nullptr};
  code.inode = mapping.inode;
  code.inode_generation = mapping.inode_generation;
  if (!mapping.build_id.empty()) {
    code.build_id = names_.intern(hexadecimal(mapping.build_id));
  }
  processes_[*process].mappings.add(code);
  ++mappings_;
  return {};
}

void Tasks::number_process(std::size_t process) {
  if (!processes_[process].id) {
    processes_[process].id = ProcessId{numbered_processes_++};
    by_id_.push_back(process);
  }
}

Result<Task*> Tasks::sampled(std::int32_t pid, std::int32_t tid) {
  const auto index = thread_of(pid, tid);
  if (!index) {
    return tl::unexpected<Error>(index.error());
  }
  Task& thread = threads_[*index];
  if (!thread.id) {
    thread.id = ThreadId{numbered_threads_++};
    processes_[thread.process].sampled = true;
    number_process(thread.process);
  }
  ++thread.samples;
  return &thread;
}

void Tasks::lose(std::int32_t tid, std::uint64_t count) {
  const auto thread = thread_of_tid_.find(tid);
  if (thread != thread_of_tid_.end() && threads_[thread->second].id) {
    threads_[thread->second].lost += count;
  } else {
    lost_of_nobody_ += count;
  }
}

/// Threads that were never sampled, of processes that were; and processes from which others have their mappings.
void Tasks::number_the_rest() {
  for (Task& thread : threads_) {
    if (!thread.id && processes_[thread.process].sampled) {
      thread.id = ThreadId{numbered_threads_++};
    }
  }
  std::size_t next = 0;
  while (next < by_id_.size()) {  // it grows
    const auto ancestor = processes_[by_id_[next++]].modules_of;
    if (ancestor) {
      number_process(*ancestor);
    }
  }
}

Result<void> Tasks::put_process(profile::ProfileWriter& writer, std::size_t index, std::uint64_t begin_ns) {
  const Process& process = processes_[index];
  profile::ProcessRow row;
  row.id = *process.id;
  row.pid = process.pid;
  row.parent_pid = std::max(process.parent_pid, 0);
  row.begin_ns = process.begin_ns != 0 ? process.begin_ns : begin_ns;
  row.end_ns = process.end_ns;
  if (process.modules_of) {
    row.after_fork = true;
    row.modules_of = processes_[*process.modules_of].id;
  }
  for (const CodeMapping& mapping : process.mappings.all()) {  // a program is mapped before its libraries
    if (row.executable.empty() && mapping.name->starts_with('/')) {
      row.executable = *mapping.name;
    }
  }
  row.command = row.executable;
  for (const std::size_t thread : process.threads) {  // the kernel's have no file
    if (row.command.empty() && threads_[thread].tid == process.pid) {
      row.command = *threads_[thread].name;
    }
  }
  Result<void> result = writer.put(row);
  for (const CodeMapping& mapping : process.mappings.all()) {
    const std::string* const build_id = build_ids_.of(mapping);
    const bool unidentified = build_id == nullptr && mapping.name->starts_with('/');
    const bool replaced = unidentified && is_replaced_here(mapping);
    if (unidentified && !replaced) {
      unidentified_.insert(mapping.name);
    }
    for (const profile::ModuleRow& module : module_rows_.rows(*process.id, mapping, build_id, replaced)) {
      result = result ? writer.put(module) : result;
    }
  }
  return result;
}

bool Tasks::is_replaced_here(const CodeMapping& mapping) {
  if (!of_this_host_) {
    return false;
  }
  const auto [known, fresh] = replaced_.try_emplace({mapping.name, mapping.inode, mapping.inode_generation});
  if (fresh) {
    known->second = is_replaced(mapping);
  }
  return known->second;
}

std::vector<std::string> Tasks::replaced_files() const {
  std::set<std::string> names;
  for (const auto& [file, replaced] : replaced_) {
    if (replaced) {
      names.insert(*std::get<0>(file));
    }
  }
  return {names.begin(), names.end()};
}

Result<void> Tasks::put(profile::ProfileWriter& writer, std::uint64_t begin_ns, bool of_this_host) {
  of_this_host_ = of_this_host;
  number_the_rest();
  Result<void> result;
  for (std::size_t i = 0; i < by_id_.size() && result; ++i) {
    result = put_process(writer, by_id_[i], begin_ns);
  }
  for (const Task& thread : threads_) {
    if (!thread.id || !result) {
      continue;
    }
    profile::ThreadRow row;
    row.id = *thread.id;
    row.process = *processes_[thread.process].id;
    row.tid = thread.tid;
    row.name = *thread.name;
    row.begin_ns = thread.begin_ns != 0 ? thread.begin_ns : begin_ns;
    row.end_ns = thread.end_ns;
    row.cpu_ns = thread.cpu_ns;
    row.samples = thread.samples;
    row.lost = thread.lost + (row.id.value == 0 ? lost_of_nobody_ : 0);
    result = writer.put(row);
  }
  return result;
}

}  // namespace crosstalk::perf_import
