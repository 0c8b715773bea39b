// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/status.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/service/messages.h"

namespace crosstalk::service {
namespace {

using Json = nlohmann::json;

/// The bytes of an object that a message has left for the elements of its lists.
class Room {
 public:
  /// True if there is room for this element, which then takes it.
  bool take(const std::string& element) {
    const bool fits = element.size() + 1 <= left_;
    left_ -= fits ? element.size() + 1 : 0;
    return fits;
  }

 private:
  std::size_t left_ = most_message_bytes - 1024;
};

std::string text_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string status_for(const Peer& peer, const std::list<Session>& sessions,
                       const std::vector<WatchedService>& services, std::uint64_t now_ns) {
  Json status{{"version", CROSSTALK_VERSION}, {"sessions", Json::array()}, {"services", Json::array()}};
  Room room;
  const auto add = [&](const char* list, Json element) {
    if (room.take(text_of(element))) {
      status[list].push_back(std::move(element));
    } else {
      status["left_out"] = true;
    }
  };
  for (const WatchedService& service : services) {
    if (may_see(peer, service.settings())) {
      add("services", {{"name", service.settings().name},
                       {"recording", service.recording()},
                       {"pids", service.pids()},
                       {"budget", service.settings().budget},
                       {"interval_s", service.settings().interval_s},
                       {"state", service.state()}});
    }
  }
  for (const Session& session : sessions) {
    if (peer.user == 0 || session.user == peer.user) {
      add("sessions", {{"id", session.id},
                       {"kind", session.kind == RequestKind::top ? "top" : "record"},
                       {"user", session.user},
                       {"pids", session.share.pids},
                       {"budget", session.share.budget},
                       {"for_s", static_cast<double>(now_ns - session.begun_ns) * 1e-9}});
    }
  }
  return text_of(status);
}

std::string list_of(const std::vector<StoredProfile>& profiles) {
  std::vector<Json> newest_first;
  Room room;
  bool left_out = false;
  for (auto profile = profiles.rbegin(); profile != profiles.rend() && !left_out; ++profile) {
    Json element{{"name", profile->name}, {"bytes", profile->bytes}, {"written_unix_s", profile->written_s}};
    if (!profile->has_log && room.take(text_of(element))) {
      newest_first.push_back(std::move(element));
    } else {
      left_out = !profile->has_log;
    }
  }
  Json list{{"profiles", std::vector<Json>(newest_first.rbegin(), newest_first.rend())}};
  if (left_out) {
    list["left_out_older"] = true;
  }
  return text_of(list);
}

}  // namespace crosstalk::service
