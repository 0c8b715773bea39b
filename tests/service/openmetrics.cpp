// SPDX-License-Identifier: Apache-2.0
#include "tests/service/openmetrics.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace crosstalk::service::openmetrics {
namespace {

bool is_name(const std::string& name) {
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
  return !name.empty() && letters.find(name[0]) != std::string_view::npos &&
         name.find_first_not_of(std::string(letters) + "0123456789") == std::string::npos;
}

/// Reads one line after the other.
class Reader {
 public:
  explicit Reader(Exposition& into) : into_(into) {}

  /// Returns the fault of a line; empty: it has none.
  std::string take(const std::string& line) {
    if (ended_) {
      return "there is a line after # EOF";
    }
    if (line == "# EOF") {
      ended_ = true;
      return "";
    }
    return line.starts_with("#") ? take_metadata(line) : take_sample(line);
  }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::string take_metadata(const std::string& line) {
    std::istringstream words(line);
    std::string hash, keyword, name, rest;
    words >> hash >> keyword >> name;
    std::getline(words, rest);
    rest = rest.empty() ? rest : rest.substr(1);
    if (hash != "#" || !is_name(name) || (keyword != "TYPE" && keyword != "UNIT" && keyword != "HELP")) {
      return "no metadata";
    }
    if (name != current_) {
      if (!seen_.insert(name).second) {
        return "the family's lines are not together";
      }
      current_ = name;
    }
    Family& family = into_.families[name];
    if (!family.samples.empty()) {
      return "metadata after samples";
    }
    std::string& field = keyword == "TYPE" ? family.type : keyword == "UNIT" ? family.unit : family.help;
    if (!field.empty() || rest.empty()) {
      return "metadata is empty or there twice";
    }
    field = rest;
    if (keyword == "UNIT" && !name.ends_with("_" + rest)) {
      return "the name does not end with the unit";
    }
    const std::set<std::string> types = {"counter", "gauge", "info"};
    return keyword == "TYPE" && !types.contains(rest) ? "an unknown type" : "";
  }

  std::string take_sample(const std::string& line) {
    std::size_t at = line.find_first_of("{ ");
    const std::string sample = line.substr(0, at);
    Labels labels;
    if (at != std::string::npos && line[at] == '{') {
      std::string fault = take_labels(line, ++at, labels);
      if (!fault.empty()) {
        return fault;
      }
    }
    if (at == std::string::npos || line[at] != ' ') {
      return "no blank before the value";
    }
    const std::string number = line.substr(at + 1);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != 0 || number.find_first_not_of("0123456789.e+-") != std::string::npos) {
      return "no number";
    }
    return put(sample, labels, value);
  }

  static std::string take_labels(const std::string& line, std::size_t& at, Labels& labels) {
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      const std::string name = line.substr(at, equals == std::string::npos ? 0 : equals - at);
      if (!is_name(name) || name.find(':') != std::string::npos) {
        return "no label";
      }
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\') {
          ++at;
          if (at == line.size() || std::string_view("\\\"n").find(line[at]) == std::string_view::npos) {
            return "an unknown escape";
          }
          value += line[at] == 'n' ? '\n' : line[at];
        } else {
          value += line[at];
        }
      }
      if (at == line.size() || !labels.emplace(name, value).second) {
        return "a label has no end or is there twice";
      }
      ++at;
      if (at < line.size() && line[at] == ',') {
        ++at;
      } else if (at < line.size() && line[at] != '}') {
        return "no comma between labels";
      }
    }
    if (at == line.size()) {
      return "labels have no end";
    }
    ++at;
    return "";
  }

  std::string put(const std::string& sample, const Labels& labels, double value) {
    const auto found = into_.families.find(current_);
    if (found == into_.families.end() || found->second.type.empty()) {
      return "a sample without a type before it";
    }
    Family& family = found->second;
    const std::string suffix = family.type == "counter" ? "_total" : family.type == "info" ? "_info" : "";
    if (sample != current_ + suffix) {
      return "a sample of another name or suffix";
    }
    if (family.type == "counter" && !(value >= 0)) {
      return "a counter below 0";
    }
    if (family.type == "info" && value != 1) {
      return "an info that is not 1";
    }
    for (const auto& [other, ignored] : family.samples) {
      if (other == labels) {
        return "two samples with the same labels";
      }
    }
    family.samples.emplace_back(labels, value);
    return "";
  }

  Exposition& into_;
  std::set<std::string> seen_;
  std::string current_;
  bool ended_ = false;
};

}  // namespace

double Exposition::value(const std::string& family, const Labels& labels) const {
  const auto found = families.find(family);
  if (found != families.end()) {
    for (const auto& [other, value] : found->second.samples) {
      if (other == labels) {
        return value;
      }
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Exposition parse(const std::string& text) {
  Exposition exposition;
  Reader reader(exposition);
  std::size_t at = 0;
  for (int number = 1; at < text.size() && exposition.fault.empty(); ++number) {
    const std::size_t end = text.find('\n', at);
    const std::string fault =
        end == std::string::npos ? "the last line has no end" : reader.take(text.substr(at, end - at));
    if (!fault.empty()) {
      exposition.fault = "line " + std::to_string(number) + ": " + fault;
    }
    at = end == std::string::npos ? text.size() : end + 1;
  }
  if (exposition.fault.empty() && !reader.ended()) {
    exposition.fault = "there is no # EOF";
  }
  return exposition;
}

}  // namespace crosstalk::service::openmetrics
