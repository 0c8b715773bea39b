// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace crosstalk::symbolizer {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{10};  // without a byte of progress

/// What the progress callback of the client sees of the transfer under way.
struct Transfer {
  Clock::time_point last_progress = Clock::now();
  long received = -1;
  bool gave_up = false;
};

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

int on_progress(debuginfod_client* client, long received, long /*total*/) {
  auto* transfer = static_cast<Transfer*>(read_user_data(client));
  if (transfer == nullptr) {
    return 0;
  }
  const auto now = Clock::now();
  if (received != transfer->received) {
    transfer->received = received;
    transfer->last_progress = now;
  }
  transfer->gave_up = now - transfer->last_progress > patience;
  return transfer->gave_up ? 1 : 0;
}

}  // namespace

Debuginfod::Debuginfod(bool enabled) {
  const char* urls = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  enabled_ = enabled && urls != nullptr && *urls != '\0';
}

Debuginfod::Debuginfod(Debuginfod&& other) noexcept
    : enabled_(other.enabled_), library_(std::exchange(other.library_, nullptr)) {}

Debuginfod::~Debuginfod() {
  if (library_ != nullptr) {
    library_->end(library_->client);
    // Never dlclosed: the HTTP library behind it leaves threads' data and handlers behind.
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
    return std::nullopt;
  }
  Transfer transfer;
  library_->set_user_data(library_->client, &transfer);
  char* path = nullptr;
  const auto find = kind == Kind::executable ? library_->find_executable : library_->find_debuginfo;
  // Length 0: the id is text.
  const int fd = find(library_->client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  library_->set_user_data(library_->client, nullptr);
  if (transfer.gave_up) {
    enabled_ = false;
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
