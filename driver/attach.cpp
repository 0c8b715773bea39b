// SPDX-License-Identifier: Apache-2.0
#include "driver/attach.h"

#include <memory>
#include <utility>

#include "collectors/observer/observer.h"
#include "collectors/observer/target_process.h"

namespace crosstalk::driver {
namespace {

class AttachedObserver final : public daemon::OutsideCollector {
 public:
  explicit AttachedObserver(std::unique_ptr<observer::Observer> observer) : observer_(std::move(observer)) {}
  void stop() override { observer_->stop(); }

 private:
  std::unique_ptr<observer::Observer> observer_;
};

}  // namespace

Result<AttachedTarget> attach_to(const RecordRequest& request, std::uint32_t registers) {
  const pid_t pid = *request.pid;
  if (auto watchable = observer::check_process(pid); !watchable) {
    return tl::unexpected<Error>(watchable.error());
  }
  AttachedTarget target;
  target.attachment.pid = pid;
  target.attachment.duration_ns = request.duration_ns;
  target.attachment.attach =
      [pid, registers](const std::string& arena) -> Result<std::unique_ptr<daemon::OutsideCollector>> {
    auto observer = observer::Observer::attach(pid, arena, registers);
    if (!observer) {
      return fail(ErrorCode::refused, "-p " + std::to_string(pid) + ": " + observer.error().message);
    }
    return std::make_unique<AttachedObserver>(std::move(*observer));
  };
  const observer::ProcessFacts facts = observer::process_facts(pid);
  target.command = facts.arguments;
  if (target.command.empty()) {
    target.command = {facts.executable.empty() ? "process " + std::to_string(pid) : facts.executable};
  }
  target.warnings.push_back(
      {"watched_from_outside",
       "the process was watched from outside, from when it was attached to: its heap blocks, its waits for locks and "
       "what its branching loops execute are not known, and new processes that it started were not watched"});
  return target;
}

}  // namespace crosstalk::driver
