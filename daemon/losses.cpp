// SPDX-License-Identifier: Apache-2.0
#include "daemon/losses.h"

#include <string>
#include <utility>

namespace crosstalk::daemon {
namespace {

/// Returns what `count` has grown by, and notes it as told. Targets can write some of the counts.
std::uint64_t more(std::uint64_t count, std::uint64_t& told) {
  const std::uint64_t before = std::exchange(told, count);
  return count > before ? count - before : 0;
}

constexpr const char* without_room =
    " limits of memory (ulimit -v, -d), of the stack (ulimit -s) or of real-time CPU time (ulimit -R) are too low for "
    "our library; raise them, or record from outside: crosstalk record --observer";

}  // namespace

/// Puts the counts since the last call into a copy, and the extremes and reasons as they are.
void Losses::add_memory(const profile::MemoryCounts& counts, const RemarksOnMemory& remarks,
                        std::vector<profile::MessageRow>& messages) {
  const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  profile::MemoryCounts since{};
  since.accesses = more(read(counts.accesses), told_.accesses);
  since.in_kernel = more(read(counts.in_kernel), told_.in_kernel);
  since.without_access = more(read(counts.without_access), told_.without_access);
  since.half_updates = more(read(counts.half_updates), told_.half_updates);
  since.lost = more(read(counts.lost), told_.lost);
  since.throttled = more(read(counts.throttled), told_.throttled);
  since.clock_alone = static_cast<std::uint32_t>(more(read(counts.clock_alone), told_.clock_alone));
  since.without_counter = static_cast<std::uint32_t>(more(read(counts.without_counter), told_.without_counter));
  since.missing_permille = read(counts.missing_permille);
  since.refusal = read(counts.refusal);
  since.refusal_error = read(counts.refusal_error);
  for (profile::MessageRow& remark : remarks(since)) {
    messages.push_back(std::move(remark));
  }
}

std::vector<profile::MessageRow> Losses::take(const LossCounts& counts, const profile::ArenaHeader& arena,
                                              const RemarksOnMemory& remarks) {
  std::vector<profile::MessageRow> messages;
  const auto say = [&](const char* code, std::uint64_t count, const std::string& text) {
    if (count != 0) {
      messages.push_back({code, std::to_string(count) + text, count});
    }
  };
  const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  say("records_lost", more(counts.records, told_.records),
      " records were lost to full rings; a longer --period makes fewer");
  if (remarks) {
    add_memory(arena.memory_counts, remarks, messages);
  }
  say("threads_unobserved", more(read(arena.threads_unobserved), told_.threads_unobserved),
      " threads went unobserved: more than " + std::to_string(counts.slots) + " ran at once");
  say("threads_without_memory",
      more(std::uint64_t{read(arena.threads_without_memory)} + counts.unread, told_.threads_without_memory),
      " threads went unobserved: there was no memory for their records within the limit (ulimit -v)");
  const std::uint64_t processes = more(read(arena.processes_without_room), told_.processes);
  say("processes_without_memory", processes,
      std::string(processes == 1 ? " process went unobserved: its" : " processes went unobserved: their") +
          without_room);
  say("ring_corrupt", more(counts.corruptions, told_.corruptions),
      " times damaged records were dropped; the program may have overwritten crosstalk's memory");
  return messages;
}

}  // namespace crosstalk::daemon
