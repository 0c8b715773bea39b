// SPDX-License-Identifier: Apache-2.0
#include "models/application_class.h"

#include <cmath>
#include <utility>

#include "models/words.h"

namespace crosstalk::models {
namespace {

constexpr double multiply_add_share = 0.5;  // of operations, from which on a loop may be a matrix multiplication

enum class Ratio : std::uint8_t { low, high, unknown };

/// Compares the loop's ratio with the machine's: above it, memory takes longer than the floating-point units by
/// equations 1.1 and 1.3.
Ratio ratio_of(const ApplicationEvidence& e) {
  if (!e.balance) {
    return Ratio::unknown;
  }
  if (e.bytes_to_flops) {
    return *e.bytes_to_flops > *e.balance ? Ratio::high : Ratio::low;
  }
  return e.bytes_to_flops_limit && *e.bytes_to_flops_limit <= *e.balance ? Ratio::low : Ratio::unknown;
}

std::string ratio_in_words(const ApplicationEvidence& e) {
  if (e.bytes_to_flops && std::isinf(*e.bytes_to_flops)) {
    return "it moves data and does no floating-point operation";
  }
  const std::string than = ", the machine's balance is " + figure(e.balance.value_or(0));
  return e.bytes_to_flops ? "it moves " + figure(*e.bytes_to_flops) + " bytes of memory for each operation" + than
                          : "it moves at most " + figure(e.bytes_to_flops_limit.value_or(0)) +
                                " bytes of memory for each operation, if each access moved a line" + than;
}

std::string body_in_words(const LoopBody& body) {
  std::string text =
      body.instructions ? "an iteration has " + figure(*body.instructions) + " instructions" : "its body";
  text += !body.one_way ? "" : *body.one_way ? ", always the same" : ", and takes different ways";
  text += !body.calls ? "" : *body.calls ? ", and calls functions" : ", no calls";
  return text;
}

std::string access_in_words(const LoopBody& body) {
  return !body.indirect   ? "whether addresses depend on loaded values is not known"
         : *body.indirect ? "addresses depend on values that it loads"
                          : "no address depends on a value that it loads";
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

class Candidates {
 public:
  explicit Candidates(const ApplicationEvidence& evidence) : e_(evidence), simple_(is_simple(evidence.body)) {}

  std::vector<ApplicationCandidate> of_high() {
    if (!e_.body.indirect.value_or(false)) {
      add(ApplicationClass::high_bf_direct, access_in_words(e_.body));
    }
    if (e_.body.indirect.value_or(true)) {
      add(ApplicationClass::high_bf_indirect, access_in_words(e_.body));
    }
    return std::move(found_);
  }

  /// Section 1.6, but a simple loop in the first level alone is no sign of blocking. If the busy-time class is not
  /// known, the body alone decides.
  std::vector<ApplicationCandidate> of_low() {
    const bool fpu = e_.busy_class == BusyClass::in_l2_fpu;
    const bool outer = e_.busy_class == BusyClass::in_l2 || e_.busy_class == BusyClass::in_l3;
    const bool cache = outer || e_.busy_class == BusyClass::in_l1d;
    const bool simple = simple_.value_or(false);
    if (fpu && e_.multiply_adds.value_or(0) >= multiply_add_share) {
      add(ApplicationClass::matrix_multiplication, "the floating-point units are the limit, and " +
                                                       percent(*e_.multiply_adds) +
                                                       " of the operations are multiply-adds");
    }
    if (simple) {
      add(ApplicationClass::low_bf_simple, body_in_words(e_.body));
    }
    if (outer || (cache && !simple)) {
      add(ApplicationClass::cache_blocking, "a cache is the limit, as of blocked code");
    }
    if (!fpu && !cache && !simple) {
      add(ApplicationClass::low_bf_complex,
          body_in_words(e_.body) + (e_.busy_class == BusyClass::under_tuned ? ", and no unit is the limit" : ""));
    }
    return std::move(found_);
  }

 private:
  void add(ApplicationClass which, const std::string& why) {
    const ApplicationCandidate candidate{which, capitalised(ratio_in_words(e_)) + "; " + why + "."};
    const auto later = [](const ApplicationCandidate& c) { return static_cast<int>(c.which); };
    auto at = found_.begin();
    while (at != found_.end() && later(*at) < later(candidate)) {
      ++at;
    }
    found_.insert(at, candidate);
  }

  const ApplicationEvidence& e_;
  std::optional<bool> simple_;
  std::vector<ApplicationCandidate> found_;
};

}  // namespace

std::optional<bool> is_simple(const LoopBody& body) {
  if (body.calls.value_or(false) || !body.one_way.value_or(true) ||
      body.instructions.value_or(0) > simple_instructions) {
    return false;
  }
  return body.calls && body.one_way && body.instructions ? std::optional(true) : std::nullopt;
}

ApplicationCandidates application_candidates(const ApplicationEvidence& evidence) {
  if (!evidence.flops) {
    return {{}, "its number of floating-point operations is unknown"};
  }
  if (*evidence.flops <= 0 && evidence.bytes_to_flops.value_or(0) <= 0) {
    return {{}, "it does no floating-point operations"};
  }
  switch (ratio_of(evidence)) {
    case Ratio::high:
      return {Candidates(evidence).of_high(), ""};
    case Ratio::low: {
      std::vector<ApplicationCandidate> found = Candidates(evidence).of_low();
      const bool none = found.empty();
      return {std::move(found), none ? "neither its limit nor its body tells" : ""};
    }
    case Ratio::unknown:
      break;
  }
  return {{},
          evidence.balance ? "its traffic with memory is unknown"
                           : "the machine's balance of memory and floating-point units is not known"};
}

}  // namespace crosstalk::models
