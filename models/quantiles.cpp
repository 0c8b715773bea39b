// SPDX-License-Identifier: Apache-2.0
#include "models/quantiles.h"

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/gamma.hpp>

namespace crosstalk::models {
namespace {

using namespace boost::math::policies;  // NOLINT(google-build-using-namespace): a policy is made of a dozen of its
                                        // names
/// Throws nothing: invalid results are NaN, infinity or 0.
using Quiet = policy<domain_error<ignore_error>, pole_error<ignore_error>, overflow_error<ignore_error>,
                     underflow_error<ignore_error>, denorm_error<ignore_error>, evaluation_error<ignore_error>,
                     promote_double<false>>;

}  // namespace

double gamma_quantile(double probability, double shape) {
  if (!(probability > 0 && probability < 1 && shape > 0)) {
    return 0;
  }
  const double x = boost::math::gamma_p_inv(shape, probability, Quiet());
  return x > 0 ? x : 0;
}

double student_95(double degrees) {
  constexpr double tail = 0.025;
  return boost::math::quantile(
      boost::math::complement(boost::math::students_t_distribution<double, Quiet>(degrees), tail));
}

}  // namespace crosstalk::models
