// SPDX-License-Identifier: Apache-2.0
#include "attribution/program/program_names.h"

#include <algorithm>

namespace crosstalk::attribution {
namespace {

/// The end of the first word of a shell-quoted command.
std::size_t end_of_word(const std::string& command) {
  bool quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == '\\' && !quoted) {
      ++i;
    } else if (command[i] == '\'') {
      quoted = !quoted;
    } else if (command[i] == ' ' && !quoted) {
      return i;
    }
  }
  return command.size();
}

/// True if a word may be a file's name. Programs are also started with other words ("-bash", "postgres: writer").
bool is_file_name(const std::string& word) {
  return !word.empty() && word.front() != '-' && word.find_first_of(" :'\\") == std::string::npos;
}

}  // namespace

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string arguments_of(const std::string& command) {
  const std::size_t end = end_of_word(command);
  return end < command.size() ? command.substr(end + 1) : "";
}

std::string program_of(const std::string& command) {
  std::string word = command.substr(0, end_of_word(command));
  std::erase(word, '\'');
  return base_name(word);
}

std::string program_name(const profile::ProcessRow& process) {
  std::string started_as = program_of(process.command);
  return is_file_name(started_as) ? started_as : base_name(process.executable);
}

std::string module_name(std::span<const profile::ProcessRow> processes, const std::string& path) {
  std::string name;
  for (const profile::ProcessRow& process : processes) {
    if (process.executable != path) {
      continue;
    }
    const std::string called = program_name(process);
    if (!name.empty() && called != name) {
      return base_name(path);
    }
    name = called;
  }
  return name.empty() ? base_name(path) : name;
}

}  // namespace crosstalk::attribution
