// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/status.h"

#include <nlohmann/json.hpp>

namespace crosstalk::service {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string status_for(const Peer& peer, const std::list<Session>& sessions,
                       const std::vector<WatchedService>& services, std::uint64_t now_ns) {
  Json status{{"version", CROSSTALK_VERSION}, {"sessions", Json::array()}, {"services", Json::array()}};
  for (const Session& session : sessions) {
    if (peer.user == 0 || session.user == peer.user) {
      status["sessions"].push_back({{"id", session.id},
                                    {"kind", session.kind == RequestKind::top ? "top" : "record"},
                                    {"user", session.user},
                                    {"pids", session.share.pids},
                                    {"budget", session.share.budget},
                                    {"for_s", static_cast<double>(now_ns - session.begun_ns) * 1e-9}});
    }
  }
  for (const WatchedService& service : services) {
    if (may_see(peer, service.settings())) {
      status["services"].push_back({{"name", service.settings().name},
                                    {"recording", service.recording()},
                                    {"pids", service.pids()},
                                    {"budget", service.settings().budget},
                                    {"interval_s", service.settings().interval_s},
                                    {"state", service.state()}});
    }
  }
  return text_of(status);
}

std::string list_of(const std::vector<StoredProfile>& profiles) {
  Json list = Json::array();
  for (const StoredProfile& profile : profiles) {
    if (profile.finished) {
      list.push_back({{"name", profile.name}, {"bytes", profile.bytes}, {"written_unix_s", profile.written_s}});
    }
  }
  constexpr std::size_t room = most_message_bytes - 1024;
  std::string text = text_of({{"profiles", list}});
  while (text.size() > room && !list.empty()) {  // the newest ones fit
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(1 + list.size() / 8));
    text = text_of({{"profiles", list}, {"left_out_older", true}});
  }
  return text;
}

}  // namespace crosstalk::service
