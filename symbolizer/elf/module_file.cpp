// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/module_file.h"

#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/build_id.h"
#include "base/file_content.h"
#include "symbolizer/elf/unpack.h"

namespace crosstalk::symbolizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view deleted = " (deleted)";

/// A file's place: a path below a root, with its links below it, too, or a plain path.
struct PlaceOfFile {
  std::string root, path;
};
using Places = std::vector<PlaceOfFile>;

Result<ElfFile> open_at(const PlaceOfFile& place) {
  return place.root.empty() ? ElfFile::open(place.path) : ElfFile::open_below(place.root, place.path);
}

/// Adds a file's places, first the one below the sysroot.
void add_place(const std::string& path, const Options& options, Places& places) {
  if (!options.sysroot.empty()) {
    places.push_back({options.sysroot, path});
  }
  places.push_back({{}, path});
}

bool same_build(const ElfFile& file, const std::string& build_id) {
  return build_id.empty() || same_build_id(build_id, file.build_id());
}

/// True if the file at the recorded path is the loaded one. Compares contents if no build id was recorded, except below
/// a sysroot: the user has chosen that file, and it may have been stripped.
bool same_contents(const ModuleSpec& spec, const PlaceOfFile& place) {
  return !spec.build_id.empty() || spec.content_hash == 0 || !place.root.empty() ||
         content_hash(place.path) == spec.content_hash;
}

/// Our own vdso, which equals the recorded process's if the build ids are equal (same kernel).
std::optional<ElfFile> own_vdso() {
  const auto base = getauxval(AT_SYSINFO_EHDR);
  if (base == 0) {
    return std::nullopt;
  }
  Elf64_Ehdr header;
  const auto* image = reinterpret_cast<const std::uint8_t*>(base);  // NOLINT(performance-no-int-to-ptr)
  std::memcpy(&header, image, sizeof header);
  const std::size_t bytes = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  constexpr std::size_t sane = 1U << 20U;
  if (header.e_shoff == 0 || bytes > sane) {
    return std::nullopt;
  }
  auto file = ElfFile::from_memory({image, bytes});
  return file ? std::optional<ElfFile>(std::move(*file)) : std::nullopt;
}

std::string changed(const ElfFile& found, const std::string& recorded) {
  const std::string how = recorded.empty() ? "it has no build id, and its contents are others"
                                           : "build id " + (found.build_id().empty() ? "none" : found.build_id()) +
                                                 ", recorded " + recorded;
  return found.path() + " has changed since the recording (" + how +
         "); give the recorded file under --sysroot, or record again";
}

/// perf's cache of files and debug information: `what` is "elf", "debug" or "vdso".
void add_cached_by_perf(const std::string& build_id, const std::string& what, Places& places) {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0' && build_id.size() >= 4) {
    const std::string entry =
        std::string(home) + "/.debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
    places.push_back({{}, entry + "/" + what});
    places.push_back({{}, entry});  // of old perfs
  }
}

/// Places where the loaded file may be, best first.
Places code_places(const ModuleSpec& spec, const Options& options) {
  Places places;
  add_place(spec.path, options, places);
  if (spec.path.ends_with(deleted)) {
    add_place(spec.path.substr(0, spec.path.size() - deleted.size()), options, places);
  }
  add_cached_by_perf(spec.build_id, "elf", places);
  return places;
}

/// The reason why a file at `place` cannot be identified; empty if it can, or if the user gave it.
std::string unidentified(const ModuleSpec& spec, const Options& options, const PlaceOfFile& place) {
  if (!spec.build_id.empty() || !place.root.empty()) {
    return {};
  }
  if (place.path != spec.path) {  // without the mark of a file that is gone
    return spec.path + " was deleted or replaced, and has no build id to find it by; record again";
  }
  if (!options.other_host.empty() && spec.content_hash == 0) {
    return "the recording is of host " + options.other_host +
           " and has no build id of it, so the file of that path here "
           "may be another; give the recorded file under --sysroot (--sysroot / takes the files that are here)";
  }
  return {};
}

/// The recording's copy of the file.
std::optional<ElfFile> kept_copy(const ModuleSpec& spec, const Options& options) {
  const auto bytes = options.kept_copy ? options.kept_copy(spec) : std::nullopt;
  auto file = bytes ? ElfFile::from_memory(*bytes) : fail(ErrorCode::not_found, "");
  return file && same_build(*file, spec.build_id) ? std::optional(std::move(*file)) : std::nullopt;
}

void open_code(const ModuleSpec& spec, const Options& options, Debuginfod& servers, ModuleFiles& files) {
  std::string not_this;
  for (const PlaceOfFile& place : code_places(spec, options)) {
    auto file = open_at(place);
    if (!file) {
      if (not_this.empty()) {
        not_this = file.error().message + "; give the recorded file under --sysroot";
      }
      continue;
    }
    std::string why_not = unidentified(spec, options, place);
    if (why_not.empty() && same_build(*file, spec.build_id) && same_contents(spec, place)) {
      files.code = std::move(*file);
      return;
    }
    not_this = why_not.empty() ? changed(*file, spec.build_id) : std::move(why_not);
  }
  files.code = kept_copy(spec, options);
  if (files.code) {
    return;
  }
  if (const auto cached = servers.find(spec.build_id, Debuginfod::Kind::executable)) {
    if (auto file = ElfFile::open(*cached); file && same_build(*file, spec.build_id)) {
      files.code = std::move(*file);
      return;
    }
  }
  files.code_missing = spec.path.starts_with("/memfd:")
                           ? spec.path + " was a file in memory, and is gone with its process; record again"
                           : not_this;
}

struct DebugLink {
  std::string name;
  std::uint32_t checksum = 0;
};

std::optional<DebugLink> debug_link(const ElfFile& code) {
  const Section* section = code.section(".gnu_debuglink");
  if (section == nullptr) {
    return std::nullopt;
  }
  const auto bytes = ElfFile::contents(*section);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t length = bytes.empty() ? 0 : strnlen(text, bytes.size());
  const std::size_t at = (length + 4) & ~std::size_t{3};
  if (length == 0 || at + 4 > bytes.size()) {
    return std::nullopt;
  }
  DebugLink link{std::string(text, length), 0};
  std::memcpy(&link.checksum, bytes.data() + at, 4);
  return link.name.find('/') == std::string::npos ? std::optional(link) : std::nullopt;
}

bool has_debug_information(const ElfFile& file) {
  return file.has_contents(".debug_info") || file.has_contents(".zdebug_info");
}

bool useful(const ElfFile& file) { return has_debug_information(file) || file.has_contents(".symtab"); }

/// A recorded build id, and the shorter ids that zeros may have padded to it.
std::vector<std::string> possible_ids(const std::string& recorded) {
  std::vector<std::string> ids;
  for (const std::size_t digits : {recorded.size(), std::size_t{32}, std::size_t{16}}) {
    if (digits >= 4 && digits <= recorded.size() && recorded.find_first_not_of('0', digits) == std::string::npos &&
        (ids.empty() || ids.back().size() != digits)) {
      ids.push_back(recorded.substr(0, digits));
    }
  }
  return ids;
}

/// <debug path>/.build-id/xx/yyyy.debug
Places build_id_places(const std::string& build_id, const Options& options) {
  Places places;
  for (const std::string& id : possible_ids(build_id)) {
    for (const std::string& debug_path : options.debug_paths) {
      add_place(debug_path + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug", options, places);
    }
    add_cached_by_perf(id, "debug", places);
  }
  return places;
}

/// The debugger's customary places for a .gnu_debuglink name.
Places link_places(const ElfFile& code, const std::string& recorded_path, const std::string& name,
                   const Options& options) {
  Places places;
  for (const std::string& path : {code.path(), code.real_path()}) {
    const std::string folder = fs::path(path).parent_path().string();
    places.push_back({{}, folder + "/" + name});
    places.push_back({{}, folder + "/.debug/" + name});
  }
  const std::string recorded = fs::path(recorded_path).parent_path().string();
  for (const std::string& debug_path : options.debug_paths) {
    add_place(debug_path + recorded + "/" + name, options, places);
  }
  return places;
}

bool checksum_matches(const ElfFile& file, std::uint32_t checksum) {
  std::size_t size = 0;
  const char* raw = elf_rawfile(file.elf(), &size);
  return raw != nullptr && debuglink_checksum({reinterpret_cast<const std::uint8_t*>(raw), size}) == checksum;
}

/// The first file of `places` with debug information or symbols of that build.
std::optional<ElfFile> first_of_build(const Places& places, const std::string& build_id) {
  for (const PlaceOfFile& place : places) {
    if (auto file = open_at(place); file && useful(*file) && same_build(*file, build_id)) {
      return std::move(*file);
    }
  }
  return std::nullopt;
}

std::optional<ElfFile> open_linked(const ModuleSpec& spec, const Options& options, const ElfFile& code) {
  const auto link = debug_link(code);
  const Places places = link ? link_places(code, spec.path, link->name, options) : Places();
  for (const PlaceOfFile& place : places) {
    auto file = open_at(place);
    if (!file || !useful(*file) || file->real_path() == code.real_path()) {
      continue;
    }
    const bool ids = !code.build_id().empty() && !file->build_id().empty();
    if (ids ? file->build_id() == code.build_id() : checksum_matches(*file, link->checksum)) {
      return std::move(*file);
    }
  }
  return std::nullopt;
}

std::optional<ElfFile> open_debug(const ModuleSpec& spec, const Options& options, Debuginfod& servers,
                                  const ElfFile* code) {
  const std::string& build_id = code != nullptr && !code->build_id().empty() ? code->build_id() : spec.build_id;
  if (build_id.size() >= 4) {
    if (auto file = first_of_build(build_id_places(build_id, options), build_id)) {
      return file;
    }
  }
  if (auto file = code != nullptr ? open_linked(spec, options, *code) : std::nullopt) {
    return file;
  }
  const auto cached = servers.find(build_id, Debuginfod::Kind::debug_information);
  return cached ? first_of_build({{{}, *cached}}, build_id) : std::nullopt;
}

/// MiniDebugInfo: a .symtab of symbols that .dynsym lacks.
std::optional<ElfFile> open_embedded(const ElfFile& code) {
  const Section* section = code.section(".gnu_debugdata");
  const auto bytes = section != nullptr ? unpack_xz(ElfFile::contents(*section)) : std::nullopt;
  auto file = bytes ? ElfFile::from_memory(*bytes) : fail(ErrorCode::not_found, "");
  return file ? std::optional(std::move(*file)) : std::nullopt;
}

ModuleFiles open_vdso(const ModuleSpec& spec) {
  ModuleFiles files;
  files.code = own_vdso();
  if (files.code && same_build(*files.code, spec.build_id)) {
    return files;
  }
  Places places;
  add_cached_by_perf(spec.build_id, "vdso", places);
  files.code = spec.build_id.empty() ? std::nullopt : first_of_build(places, spec.build_id);
  if (!files.code) {
    files.code_missing = "the vdso of another kernel; report on the machine that was recorded";
  }
  return files;
}

}  // namespace

std::optional<ElfFile> open_supplement(const std::string& name, const std::string& build_id, const ElfFile& of,
                                       const Options& options) {
  Places places;
  if (build_id.size() >= 4) {
    places = build_id_places(build_id, options);
  }
  const fs::path folder = fs::path(of.path()).parent_path();
  add_place(name.starts_with('/') ? name : (folder / name).lexically_normal().string(), options, places);
  for (const PlaceOfFile& place : places) {
    if (auto file = open_at(place); file && file->build_id() == build_id) {
      return std::move(*file);
    }
  }
  return std::nullopt;
}

std::uint32_t debuglink_checksum(std::span<const std::uint8_t> bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> values{};
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) {
        value = (value & 1U) != 0 ? (value >> 1U) ^ 0xedb88320U : value >> 1U;
      }
      values[i] = value;
    }
    return values;
  }();
  std::uint32_t checksum = ~0U;
  for (const std::uint8_t byte : bytes) {
    checksum = table[(checksum ^ byte) & 255U] ^ (checksum >> 8U);
  }
  return ~checksum;
}

ModuleFiles open_module(const ModuleSpec& spec, const Options& options, Debuginfod& servers) {
  ModuleFiles files;
  if (!options.foreign_architecture.empty()) {
    files.code_missing =
        "it is code of an " + options.foreign_architecture + " machine; names are read of x86-64 code only";
    return files;
  }
  if (spec.is_vdso) {
    return open_vdso(spec);
  }
  if (spec.path.empty()) {
    files.code_missing = "no file is known for this code";
    return files;
  }
  open_code(spec, options, servers, files);
  const bool complete = files.code && has_debug_information(*files.code) && files.code->has_contents(".symtab");
  if (!complete) {
    files.debug = open_debug(spec, options, servers, files.code ? &*files.code : nullptr);
  }
  if (files.code && !files.code->has_contents(".symtab")) {
    files.embedded = open_embedded(*files.code);
  }
  return files;
}

}  // namespace crosstalk::symbolizer
