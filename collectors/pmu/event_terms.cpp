// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_terms.h"

#include <optional>
#include <vector>

#include "base/number.h"
#include "base/split.h"

namespace crosstalk::collectors {
namespace {

std::optional<std::uint64_t> term_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  text.remove_prefix(hexadecimal ? 2 : 0);
  constexpr int ten = 10;
  constexpr int sixteen = 16;
  return whole_number<std::uint64_t>(text, hexadecimal ? sixteen : ten);
}

struct Bits {
  unsigned first = 0, last = 0;
};

/// "5" or "0-7".
std::optional<Bits> bits_of(std::string_view text) {
  constexpr unsigned word_bits = 64;
  const std::size_t dash = text.find('-');
  const auto first = term_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : term_number(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= word_bits) {
    return std::nullopt;
  }
  return Bits{static_cast<unsigned>(*first), static_cast<unsigned>(*last)};
}

std::optional<std::size_t> word_of(std::string_view name) {
  constexpr std::array<std::string_view, 4> words = {"config", "config1", "config2", "config3"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (name == words.at(i)) {
      return i;
    }
  }
  return std::nullopt;
}

tl::unexpected<Error> wrong(const std::string& what) { return fail(ErrorCode::invalid_argument, what); }

}  // namespace

Result<void> put_term(std::string_view place, std::uint64_t value, EventConfig& config) {
  const std::size_t colon = place.find(':');
  const auto word = word_of(place.substr(0, colon));
  if (!word || colon == std::string_view::npos) {
    return wrong("'" + std::string(place) + "' is no place in an event");
  }
  std::uint64_t rest = value;
  for (const std::string_view part : split(place.substr(colon + 1), ',')) {
    const auto bits = bits_of(part);
    if (!bits) {
      return wrong("'" + std::string(place) + "' is no place in an event");
    }
    const unsigned width = bits->last - bits->first + 1;
    constexpr unsigned word_bits = 64;
    const std::uint64_t mask = width == word_bits ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    config.at(*word) = (config.at(*word) & ~(mask << bits->first)) | (rest & mask) << bits->first;
    rest = width == word_bits ? 0 : rest >> width;
  }
  if (rest != 0) {
    return wrong(std::to_string(value) + " does not fit into " + std::string(place));
  }
  return {};
}

std::uint64_t term_value(std::string_view place, const EventConfig& config) {
  const std::size_t colon = place.find(':');
  const auto word = word_of(place.substr(0, colon));
  if (!word || colon == std::string_view::npos) {
    return 0;
  }
  std::uint64_t value = 0;
  unsigned filled = 0;
  for (const std::string_view part : split(place.substr(colon + 1), ',')) {
    const auto bits = bits_of(part);
    constexpr unsigned word_bits = 64;
    if (!bits || filled >= word_bits) {
      return 0;
    }
    const unsigned width = bits->last - bits->first + 1;
    const std::uint64_t mask = width == word_bits ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    value |= (config.at(*word) >> bits->first & mask) << filled;
    filled += width;
  }
  return value;
}

Result<EventConfig> encode_terms(const EventFormat& format, std::string_view terms) {
  EventConfig config{};
  for (const std::string_view term : split(terms, ',')) {
    const std::size_t equals = term.find('=');
    const std::string_view name = term.substr(0, equals);
    const auto value =
        equals == std::string_view::npos ? std::optional<std::uint64_t>(1) : term_number(term.substr(equals + 1));
    if (!value) {
      return wrong("'" + std::string(term) + "' has no number");
    }
    const auto place = format.find(name);
    if (place == format.end() && !word_of(name)) {
      return wrong("the unit has no '" + std::string(name) + "'");
    }
    if (place == format.end()) {
      config.at(*word_of(name)) = *value;
    } else if (const auto put = put_term(place->second, *value, config); !put) {
      return tl::unexpected<Error>(put.error());
    }
  }
  return config;
}

}  // namespace crosstalk::collectors
