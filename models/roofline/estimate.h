// SPDX-License-Identifier: Apache-2.0
// A quantity of a roofline, with its interval and its basis.
//
// Quantities are rates, amounts, times and ratios: finite and not negative. An Estimate cannot hold anything else, so
// formulas of Estimates check their results only.
//
// Intervals combine by interval arithmetic: the interval of a result is the range of the formula over all values that
// its arguments may have. It holds the true result whenever each argument's interval holds the true argument, however
// the arguments depend on each other. It is wider than necessary if an uncertain quantity enters a formula twice. The
// basis of a result is the least sure basis of its arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crosstalk::models::roofline {

/// The origin of a quantity, the surest first.
enum class Basis : std::uint8_t {
  decoded,     ///< counted in the decoded instructions
  sampled,     ///< estimated from samples; the interval is their confidence interval
  calibrated,  ///< measured on the machine; the interval is the spread of the tries
  modelled,    ///< computed by a model of the hardware
  assumed      ///< follows from an assumption that nothing has tested
};
/// "decoded", "sampled", ...
[[nodiscard]] const char* basis_name(Basis basis);

/// low <= value <= high, each finite and not negative.
class Estimate {
 public:
  /// Refuses values that are negative, infinite or not a number, and bounds that do not enclose the value.
  [[nodiscard]] static Result<Estimate> of(double value, double low, double high, Basis basis);
  /// low = value = high.
  [[nodiscard]] static Result<Estimate> exact(double value, Basis basis) { return of(value, value, value, basis); }

  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  [[nodiscard]] Basis basis() const { return basis_; }
  bool operator==(const Estimate&) const = default;

  friend Estimate least(const Estimate& a, const Estimate& b);
  friend Estimate greatest(const Estimate& a, const Estimate& b);
  friend Estimate on_basis(const Estimate& a, Basis basis);

 private:
  Estimate(double value, double low, double high, Basis basis) : value_(value), low_(low), high_(high), basis_(basis) {}
  double value_, low_, high_;
  Basis basis_;
};

/// The lesser and the greater of two quantities, bound by bound.
[[nodiscard]] Estimate least(const Estimate& a, const Estimate& b);
[[nodiscard]] Estimate greatest(const Estimate& a, const Estimate& b);
/// The same interval on a basis that is at least as unsure as `basis`.
[[nodiscard]] Estimate on_basis(const Estimate& a, Basis basis);

/// True if the intervals share no value and `a` is the lower one.
[[nodiscard]] inline bool surely_below(const Estimate& a, const Estimate& b) { return a.high() < b.low(); }
/// True if the intervals share a value: the order of the two quantities is not known, unless they are exact.
[[nodiscard]] inline bool overlap(const Estimate& a, const Estimate& b) {
  return !surely_below(a, b) && !surely_below(b, a);
}

/// An argument of `combined`: its value, and the bounds that make the formula least and greatest.
struct Argument {
  double value, for_least, for_greatest;
  Basis basis;
};
/// For a formula that rises, or falls, with this argument.
[[nodiscard]] inline Argument rising(const Estimate& a) { return {a.value(), a.low(), a.high(), a.basis()}; }
[[nodiscard]] inline Argument falling(const Estimate& a) { return {a.value(), a.high(), a.low(), a.basis()}; }

/// The range of a formula that is monotone in each argument. Fails if a value is not finite or negative.
template <class Formula, class... Arguments>
[[nodiscard]] Result<Estimate> combined(const Formula& formula, const Arguments&... arguments) {
  const double value = formula(arguments.value...);
  const double least = formula(arguments.for_least...), greatest = formula(arguments.for_greatest...);
  // Rounding may put the bounds of an exact result past its value by the last digit.
  return Estimate::of(value, std::min({value, least, greatest}), std::max({value, least, greatest}),
                      std::max({arguments.basis...}));
}

/// Fail if the result is too large for a double.
[[nodiscard]] Result<Estimate> sum(const Estimate& a, const Estimate& b);
[[nodiscard]] Result<Estimate> product(const Estimate& a, const Estimate& b);
/// The product with an exact number, which must be finite and not negative.
[[nodiscard]] Result<Estimate> scaled(const Estimate& a, double factor);
/// a / b. Fails if b may be 0; the message calls it `divisor`.
[[nodiscard]] Result<Estimate> quotient(const Estimate& a, const Estimate& b, std::string_view divisor);

// The same for arguments that may be absent. The result is absent for the reason of the first absent argument.
[[nodiscard]] Result<Estimate> sum(const Result<Estimate>& a, const Result<Estimate>& b);
[[nodiscard]] Result<Estimate> product(const Result<Estimate>& a, const Result<Estimate>& b);
[[nodiscard]] Result<Estimate> quotient(const Result<Estimate>& a, const Result<Estimate>& b, std::string_view divisor);

/// A number with the name that messages give it.
struct Named {
  std::string_view name;
  double value;
};
/// Refuses the first number that is not positive and finite.
[[nodiscard]] Result<void> check_positive(std::initializer_list<Named> numbers);
/// Refuses the first number that is negative, infinite or not a number.
[[nodiscard]] Result<void> check_not_negative(std::initializer_list<Named> numbers);
/// Refuses a number outside 0 to 1.
[[nodiscard]] Result<void> check_share(const Named& number);
/// Refuses the first number that may be 0: a roof, a frequency or a capacity of 0 bounds nothing.
struct NamedEstimate {
  std::string_view name;
  const Estimate& estimate;
};
[[nodiscard]] Result<void> check_positive(std::initializer_list<NamedEstimate> estimates);

}  // namespace crosstalk::models::roofline
