// SPDX-License-Identifier: Apache-2.0
#include "daemon/module_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/file_content.h"
#include "base/proc_fields.h"

namespace crosstalk::daemon {
namespace {

constexpr std::string_view deleted = " (deleted)";
constexpr std::size_t most_held = 64;
constexpr std::size_t most_processes = 20'000;
constexpr std::uint64_t most_kept_bytes = std::uint64_t{512} << 20U;

UniqueFd open_to_read(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::optional<struct stat> status_of(const UniqueFd& file) {
  struct stat status {};
  return file.valid() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) ? std::optional(status)
                                                                                      : std::nullopt;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

std::string proc_of(pid_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

/// /tmp and others are writable by everyone: a name there may be a link or a pipe.
constexpr int careful = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

/// Opens a file by the path that a process knows it by. Its root may differ from ours, or its /tmp be private. Links on
/// the way lead to places below that root: whoever made them must not choose one of ours.
UniqueFd open_as_seen_by(pid_t pid, const std::string& path) {
  const UniqueFd root(::open(proc_of(pid, "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how{};
  how.flags = careful;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(root.valid() ? static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how))
                               : -1);
}

/// True if our path leads to that file, too: a process may have other mounts.
bool leads_to(const std::string& path, const UniqueFd& file) {
  const auto status = status_of(file);
  struct stat at_path {};
  return status && ::stat(path.c_str(), &at_path) == 0 && same_file(*status, at_path);
}

bool has_our_tmp(pid_t pid) {
  struct stat its {};
  struct stat ours {};
  return ::stat(proc_of(pid, "root/tmp").c_str(), &its) == 0 && ::stat("/tmp", &ours) == 0 && same_file(its, ours);
}

std::string own_pid(pid_t pid) {
  const std::string status = file_text(proc_of(pid, "status"));
  const std::string_view ids = proc_field(status, "NSpid").value_or("");
  return std::string(ids.substr(ids.find_last_of(" \t") + 1));
}

// begin-end perms offset major:minor inode   path
std::optional<MappedAt> mapped_at(std::string_view maps, std::uint64_t address) {
  std::string_view rest = maps;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    std::uint64_t begin = 0, end = 0;
    const char* const last = line.data() + line.size();
    const auto first = std::from_chars(line.data(), last, begin, 16);
    if (first.ptr == last || std::from_chars(first.ptr + 1, last, end, 16).ec != std::errc{} || address < begin ||
        address >= end) {
      continue;
    }
    MappedAt found;
    found.range = line.substr(0, line.find(' '));
    std::size_t field = 0;
    for (int i = 0; i < 4 && field != line.npos; ++i) {
      field = line.find(' ', field + (i == 0 ? 0 : 1));
    }
    if (field != line.npos) {
      std::from_chars(line.data() + field + 1, last, found.inode);
    }
    found.gone = line.ends_with(deleted);
    return found;
  }
  return std::nullopt;
}

/// Opens the mapped file, even if no path leads to it any more.
UniqueFd open_mapped(pid_t pid, const MappedAt& mapped) {
  UniqueFd file = open_to_read(proc_of(pid, "map_files/" + mapped.range));
  if (!file.valid()) {  // needs a privilege, unlike the process's executable
    file = open_to_read(proc_of(pid, "exe"));
    const auto status = status_of(file);
    if (!status || status->st_ino != mapped.inode) {
      file.reset();
    }
  }
  return file;
}

/// True if most of this process's descriptors are still free.
bool has_room(const UniqueFd& file) {
  constexpr unsigned part = 4;
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(file.get()) < limit.rlim_cur / part;
}

/// True on / and /tmp. An open file would keep another file system from being unmounted, which the program may want to
/// do.
bool may_be_held(const struct stat& status) {
  return std::ranges::any_of(std::array{"/", "/tmp"}, [&](const char* folder) {
    struct stat of_folder {};
    return ::stat(folder, &of_folder) == 0 && of_folder.st_dev == status.st_dev;
  });
}

}  // namespace

std::uint64_t ModuleFiles::hash_of(const UniqueFd& file) {
  const auto status = status_of(file);
  if (!status) {
    return 0;
  }
  const auto [known, fresh] = hashes_.try_emplace(
      File{status->st_dev, status->st_ino, status->st_size, status->st_mtim.tv_sec, status->st_mtim.tv_nsec});
  if (fresh) {
    known->second = content_hash("/proc/self/fd/" + std::to_string(file.get()));
  }
  return known->second;
}

/// A process maps its modules in one go, and all of them come here at once: the text is read once for them.
std::optional<MappedAt> ModuleFiles::find_mapped(pid_t pid, std::uint64_t address) {
  constexpr std::uint64_t lasting_ns = 50'000'000;
  const std::uint64_t now_ns = monotonic_ns();
  if (maps_.pid == pid && now_ns - maps_.read_ns < lasting_ns) {
    if (auto mapped = mapped_at(maps_.text, address)) {
      return mapped;
    }
  }
  maps_ = {pid, now_ns, file_text(proc_of(pid, "maps"))};
  return mapped_at(maps_.text, address);
}

/// Reading a process's mappings is the slowest step, so it is skipped without a sign of a replacement.
bool ModuleFiles::may_be_replaced(const profile::ModuleRow& row, const UniqueFd& at_path) const {
  const auto status = status_of(at_path);
  return !status || row.build_id.empty() || status->st_ctim.tv_sec >= since_s_;
}

void ModuleFiles::identify(pid_t pid, profile::ModuleRow& row) {
  if (row.path.empty()) {
    return;
  }
  if (processes_.size() < most_processes) {
    const auto [process, fresh] = processes_.try_emplace(pid);
    if (fresh) {
      process->second = {own_pid(pid), has_our_tmp(pid), ""};
    }
    const std::string name = row.path.substr(row.path.rfind('/') + 1);
    if (name == "jit-" + std::to_string(pid) + ".dump") {
      process->second.jit_dump = row.path;
      return;
    }
  }
  const bool said_gone = row.path.ends_with(deleted);
  if (said_gone) {
    row.path.resize(row.path.size() - deleted.size());
  }
  UniqueFd file = open_to_read(proc_of(pid, "root") + row.path);  // its root may differ from ours
  if (!file.valid()) {
    file = open_to_read(row.path);  // if it has ended, its root was most likely ours
  }
  // Later files would need a copy each of everything that a container runs.
  const bool for_us = keeps_open_ || leads_to(row.path, file);
  bool in_place = !said_gone && status_of(file).has_value();
  const auto mapped = said_gone || may_be_replaced(row, file) ? find_mapped(pid, row.begin) : std::optional<MappedAt>();
  if (mapped && (said_gone || mapped->gone || !in_place || status_of(file)->st_ino != mapped->inode)) {
    in_place = false;
    if (UniqueFd running = open_mapped(pid, *mapped); running.valid()) {
      const bool equal = status_of(file) && hash_of(file) == hash_of(running);
      file = std::move(running);
      in_place = equal;
    } else {
      file.reset();
    }
  } else if (said_gone) {
    file.reset();
  }
  if (row.build_id.empty()) {
    row.content_hash = hash_of(file);
  }
  if (in_place && for_us) {
    hold(row, std::move(file));
  } else if (file.valid()) {
    keep(row.path, row.build_id, row.content_hash, file);
  } else if (said_gone || mapped) {
    row.path += deleted;
  }
}

void ModuleFiles::hold(const profile::ModuleRow& row, UniqueFd file) {
  const auto status = status_of(file);
  if (held_.size() < most_held && status && has_room(file) && may_be_held(*status) && leads_to(row.path, file) &&
      known_.emplace(row.path, row.build_id).second) {
    held_.push_back({row.path, row.build_id, row.content_hash, std::move(file)});
  }
}

void ModuleFiles::look_again() {
  std::erase_if(held_, [this](const Held& held) {
    if (leads_to(held.path, held.file)) {
      return false;
    }
    keep(held.path, held.build_id, held.content_hash, held.file);
    known_.erase({held.path, held.build_id});
    return true;
  });
}

void ModuleFiles::read_compilers_files() {
  const auto map = [](const std::string& id) { return "/tmp/perf-" + id + ".map"; };
  for (const auto& [pid, process] : processes_) {
    const std::string path = map(std::to_string(pid));
    const std::string seen = process.own_id.empty() ? path : map(process.own_id);
    keep_text(pid, seen, process.our_tmp ? seen : path, path);
    if (const std::string& dump = process.jit_dump; !dump.empty()) {
      keep_text(pid, dump, dump, dump);
    }
  }
}

/// Keeps a compiler's file under the name `path`: from where process `pid` sees it, or from `our_path` if that has
/// ended. A file older than the recording belongs to an earlier process with the same pid: kept as empty.
void ModuleFiles::keep_text(pid_t pid, const std::string& seen_path, const std::string& our_path,
                            const std::string& path) {
  UniqueFd file = open_as_seen_by(pid, seen_path);
  if (!file.valid()) {
    file.reset(::open(our_path.c_str(), careful));
  }
  const auto status = status_of(file);
  if (!status) {
    return;
  }
  const bool of_before = status->st_mtim.tv_sec < since_s_;
  const std::uint64_t bytes = of_before ? 0 : static_cast<std::uint64_t>(status->st_size);
  if (has_room_for(bytes)) {
    copy(file, bytes, {path, "", 0, {}});
  }
}

bool ModuleFiles::has_room_for(std::uint64_t bytes) const {
  return bytes <= profile::max_kept_file_bytes && bytes <= most_kept_bytes - kept_bytes_;
}

void ModuleFiles::copy(const UniqueFd& file, std::uint64_t bytes, profile::KeptFileRow row) {
  std::vector<char> contents(bytes);
  if (read_all(file, contents, 0)) {
    kept_bytes_ += bytes;
    row.bytes.assign(contents.begin(), contents.end());
    copies_.push_back(std::move(row));
  }
}

void ModuleFiles::keep(const std::string& path, const std::string& build_id, std::uint64_t content_hash,
                       const UniqueFd& file) {
  const auto status = status_of(file);
  if (!status || (build_id.empty() && content_hash == 0)) {
    return;
  }
  const auto bytes = static_cast<std::uint64_t>(status->st_size);
  if (!has_room_for(bytes)) {
    return;
  }
  const auto [kept, fresh] = kept_.try_emplace(Name{path, build_id, content_hash});
  if (fresh) {
    copy(file, bytes, {path, build_id, content_hash, {}});
    if (keeps_open_ && has_room(file)) {  // a process that has mapped it keeps its file system from being unmounted
      kept->second.reset(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    }
  }
}

void ModuleFiles::begin_file(const std::vector<profile::ModuleRow>& in_use) {
  std::set<Name> names;
  for (const profile::ModuleRow& row : in_use) {
    names.emplace(row.path, row.build_id, row.content_hash);
  }
  kept_bytes_ = 0;
  std::erase_if(kept_, [&](const auto& kept) { return !names.contains(kept.first) || !kept.second.valid(); });
  for (const auto& [name, file] : kept_) {
    const auto& [path, build_id, content_hash] = name;
    if (const auto status = status_of(file); status && has_room_for(static_cast<std::uint64_t>(status->st_size))) {
      copy(file, static_cast<std::uint64_t>(status->st_size), {path, build_id, content_hash, {}});
    }
  }
  std::erase_if(processes_, [](const auto& process) { return ::kill(process.first, 0) != 0 && errno == ESRCH; });
}

}  // namespace crosstalk::daemon
