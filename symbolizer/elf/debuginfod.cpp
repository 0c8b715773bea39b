// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace crosstalk::symbolizer {
namespace {

using Clock = std::chrono::steady_clock;

/// The timeout for a byte.
std::chrono::seconds patience() {
  constexpr long usual = 10;
  constexpr long most = 3600;
  const char* text = std::getenv(DEBUGINFOD_TIMEOUT_ENV_VAR);
  const long seconds = text == nullptr ? usual : std::strtol(text, nullptr, 10);
  return std::chrono::seconds(seconds > 0 ? std::min(seconds, most) : usual);
}

/// The state of a transfer for the client's progress callback.
struct Transfer {
  Clock::time_point begin = Clock::now(), last_progress = begin;
  std::chrono::seconds patience = symbolizer::patience();
  Debuginfod::Wait wait;
  bool gave_up = false;
};

std::function<void(const Debuginfod::Wait&)>& listener() {
  static std::function<void(const Debuginfod::Wait&)> instance;
  return instance;
}

void tell(const Transfer& transfer) {
  if (listener()) {
    listener()(transfer.wait);
  }
}

}  // namespace

struct Debuginfod::Library {
  void* handle = nullptr;
  debuginfod_client* client = nullptr;
  decltype(&debuginfod_begin) begin = nullptr;
  decltype(&debuginfod_end) end = nullptr;
  decltype(&debuginfod_find_debuginfo) find_debuginfo = nullptr;
  decltype(&debuginfod_find_executable) find_executable = nullptr;
  decltype(&debuginfod_set_progressfn) set_progressfn = nullptr;
  decltype(&debuginfod_set_user_data) set_user_data = nullptr;
  decltype(&debuginfod_get_user_data) get_user_data = nullptr;

  template <class Function>
  bool bind(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }
  bool bind_all() {
    return bind(begin, "debuginfod_begin") && bind(end, "debuginfod_end") &&
           bind(find_debuginfo, "debuginfod_find_debuginfo") && bind(find_executable, "debuginfod_find_executable") &&
           bind(set_progressfn, "debuginfod_set_progressfn") && bind(set_user_data, "debuginfod_set_user_data") &&
           bind(get_user_data, "debuginfod_get_user_data");
  }
};

namespace {

// The client's callback has no closure but user data, which it can only read through the library.
void* (*read_user_data)(debuginfod_client*) = nullptr;

/// Until a server sends data of a stated size, `count` counts calls of this function instead of bytes: a server that
/// accepts and never answers seems to make progress.
int on_progress(debuginfod_client* client, long count, long total) {
  auto* transfer = static_cast<Transfer*>(read_user_data(client));
  if (transfer == nullptr) {
    return 0;
  }
  const auto now = Clock::now();
  if (total > 0 && count != transfer->wait.received) {
    transfer->wait.received = count;
    transfer->last_progress = now;
  }
  transfer->wait.total = std::max(total, 0L);
  transfer->wait.seconds = std::chrono::duration<double>(now - transfer->begin).count();
  transfer->gave_up = now - transfer->last_progress > transfer->patience;
  tell(*transfer);
  return transfer->gave_up ? 1 : 0;
}

/// True if no server could be reached, by the client's result, a negative errno.
bool is_unreachable(int error) {
  return error == -ECONNREFUSED || error == -ECONNRESET || error == -EHOSTUNREACH || error == -ENETUNREACH ||
         error == -ETIMEDOUT || error == -ETIME;
}

}  // namespace

Debuginfod::Debuginfod(bool enabled) {
  const char* urls = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  enabled_ = enabled && urls != nullptr && *urls != '\0';
}

Debuginfod::Debuginfod(Debuginfod&& other) noexcept
    : enabled_(other.enabled_), failure_(std::move(other.failure_)), library_(std::exchange(other.library_, nullptr)) {}

void Debuginfod::on_wait(std::function<void(const Wait&)> whom) { listener() = std::move(whom); }

Debuginfod::~Debuginfod() {
  if (library_ != nullptr) {
    library_->end(library_->client);
    // Never dlclosed: its HTTP library leaves thread data and handlers behind.
    delete library_;
  }
}

bool Debuginfod::load() {
  if (library_ != nullptr) {
    return true;
  }
  Library library;
  library.handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr || !library.bind_all()) {
    return false;
  }
  library.client = library.begin();
  if (library.client == nullptr) {
    return false;
  }
  read_user_data = library.get_user_data;
  library.set_progressfn(library.client, on_progress);
  library_ = new Library(library);
  return true;
}

std::optional<std::string> Debuginfod::find(const std::string& build_id, Kind kind) {
  if (!enabled_ || build_id.empty()) {
    return std::nullopt;
  }
  if (!load()) {
    enabled_ = false;
    failure_ = "libdebuginfod.so.1 cannot be loaded, so no server is asked";
    return std::nullopt;
  }
  Transfer transfer;
  transfer.wait.build_id = build_id;
  library_->set_user_data(library_->client, &transfer);
  char* path = nullptr;
  const auto find = kind == Kind::executable ? library_->find_executable : library_->find_debuginfo;
  // Length 0: the id is text.
  const int fd = find(library_->client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  library_->set_user_data(library_->client, nullptr);
  transfer.wait.over = true;
  tell(transfer);
  if (transfer.gave_up) {
    enabled_ = false;
    failure_ = "the servers sent nothing for " + std::to_string(transfer.patience.count()) +
               " s and were not asked again; unset it, or give them more DEBUGINFOD_TIMEOUT";
  } else if (is_unreachable(fd)) {
    enabled_ = false;
    failure_ = std::string("no server could be reached (") + std::strerror(-fd) + "), and none was asked again";
  }
  if (fd < 0) {
    return std::nullopt;
  }
  ::close(fd);
  std::optional<std::string> result;
  if (path != nullptr) {
    result = path;
    std::free(path);
  }
  return result;
}

}  // namespace crosstalk::symbolizer
