// SPDX-License-Identifier: Apache-2.0
// Reads a profile file. Loads everything but samples, traps and stack bytes, which it streams.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/counter_reading.h"
#include "profile/model.h"
#include "profile/thread_wait_row.h"

namespace crosstalk::profile {

/// True if the file at `path` is marked as a profile. It may still be unreadable.
[[nodiscard]] bool is_profile(const std::string& path);

class ProfileReader {
 public:
  /// Opens `path` read-only. Fails with one line if the file is missing, no crosstalk profile, truncated or corrupt, or
  /// of a newer schema. Never writes to the file or beside it.
  [[nodiscard]] static Result<ProfileReader> open(const std::string& path);
  ProfileReader(ProfileReader&&) noexcept;
  ProfileReader& operator=(ProfileReader&&) noexcept;
  ~ProfileReader();

  [[nodiscard]] const Session& session() const;
  [[nodiscard]] const std::vector<ProcessRow>& processes() const;              // by id: processes()[id.value]
  [[nodiscard]] const std::vector<ThreadRow>& threads() const;                 // by id
  [[nodiscard]] const std::vector<ModuleRow>& modules() const;                 // by process, then load time
  [[nodiscard]] const std::vector<WatchRow>& watches() const;                  // by id ascending
  [[nodiscard]] const std::vector<BlockRow>& blocks() const;                   // by process, then time
  [[nodiscard]] const std::vector<SharedMappingRow>& shared_mappings() const;  // by process, then time
  [[nodiscard]] const std::vector<ThreadCreationRow>& thread_creations() const;
  /// By thread, kind, site.
  [[nodiscard]] const std::vector<ThreadWaitRow>& thread_waits() const;
  /// By thread, time.
  [[nodiscard]] const std::vector<SampledWaitRow>& sampled_waits() const;
  /// By id: regions()[id.value - 1]; and by thread, region.
  [[nodiscard]] const std::vector<RegionRow>& regions() const;
  [[nodiscard]] const std::vector<ThreadRegionRow>& thread_regions() const;
  [[nodiscard]] const std::vector<EventRow>& events() const;  // by id: events()[id.value - 1]
  /// By id: counters()[id - 1].
  [[nodiscard]] const std::vector<CounterRow>& counters() const;
  [[nodiscard]] const std::vector<MessageRow>& messages() const;
  /// The copy of the file with this path, build id and content hash; nullopt if there is none, or it is damaged.
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> kept_file(const std::string& path, const std::string& build_id,
                                                                   std::uint64_t content_hash) const;

  /// Calls `visit` for each sample in the order recorded, on the calling thread, while another thread reads ahead:
  /// `visit` must not read from this profile. Parts that are not read have their defaults.
  [[nodiscard]] Result<void> for_each_sample(const std::function<void(const SampleRow&)>& visit,
                                             SampleParts parts = SampleParts::all) const;
  /// Calls `visit` once for each watch with recorded traps, with its index in watches() and its traps by ascending
  /// sequence, valid during the call. Watches come in no particular order. Uses threads as for_each_sample() does.
  /// Traps are stored roughly by time, so that only those of a few watches are kept at once. If a file's are not, calls
  /// `restart`, discards what was visited before, and reads the file again in order.
  [[nodiscard]] Result<void> for_each_trapped_watch(
      const std::function<void(std::size_t watch, std::span<const TrapRow> traps)>& visit,
      const std::function<void()>& restart) const;
  /// Calls `visit` for each lookahead in the order recorded.
  [[nodiscard]] Result<void> for_each_lookahead(const std::function<void(const LookaheadRow&)>& visit) const;
  /// Calls `visit` for each reading of counters in the order recorded. Does not check the
  /// number of counts against the group's counters.
  [[nodiscard]] Result<void> for_each_reading(const std::function<void(const ReadingRow&)>& visit) const;
  /// Calls `visit` for each chain of calls, in id order.
  [[nodiscard]] Result<void> for_each_call_chain(const std::function<void(const CallChainRow&)>& visit) const;
  /// Calls `visit` for each captured stack that is `wanted`, in id order. Does not unpack the others.
  [[nodiscard]] Result<void> for_each_stack(const std::function<void(const StackRow&)>& visit,
                                            const std::function<bool(StackId)>& wanted = {}) const;

 private:
  struct State;
  explicit ProfileReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace crosstalk::profile
