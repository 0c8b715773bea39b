// SPDX-License-Identifier: Apache-2.0
#include "driver/files/machine_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "collectors/calibration/machine_description.h"
#include "driver/files/result_file.h"
#include "models/machine_json.h"

namespace crosstalk::driver {
namespace {

constexpr std::uintmax_t most_bytes = 16U << 20;
constexpr const char* remedy = "; 'crosstalk calibrate' measures this machine anew";

/// Returns the variable's folder; empty if unset or not absolute, since the XDG specification ignores relative paths.
std::string folder_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(ErrorCode::not_found, path + ": no such file" + remedy);
  }
  if (!std::filesystem::is_regular_file(status) || std::filesystem::file_size(path, error) > most_bytes || error) {
    return fail(ErrorCode::corrupt, path + ": it is no machine file" + remedy);
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) {
    return fail(ErrorCode::permission, path + ": it cannot be read");
  }
  return text;
}

Error in_file(const std::string& path, const Error& error) {
  return {error.code, path + ": " + error.message + remedy};
}

}  // namespace

Result<std::string> machine_file_path() {
  constexpr const char* name = "/crosstalk/machine.json";
  if (const std::string folder = folder_of("XDG_CONFIG_HOME"); !folder.empty()) {
    return folder + name;
  }
  if (const std::string home = folder_of("HOME"); !home.empty()) {
    return home + "/.config" + name;
  }
  return fail(ErrorCode::not_found, "neither XDG_CONFIG_HOME nor HOME is set; name a file with -o");
}

Result<models::Machine> read_machine_file(const std::string& path) {
  const auto text = read_text(path);
  if (!text) {
    return tl::unexpected<Error>(text.error());
  }
  auto machine = models::parse_machine(*text);
  return machine ? std::move(machine) : tl::unexpected<Error>(in_file(path, machine.error()));
}

Result<void> write_machine_file(const std::string& path, const models::Machine& machine) {
  return replace_file(path, models::to_json(machine));
}

Result<std::string> stamp_of_this_machine() {
  const auto path = machine_file_path();
  if (!path) {
    return "";
  }
  const auto machine = read_machine_file(*path);
  if (!machine) {
    return machine.error().code == ErrorCode::not_found ? Result<std::string>("")
                                                        : tl::unexpected<Error>(machine.error());
  }
  const auto here = collectors::calibration::describe_machine();
  if (!here) {
    return tl::unexpected<Error>(here.error());
  }
  if (const auto same = models::check_same_machine(*machine, *here); !same) {
    return tl::unexpected<Error>(in_file(*path, same.error()));
  }
  return models::to_json(*machine);
}

}  // namespace crosstalk::driver
