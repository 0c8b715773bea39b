// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/inject.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "collectors/injector/injection.h"
#include "collectors/injector/preconditions.h"
#include "driver/files/collector_path.h"
#include "driver/terminal/log.h"

namespace crosstalk::driver {
namespace {

class InjectedLibrary final : public daemon::OutsideCollector {
 public:
  InjectedLibrary(pid_t pid, std::unique_ptr<injector::Injection> injection)
      : ended_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), injection_(std::move(injection)) {}
  [[nodiscard]] int ended_fd() const override { return ended_.get(); }
  void stop() override {
    if (stopped_) {
      return;
    }
    stopped_ = true;
    if (auto left = injection_->stop(); !left) {
      log_warning(left.error().message);
      remarks_.push_back({"not_put_back", left.error().message, 1});
    }
    const injector::Pauses& pauses = injection_->pauses();
    log_detail(fmt::format("threads of the process were stopped {} times, for {:.2f} ms at most; calls took {:.2f} ms",
                           pauses.stops, static_cast<double>(pauses.longest_stop_ns) / ns_in_ms,
                           static_cast<double>(pauses.longest_call_ns) / ns_in_ms));
  }
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks() override { return std::exchange(remarks_, {}); }

 private:
  static constexpr double ns_in_ms = 1e6;

  UniqueFd ended_;  // a pidfd
  std::unique_ptr<injector::Injection> injection_;
  bool stopped_ = false;
  std::vector<profile::MessageRow> remarks_;
};

}  // namespace

Result<AttachedTarget> inject_into(const RecordRequest& request) {
  const auto collector = find_collector();
  if (!collector) {
    return tl::unexpected<Error>(collector.error());
  }
  std::error_code error;  // mappings name the file without links
  const std::filesystem::path file = std::filesystem::canonical(*collector, error);
  const std::string library = error ? *collector : file.string();
  const pid_t pid = request.pids.front();
  if (auto injectable = injector::check_injectable(pid, library); !injectable) {
    return tl::unexpected<Error>(injectable.error());
  }
  AttachedTarget target;
  target.command = command_of(pid);
  target.attachment.duration_ns = request.duration_ns;
  target.attachment.delay_ns = request.delay_ns;
  target.attachment.attach = [=](const std::string& arena) -> Result<std::unique_ptr<daemon::OutsideCollector>> {
    auto injection = injector::Injection::start(pid, library, arena);
    if (!injection) {
      return tl::unexpected<Error>(injection.error());
    }
    return std::make_unique<InjectedLibrary>(pid, std::move(*injection));
  };
  target.warnings.push_back(
      {"brought_in",
       "the collector was brought into the running process: heap blocks that it had allocated before are not known, "
       "nor are those of a library that it loaded afterwards until the collector had met that library's code; threads "
       "that block SIGTRAP were not watched meanwhile, "
       "and new processes that it started were not observed"});
  return target;
}

}  // namespace crosstalk::driver
