// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/module_file.h"

#include <sys/auxv.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file_content.h"

namespace crosstalk::symbolizer {
namespace {

namespace fs = std::filesystem;

std::string under(const std::string& prefix, const std::string& path) {
  if (prefix.empty()) {
    return path;
  }
  return prefix + (path.starts_with('/') ? "" : "/") + path;
}

bool same_build(const ElfFile& file, const std::string& build_id) {
  return build_id.empty() || file.build_id() == build_id;
}

/// Whether the file at the recorded place is the one that was loaded: by its contents where it has no build id. What a
/// user gives under a sysroot is taken for it then; it may have been stripped, or not.
bool same_contents(const ModuleSpec& spec, const std::string& place) {
  return !spec.build_id.empty() || spec.content_hash == 0 || place != spec.path ||
         content_hash(place) == spec.content_hash;
}

/// Our own vdso is the recorded process's when the build ids are equal (same kernel).
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

/// Places where the loaded file may be, best first.
std::vector<std::string> code_places(const ModuleSpec& spec, const Options& options) {
  std::vector<std::string> places;
  if (!options.sysroot.empty()) {
    places.push_back(under(options.sysroot, spec.path));
  }
  places.push_back(spec.path);
  return places;
}

void open_code(const ModuleSpec& spec, const Options& options, Debuginfod& servers, ModuleFiles& files) {
  std::string not_this;
  for (const std::string& place : code_places(spec, options)) {
    auto file = ElfFile::open(place);
    if (!file) {
      if (not_this.empty() || file.error().code != ErrorCode::not_found) {
        not_this = file.error().message + "; give the recorded file under --sysroot";
      }
      continue;
    }
    if (same_build(*file, spec.build_id) && same_contents(spec, place)) {
      files.code = std::move(*file);
      return;
    }
    not_this = changed(*file, spec.build_id);
  }
  if (const auto cached = servers.find(spec.build_id, Debuginfod::Kind::executable)) {
    if (auto file = ElfFile::open(*cached); file && same_build(*file, spec.build_id)) {
      files.code = std::move(*file);
      return;
    }
  }
  files.code_missing = not_this;
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

/// <debug path>/.build-id/xx/yyyy.debug
std::vector<std::string> build_id_places(const std::string& build_id, const Options& options) {
  std::vector<std::string> places;
  if (build_id.size() < 4) {
    return places;
  }
  for (const std::string& debug_path : options.debug_paths) {
    const std::string tail = debug_path + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
    if (!options.sysroot.empty()) {
      places.push_back(under(options.sysroot, tail));
    }
    places.push_back(tail);
  }
  return places;
}

/// The debugger's customary places for a .gnu_debuglink name.
std::vector<std::string> link_places(const std::string& code_path, const std::string& recorded_path,
                                     const std::string& name, const Options& options) {
  const std::string folder = fs::path(code_path).parent_path().string();
  const std::string recorded = fs::path(recorded_path).parent_path().string();
  std::vector<std::string> places = {folder + "/" + name, folder + "/.debug/" + name};
  for (const std::string& debug_path : options.debug_paths) {
    const fs::path place = fs::path(debug_path + recorded) / name;
    if (!options.sysroot.empty()) {
      places.push_back(under(options.sysroot, place.string()));
    }
    places.push_back(place.string());
  }
  return places;
}

bool checksum_matches(const ElfFile& file, std::uint32_t checksum) {
  std::size_t size = 0;
  const char* raw = elf_rawfile(file.elf(), &size);
  return raw != nullptr && debuglink_checksum({reinterpret_cast<const std::uint8_t*>(raw), size}) == checksum;
}

std::optional<ElfFile> open_debug(const ModuleSpec& spec, const Options& options, Debuginfod& servers,
                                  const ElfFile* code) {
  const std::string& build_id = code != nullptr && spec.build_id.empty() ? code->build_id() : spec.build_id;
  for (const std::string& place : build_id_places(build_id, options)) {
    if (auto file = ElfFile::open(place); file && useful(*file) && same_build(*file, build_id)) {
      return std::move(*file);
    }
  }
  if (const auto link = code != nullptr ? debug_link(*code) : std::nullopt) {
    for (const std::string& place : link_places(code->path(), spec.path, link->name, options)) {
      auto file = ElfFile::open(place);
      if (!file || !useful(*file) || place == code->path()) {
        continue;
      }
      const bool ids = !build_id.empty() && !file->build_id().empty();
      if (ids ? file->build_id() == build_id : checksum_matches(*file, link->checksum)) {
        return std::move(*file);
      }
    }
  }
  if (const auto cached = servers.find(build_id, Debuginfod::Kind::debug_information)) {
    if (auto file = ElfFile::open(*cached); file && useful(*file) && same_build(*file, build_id)) {
      return std::move(*file);
    }
  }
  return std::nullopt;
}

}  // namespace

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
  if (spec.is_vdso) {
    files.code = own_vdso();
    if (files.code && !same_build(*files.code, spec.build_id)) {
      files.code.reset();
    }
    if (!files.code) {
      files.code_missing = "the vdso of another kernel; report on the machine that was recorded";
    }
    return files;
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
  return files;
}

}  // namespace crosstalk::symbolizer
