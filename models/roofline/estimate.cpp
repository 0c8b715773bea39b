// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/estimate.h"

#include <cmath>

#include "models/words.h"

namespace crosstalk::models::roofline {
namespace {

bool is_quantity(double value) { return std::isfinite(value) && value >= 0; }

std::string number_in_words(double value) {
  return std::isnan(value)   ? "not a number"
         : std::isinf(value) ? (value > 0 ? "infinite" : "-infinite")
                             : figure(value);
}

/// Applies `formula` if both arguments are known.
template <class Formula>
Result<Estimate> if_known(const Result<Estimate>& a, const Result<Estimate>& b, const Formula& formula) {
  if (!a) {
    return tl::unexpected<Error>(a.error());
  }
  if (!b) {
    return tl::unexpected<Error>(b.error());
  }
  return formula(*a, *b);
}

tl::unexpected<Error> refused_number(const Named& number, const char* expected) {
  return fail(ErrorCode::invalid_argument,
              std::string(number.name) + " is " + number_in_words(number.value) + "; it must be " + expected);
}

}  // namespace

const char* basis_name(Basis basis) {
  static constexpr std::array<const char*, 5> names = {"decoded", "sampled", "calibrated", "modelled", "assumed"};
  return names[static_cast<std::size_t>(basis)];
}

Result<Estimate> Estimate::of(double value, double low, double high, Basis basis) {
  for (const double number : {value, low, high}) {
    if (!is_quantity(number)) {
      return refused_number({"a quantity or a bound of it", number}, "finite and not negative");
    }
  }
  if (low > value || value > high) {
    return fail(ErrorCode::invalid_argument,
                "the interval " + figure(low) + " to " + figure(high) + " does not enclose its value " + figure(value));
  }
  return Estimate(value, low, high, basis);
}

Estimate least(const Estimate& a, const Estimate& b) {
  return {std::min(a.value_, b.value_), std::min(a.low_, b.low_), std::min(a.high_, b.high_),
          std::max(a.basis_, b.basis_)};
}

Estimate greatest(const Estimate& a, const Estimate& b) {
  return {std::max(a.value_, b.value_), std::max(a.low_, b.low_), std::max(a.high_, b.high_),
          std::max(a.basis_, b.basis_)};
}

Estimate on_basis(const Estimate& a, Basis basis) { return {a.value_, a.low_, a.high_, std::max(a.basis_, basis)}; }

Result<Estimate> sum(const Estimate& a, const Estimate& b) {
  return combined([](double x, double y) { return x + y; }, rising(a), rising(b));
}

Result<Estimate> product(const Estimate& a, const Estimate& b) {
  return combined([](double x, double y) { return x * y; }, rising(a), rising(b));
}

Result<Estimate> scaled(const Estimate& a, double factor) {
  if (auto checked = check_not_negative({{"the factor", factor}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return combined([factor](double x) { return x * factor; }, rising(a));
}

Result<Estimate> quotient(const Estimate& a, const Estimate& b, std::string_view divisor) {
  if (auto checked = check_positive({NamedEstimate{divisor, b}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return combined([](double x, double y) { return x / y; }, rising(a), falling(b));
}

Result<Estimate> sum(const Result<Estimate>& a, const Result<Estimate>& b) {
  return if_known(a, b, [](const Estimate& x, const Estimate& y) { return sum(x, y); });
}

Result<Estimate> product(const Result<Estimate>& a, const Result<Estimate>& b) {
  return if_known(a, b, [](const Estimate& x, const Estimate& y) { return product(x, y); });
}

Result<Estimate> quotient(const Result<Estimate>& a, const Result<Estimate>& b, std::string_view divisor) {
  return if_known(a, b, [divisor](const Estimate& x, const Estimate& y) { return quotient(x, y, divisor); });
}

Result<void> check_positive(std::initializer_list<Named> numbers) {
  for (const Named& number : numbers) {
    if (!is_quantity(number.value) || number.value == 0) {
      return refused_number(number, "positive and finite");
    }
  }
  return {};
}

Result<void> check_not_negative(std::initializer_list<Named> numbers) {
  for (const Named& number : numbers) {
    if (!is_quantity(number.value)) {
      return refused_number(number, "finite and not negative");
    }
  }
  return {};
}

Result<void> check_share(const Named& number) {
  return is_quantity(number.value) && number.value <= 1 ? Result<void>()
                                                        : refused_number(number, "a share, from 0 to 1");
}

Result<void> check_positive(std::initializer_list<NamedEstimate> estimates) {
  for (const NamedEstimate& named : estimates) {
    if (named.estimate.low() == 0) {
      return fail(
          ErrorCode::invalid_argument,
          std::string(named.name) + (named.estimate.high() > 0 ? " may be 0" : " is 0") + "; it must be positive");
    }
  }
  return {};
}

}  // namespace crosstalk::models::roofline
