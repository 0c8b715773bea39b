// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/messages.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace crosstalk::service {
namespace {

using Json = nlohmann::json;

template <class Kind, std::size_t N>
using Names = std::array<std::pair<Kind, const char*>, N>;

constexpr Names<RequestKind, 6> request_names = {{{RequestKind::record, "record"},
                                                  {RequestKind::top, "top"},
                                                  {RequestKind::stop, "stop"},
                                                  {RequestKind::status, "status"},
                                                  {RequestKind::profiles, "profiles"},
                                                  {RequestKind::fetch, "fetch"}}};
constexpr Names<Reply::Kind, 7> reply_names = {{{Reply::Kind::started, "started"},
                                                {Reply::Kind::begun, "begun"},
                                                {Reply::Kind::ended, "ended"},
                                                {Reply::Kind::refused, "refused"},
                                                {Reply::Kind::status, "status"},
                                                {Reply::Kind::profiles, "profiles"},
                                                {Reply::Kind::profile, "profile"}}};
constexpr Names<ErrorCode, 8> code_names = {{{ErrorCode::invalid_argument, "invalid_argument"},
                                             {ErrorCode::not_found, "not_found"},
                                             {ErrorCode::not_executable, "not_executable"},
                                             {ErrorCode::refused, "refused"},
                                             {ErrorCode::permission, "permission"},
                                             {ErrorCode::corrupt, "corrupt"},
                                             {ErrorCode::unsupported, "unsupported"},
                                             {ErrorCode::system, "system"}}};

template <class Kind, std::size_t N>
const char* name_of(const Names<Kind, N>& names, Kind kind) {
  return std::find_if(names.begin(), names.end(), [kind](const auto& each) { return each.first == kind; })->second;
}

template <class Kind, std::size_t N>
std::optional<Kind> named(const Names<Kind, N>& names, const Json& value) {
  for (const auto& [kind, name] : names) {
    if (value.is_string() && value.get_ref<const std::string&>() == name) {
      return kind;
    }
  }
  return std::nullopt;
}

/// An object of a message. Takes fields out of it, and remembers the first that is not as it should be.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  void take(const char* key, bool& value) {
    if (const Json* const found = find(key)) {
      found->is_boolean() ? void(value = found->get<bool>()) : refuse(key, "true or false");
    }
  }
  void take(const char* key, std::string& value) {
    if (const Json* const found = find(key)) {
      const bool fits = found->is_string() && found->get_ref<const std::string&>().size() <= most_text;
      fits ? void(value = found->get<std::string>()) : refuse(key, "a text of at most 4096 bytes");
    }
  }
  template <class Number>
  void take(const char* key, std::optional<Number>& value, double least, double most) {
    if (const Json* const found = find(key)) {
      const bool is_kind = std::is_floating_point_v<Number> ? found->is_number() : found->is_number_unsigned();
      const double number = is_kind ? found->get<double>() : -1;
      is_kind&& number >= least&& number <= most ? void(value = found->get<Number>())
                                                 : refuse(key, fmt::format("a number from {} to {}", least, most));
    }
  }
  /// A word of an option: letters and '-'.
  void take_word(const char* key, std::optional<std::string>& value) {
    std::string word;
    take(key, word);
    const bool fits = word.size() <= 32 && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos;
    if (!fits || word.starts_with('-')) {
      refuse(key, "a word of small letters");
    } else if (!word.empty()) {
      value = std::move(word);
    }
  }
  void refuse(const char* key, const std::string& form) {
    if (error_.empty()) {
      error_ = std::string("the request's '") + key + "' must be " + form;
    }
  }
  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null() ? &*found : nullptr;
  }
  [[nodiscard]] Result<void> finish() const {
    return error_.empty() ? Result<void>() : fail(ErrorCode::invalid_argument, error_);
  }

 private:
  static constexpr std::size_t most_text = 4096;
  const Json& object_;
  std::string error_;
};

void take_pids(Fields& fields, std::vector<pid_t>& pids) {
  constexpr std::size_t most = 64;
  const Json* const list = fields.find("pids");
  const bool fits = list != nullptr && list->is_array() && !list->empty() && list->size() <= most &&
                    std::all_of(list->begin(), list->end(), [](const Json& each) {
                      return each.is_number_unsigned() && each.get<std::uint64_t>() - 1 < (1U << 30U);
                    });
  if (!fits) {
    fields.refuse("pids", "1 to 64 process ids");
    return;
  }
  for (const Json& each : *list) {
    const auto pid = each.get<pid_t>();
    if (std::find(pids.begin(), pids.end(), pid) == pids.end()) {
      pids.push_back(pid);
    }
  }
}

Result<SessionOptions> options_in(const Json& object) {
  SessionOptions options;
  Fields fields(object);
  fields.take("children", options.children);
  fields.take("duration_s", options.duration_s, 0.001, 1e6);
  fields.take("period_ns", options.period_ns, 10e3, 100e9);
  fields.take("budget_percent", options.budget_percent, 0.1, 100);
  fields.take_word("method", options.method);
  fields.take_word("partner", options.partner);
  fields.take("refresh_s", options.refresh_s, 0.1, 3600);
  fields.take("window_s", options.window_s, 0.1, 86400);
  fields.take("watchpoints", options.watchpoints, 0, 4);
  auto finished = fields.finish();
  return finished ? Result<SessionOptions>(std::move(options)) : tl::unexpected<Error>(finished.error());
}

template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) {
    object[key] = *value;
  }
}

Json json_of(const SessionOptions& options) {
  Json object{{"children", options.children}};
  put(object, "duration_s", options.duration_s);
  put(object, "period_ns", options.period_ns);
  put(object, "budget_percent", options.budget_percent);
  put(object, "method", options.method);
  put(object, "partner", options.partner);
  put(object, "refresh_s", options.refresh_s);
  put(object, "window_s", options.window_s);
  put(object, "watchpoints", options.watchpoints);
  return object;
}

std::string text_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// True if values of `message` are nested deeper than any message of ours: dump() calls itself for each level.
bool is_deep(std::string_view message) {
  constexpr int most = 32;
  int depth = 0;
  int deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    i += in_text && c == '\\' ? 1 : 0;
    in_text = in_text != (c == '"');
    depth += in_text ? 0 : static_cast<int>(c == '[' || c == '{') - static_cast<int>(c == ']' || c == '}');
    deepest = std::max(deepest, depth);
  }
  return deepest > most;
}

/// Parses a message; discarded: it is no object of JSON, or too long or deep for a message.
Json object_in(std::string_view message) {
  if (message.size() > most_message_bytes || is_deep(message)) {
    return Json(Json::value_t::discarded);
  }
  Json object = Json::parse(message, nullptr, false);
  return object.is_object() ? object : Json(Json::value_t::discarded);
}

std::string joined(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

}  // namespace

Result<Request> parse_request(std::string_view message) {
  const Json object = object_in(message);
  if (object.is_discarded()) {
    return fail(ErrorCode::corrupt, "the request is no JSON object");
  }
  const auto kind = object.contains("request") ? named(request_names, object["request"]) : std::nullopt;
  if (!kind) {
    return fail(ErrorCode::invalid_argument,
                "the request is of no kind that this daemon knows: record, top, stop, status, profiles, fetch");
  }
  Request request;
  request.kind = *kind;
  Fields fields(object);
  if (*kind == RequestKind::record || *kind == RequestKind::top) {
    take_pids(fields, request.pids);
  }
  fields.take("service", request.service);
  fields.take("profile", request.profile);
  const Json* const options = fields.find("options");
  if (options != nullptr && !options->is_object()) {
    fields.refuse("options", "an object");
  }
  if (auto finished = fields.finish(); !finished) {
    return tl::unexpected<Error>(finished.error());
  }
  if (options != nullptr) {
    auto taken = options_in(*options);
    if (!taken) {
      return tl::unexpected<Error>(taken.error());
    }
    request.options = std::move(*taken);
  }
  return request;
}

std::string to_message(const Request& request) {
  Json object{{"request", name_of(request_names, request.kind)}};
  if (!request.pids.empty()) {
    object["pids"] = request.pids;
    object["options"] = json_of(request.options);
  }
  if (!request.service.empty()) {
    object["service"] = request.service;
  }
  if (!request.profile.empty()) {
    object["profile"] = request.profile;
  }
  return text_of(object);
}

Result<Reply> parse_reply(std::string_view message) {
  const Json object = object_in(message);
  const auto kind =
      !object.is_discarded() && object.contains("reply") ? named(reply_names, object["reply"]) : std::nullopt;
  if (!kind) {
    return fail(ErrorCode::corrupt, "the daemon's answer is none that this version knows; are both of one version?");
  }
  Reply reply;
  reply.kind = *kind;
  Fields fields(object);
  std::optional<std::uint64_t> session;
  std::optional<double> status, budget;
  fields.take("session", session, 0, 1e18);
  fields.take("exit_status", status, 0, 255);
  fields.take("budget", budget, 0, 1);
  if (const Json* const code = fields.find("code")) {
    reply.code = named(code_names, *code).value_or(ErrorCode::refused);
  }
  fields.take("message", reply.text);
  if (auto finished = fields.finish(); !finished) {
    return fail(ErrorCode::corrupt, "the daemon's answer is damaged: " + finished.error().message);
  }
  if (*kind == Reply::Kind::status || *kind == Reply::Kind::profiles) {
    const Json* const content = fields.find("content");
    if (content == nullptr || !content->is_object()) {
      return fail(ErrorCode::corrupt, "the daemon's answer is damaged: it has no content");
    }
    reply.text = text_of(*content);
  }
  reply.session = session.value_or(0);
  reply.exit_status = static_cast<int>(status.value_or(0));
  reply.budget = budget.value_or(0);
  return reply;
}

std::string to_message(const Reply& reply) {
  Json object{{"reply", name_of(reply_names, reply.kind)}};
  switch (reply.kind) {
    case Reply::Kind::started:
      object["session"] = reply.session;
      object["budget"] = reply.budget;
      break;
    case Reply::Kind::begun:
      object["session"] = reply.session;
      break;
    case Reply::Kind::ended:
      object["session"] = reply.session;
      object["exit_status"] = reply.exit_status;
      break;
    case Reply::Kind::refused:
      object["code"] = name_of(code_names, reply.code);
      object["message"] = reply.text;
      break;
    case Reply::Kind::status:
    case Reply::Kind::profiles:
      object["content"] = Json::parse(reply.text, nullptr, false);
      break;
    case Reply::Kind::profile:
      break;
  }
  return text_of(object);
}

std::string as_output(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    escaped += c == '%' ? "%%" : std::string(1, c);
  }
  return escaped;
}

std::vector<std::string> arguments_for(const Request& request, const std::vector<int>& pidfds,
                                       std::optional<uid_t> owner, double budget, const std::string& output) {
  const SessionOptions& options = request.options;
  const bool top = request.kind == RequestKind::top;
  std::vector<std::string> arguments = {top ? "top" : "record", "-p", joined(request.pids), "--pidfd", joined(pidfds)};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.insert(arguments.end(), {option, value});
  };
  add("--budget", fmt::format("{:g}", 100 * budget));
  if (owner) {
    add("--owner", std::to_string(*owner));
  }
  if (options.children) {
    arguments.emplace_back("--children");
  }
  if (options.period_ns) {
    add("--period", std::to_string(*options.period_ns) + "ns");
  }
  if (options.method) {
    add("--method", *options.method);
  }
  if (options.partner) {
    add("--partner", *options.partner);
  }
  if (options.watchpoints) {
    add("--watchpoints", std::to_string(*options.watchpoints));
  }
  if (top) {
    arguments.emplace_back("--json");
    for (const auto& [option, value] : {std::pair{"--refresh", options.refresh_s}, {"--window", options.window_s}}) {
      if (value) {
        add(option, fmt::format("{}", *value));
      }
    }
    return arguments;
  }
  if (options.duration_s) {
    add("--duration", fmt::format("{}", *options.duration_s));
  }
  add("-o", as_output(output));
  return arguments;
}

}  // namespace crosstalk::service
