// SPDX-License-Identifier: Apache-2.0
// Metrics of the watched services, added up from the reports of their intervals, as OpenMetrics text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::service {

/// Seconds of thread time, added up since the daemon's start.
struct CommunicationSeconds {
  double cost = 0;
  double gain = 0;        // where it is known
  double gain_limit = 0;  // the upper end of its 95 % interval
};

/// One interval of a service, from the JSON of `crosstalk report`.
struct IntervalFigures {
  double recorded_s = 0, cpu_s = 0, overhead_s = 0;
  std::uint64_t lost = 0;
  std::string source, method;
  bool communication_known = false;  // it could be seen
  CommunicationSeconds all;
  std::map<std::string, CommunicationSeconds> objects;                        // by name
  std::map<std::pair<std::string, std::string>, CommunicationSeconds> pairs;  // by producer's and consumer's name
  std::map<std::pair<std::string, std::string>, double> loops;  // own time, by function and "file:begin-end"
};

/// Errors: corrupt, if `json` is no report.
[[nodiscard]] Result<IntervalFigures> figures_of(const std::string& json);

/// The daemon's own state, beside the services'.
struct DaemonFigures {
  std::uint32_t sessions = 0;  // of clients, now
  std::uint64_t sessions_begun = 0, refusals = 0;
  std::uint64_t profile_bytes = 0, profiles = 0;
  std::map<std::string, bool> watched;  // by service: if a recording runs
};

/// Not thread-safe.
class Metrics {
 public:
  /// `rows`: the most objects, pairs and loops of a service that get series of their own, each. The first to be seen
  /// do, those of most cost first. All others are added up under the name "other".
  explicit Metrics(std::uint32_t rows) : rows_(rows) {}

  void add(const std::string& service, const IntervalFigures& interval);
  void add_failure(const std::string& service) { ++services_[service].failures; }
  /// Returns the text, with "# EOF" at its end.
  [[nodiscard]] std::string text(const DaemonFigures& daemon) const;

 private:
  struct Service {
    std::uint64_t intervals = 0, failures = 0, blind = 0;
    IntervalFigures sums;
  };
  void put_services(std::string& out) const;
  template <class Rows>
  void put_communication(const std::string& stem, Rows rows, std::string& out) const;
  void put_rows(std::string& out) const;

  std::uint32_t rows_;
  std::map<std::string, Service> services_;
};

}  // namespace crosstalk::service
