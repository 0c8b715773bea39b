// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/configuration.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "daemon/service/journal.h"
#include "daemon/service/quantities.h"

#define TOML_EXCEPTIONS 0  // the shared library of Debian throws
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace crosstalk::service {
namespace {

/// A table of the file. Takes values out of it one by one, and remembers the first error. In the end, unknown keys are
/// an error, too.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string file, std::string title)
      : table_(table), file_(std::move(file)), title_(std::move(title)) {}

  void take(const char* key, std::string& value) {
    if (const toml::node* const node = find(key)) {
      const auto text = node->value_exact<std::string>();
      if (text && *text == printable(*text)) {
        value = *text;
      } else {
        refuse(*node, std::string(key) + " must be a string" + (text ? " without control characters" : ""));
      }
    }
  }
  void take(const char* key, bool& value) {
    if (const toml::node* const node = find(key)) {
      if (const auto truth = node->value_exact<bool>()) {
        value = *truth;
      } else {
        refuse(*node, std::string(key) + " must be true or false");
      }
    }
  }
  void take(const char* key, std::uint32_t& value, std::uint32_t least, std::uint32_t most) {
    if (const toml::node* const node = find(key)) {
      const auto number = node->value_exact<std::int64_t>();
      if (number && *number >= least && *number <= most) {
        value = static_cast<std::uint32_t>(*number);
      } else {
        refuse(*node,
               std::string(key) + " must be a number from " + std::to_string(least) + " to " + std::to_string(most));
      }
    }
  }
  /// `parse`: text -> optional value. `form`: what it takes, with an example.
  template <class Value, class Parse>
  void take_text(const char* key, Value& value, Parse parse, const std::string& form) {
    if (const toml::node* const node = find(key)) {
      const auto text = node->value_exact<std::string>();
      const auto parsed = text ? parse(*text) : std::nullopt;
      if (parsed) {
        value = *parsed;
      } else {
        refuse(*node, std::string(key) + " must be " + form);
      }
    }
  }
  [[nodiscard]] const toml::node* find(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }
  void refuse(const toml::node& at, const std::string& why) {
    if (!error_) {
      error_ = Error{ErrorCode::invalid_argument,
                     printable(file_ + ":" + std::to_string(at.source().begin.line) + ": " + why)};
    }
  }
  [[nodiscard]] Result<void> finish() {
    for (const auto& [key, node] : table_) {
      if (!known_.contains(std::string(key.str()))) {
        refuse(node, "there is no key '" + std::string(key.str()) + "' " + title_ + "; it may have: " + keys());
      }
    }
    return error_ ? tl::unexpected<Error>(*error_) : Result<void>();
  }

 private:
  [[nodiscard]] std::string keys() const {
    std::string all;
    for (const std::string& key : known_) {
      all += (all.empty() ? "" : ", ") + key;
    }
    return all;
  }

  const toml::table& table_;
  std::string file_, title_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

std::optional<double> parse_budget(std::string_view text) {
  const auto part = parse_percent(text);
  return part && *part >= 0.001 && *part <= 0.5 ? part : std::nullopt;
}
constexpr const char* budget_form = "a percentage from 0.1% to 50%, like \"1%\"";

bool is_name(const std::string& name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 64 && name.front() != '.' &&
         name.find_first_not_of(letters) == std::string::npos;
}

std::optional<std::uint64_t> parse_interval(std::string_view text) {
  const auto seconds = parse_duration_s(text);
  return seconds && *seconds >= 1 && *seconds <= 86400 ? seconds : std::nullopt;
}

/// Returns the fault of a pattern that no process can match; null: it has none.
const char* fault_of(const Match& match) {
  if (match.pattern.empty()) {
    return "must not be empty";
  }
  if (match.by == MatchBy::unit && match.pattern.find('/') != std::string::npos) {
    return "must be the name of a unit, without '/'; for the path of a control group there is cgroup";
  }
  if (match.by == MatchBy::cgroup && match.pattern.front() != '/') {
    return "must be a path that begins with '/', as in /proc/PID/cgroup";
  }
  return nullptr;
}

void take_match(TableReader& table, const toml::table& whole, Match& match) {
  std::uint32_t given = 0;
  const toml::node* last = &whole;
  for (const auto& [key, by] : {std::pair{"unit", MatchBy::unit}, std::pair{"cgroup", MatchBy::cgroup},
                                std::pair{"executable", MatchBy::executable}, std::pair{"command", MatchBy::command}}) {
    const toml::node* const node = table.find(key);
    if (node == nullptr) {
      continue;
    }
    match.by = by;
    table.take(key, match.pattern);
    if (const char* const fault = fault_of(match)) {
      table.refuse(*node, std::string(key) + " " + fault);
    }
    last = node;
    ++given;
  }
  if (given != 1) {
    table.refuse(*last, "a [[service]] needs exactly one of: unit, cgroup, executable, command; it has " +
                            std::to_string(given));
  }
}

Result<ServiceSettings> service_of(const toml::table& whole, const std::string& file) {
  ServiceSettings service;
  TableReader table(whole, file, "in [[service]]");
  table.take("name", service.name);
  if (!is_name(service.name)) {
    table.refuse(whole, "a [[service]] needs a name of at most 64 letters, digits, '.', '_' or '-'; it has '" +
                            service.name + "'");
  }
  take_match(table, whole, service.match);
  table.take_text("budget", service.budget, parse_budget, budget_form);
  table.take_text("interval", service.interval_s, parse_interval, "a duration from 1s to 1d, like \"60s\"");
  table.take("children", service.children);
  table.take("watch", service.watch);
  table.take("access", service.access);
  table.take("pprof", service.pprof);
  auto finished = table.finish();
  return finished ? Result<ServiceSettings>(std::move(service)) : tl::unexpected<Error>(finished.error());
}

/// Returns a table of the file; null if it has none, or if `key` is something else, which is refused.
const toml::table* table_of(TableReader& root, const char* key) {
  const toml::node* const node = root.find(key);
  if (node != nullptr && !node->is_table()) {
    root.refuse(*node, std::string(key) + " must be a table: [" + key + "]");
  }
  return node != nullptr ? node->as_table() : nullptr;
}

Result<void> take_daemon(const toml::table& whole, const std::string& file, Configuration& into) {
  TableReader table(whole, file, "in [daemon]");
  table.take_text("budget", into.budget, parse_budget, budget_form);
  table.take("sessions", into.sessions, 1, 1000);
  table.take_text("longest_session", into.longest_s, parse_interval, "a duration from 1s to 1d, like \"1h\"");
  table.take("group", into.group);
  return table.finish();
}

Result<void> take_state(const toml::table& whole, const std::string& file, Configuration& into) {
  TableReader table(whole, file, "in [state]");
  table.take("directory", into.state);
  if (!into.state.starts_with('/')) {
    table.refuse(whole, "directory must be an absolute path; it is '" + into.state + "'");
  }
  table.take_text("max_age", into.max_age_s, parse_duration_s, "a duration, like \"7d\"");
  table.take_text("max_size", into.max_bytes, parse_bytes, "a size, like \"1G\"");
  return table.finish();
}

Result<void> take_metrics(const toml::table& whole, const std::string& file, Configuration& into) {
  TableReader table(whole, file, "in [metrics]");
  std::uint32_t port = into.metrics_port;
  table.take("address", into.metrics_address);
  table.take("port", port, 0, 65535);
  table.take("rows", into.metrics_rows, 0, 1000);
  into.metrics_port = static_cast<std::uint16_t>(port);
  return table.finish();
}

Result<void> take_services(const toml::node& node, const std::string& file, Configuration& into) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || !array->is_homogeneous<toml::table>()) {
    return fail(ErrorCode::invalid_argument,
                file + ":" + std::to_string(node.source().begin.line) + ": service must be tables: [[service]]");
  }
  std::set<std::string> names;
  for (const toml::node& each : *array) {
    auto service = service_of(*each.as_table(), file);
    if (!service) {
      return tl::unexpected<Error>(service.error());
    }
    if (!names.insert(service->name).second) {
      return fail(ErrorCode::invalid_argument, file + ":" + std::to_string(each.source().begin.line) +
                                                   ": there are two services '" + service->name + "'");
    }
    into.services.push_back(std::move(*service));
  }
  return {};
}

}  // namespace

Result<Configuration> parse_configuration(std::string_view text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(ErrorCode::invalid_argument, printable(name + ":" + std::to_string(error.source().begin.line) +
                                                       ": it is not TOML: " + std::string(error.description())));
  }
  Configuration result;
  TableReader root(parsed.table(), name, "outside of tables");
  Result<void> taken;
  using Take = Result<void> (*)(const toml::table&, const std::string&, Configuration&);
  for (const auto& [key, take] :
       {std::pair<const char*, Take>{"daemon", take_daemon}, {"state", take_state}, {"metrics", take_metrics}}) {
    if (const toml::table* const table = table_of(root, key); table != nullptr && taken) {
      taken = take(*table, name, result);
    }
  }
  if (const toml::node* const services = root.find("service"); services != nullptr && taken) {
    taken = take_services(*services, name, result);
  }
  auto finished = root.finish();
  for (const Result<void>* each : {&taken, &finished}) {
    if (!*each) {
      return tl::unexpected<Error>(each->error());
    }
  }
  return result;
}

Result<Configuration> read_configuration(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(ErrorCode::not_found, "cannot read the configuration " + path + ": " + std::strerror(errno));
  }
  const bool is_empty = file.peek() == std::ifstream::traits_type::eof();
  std::ostringstream text;
  text << file.rdbuf();  // unlike an iterator, it throws nothing
  const bool is_read = !file.bad() && (is_empty || !text.fail());
  return is_read ? parse_configuration(text.str(), path)
                 : fail(ErrorCode::system, "cannot read the configuration " + path + ": is it a file?");
}

}  // namespace crosstalk::service
