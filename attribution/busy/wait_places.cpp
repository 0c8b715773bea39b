// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/wait_places.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "attribution/loops/loop_index.h"
#include "attribution/program/own_code.h"

namespace crosstalk::attribution {
namespace {

using profile::ThreadWaitRow;
using profile::WaitKind;

void add(const ThreadWaitRow& row, Waited& to) {
  const double seconds = static_cast<double>(row.waited_ns) * 1e-9;
  if (row.kind != WaitKind::all) {
    to.add(profile::class_of(row.kind), seconds);
    to.count += row.count;
  }
}

/// The place of the call, before the return address.
struct Call {
  symbolizer::Frame frame;           // the program's own, if calls were inlined into it
  std::optional<ModulePlace> place;  // none: in no known module
};

class Places {
 public:
  Places(const ProgramView& view, std::uint64_t end_ns, std::vector<LoopRow>& loops)
      : view_(view), end_ns_(end_ns), loops_(loops), rows_(view, loops) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      by_id_[loops[i].id] = i;
    }
  }

  void add_row(const ThreadWaitRow& row) {
    const Call& call = call_of(row);
    const symbolizer::Frame& frame = call.frame;
    std::optional<std::size_t> loop;
    if (call.place) {
      loop = rows_.innermost(*call.place);
    }
    WaitPlace& place = places_[{row.kind, frame.source.file, frame.source.line, frame.function}];
    place.kind = row.kind;
    place.function = frame.function, place.file = frame.source.file, place.line = frame.source.line;
    place.loop = loop ? std::optional(loops_[*loop].id) : place.loop;
    place.waited_s += static_cast<double>(row.waited_ns) * 1e-9;
    place.count += row.count;
    add_thread(row, place);
    add_to_loops(row, loop);
  }

  [[nodiscard]] std::vector<WaitPlace> finish() {
    std::vector<WaitPlace> list;
    for (auto& [key, place] : places_) {
      list.push_back(std::move(place));
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const WaitPlace& a, const WaitPlace& b) { return a.waited_s > b.waited_s; });
    return list;
  }

 private:
  static void add_thread(const ThreadWaitRow& row, WaitPlace& place) {
    if (place.threads.empty() || place.threads.back().thread != row.thread.value) {  // rows come by thread
      place.threads.push_back({row.thread.value, 0, 0});
    }
    place.threads.back().waited_s += static_cast<double>(row.waited_ns) * 1e-9;
    place.threads.back().count += row.count;
  }

  void add_to_loops(const ThreadWaitRow& row, std::optional<std::size_t> at) {
    for (std::size_t levels = 0; at && levels < loops_.size(); ++levels) {
      LoopRow& loop = loops_[*at];
      loop.waited = loop.waited ? loop.waited : std::optional(Waited());
      add(row, *loop.waited);
      const auto parent = loop.parent ? by_id_.find(*loop.parent) : by_id_.end();
      at = parent != by_id_.end() ? std::optional(parent->second) : std::nullopt;
    }
  }

  const Call& call_of(const ThreadWaitRow& row) {
    const profile::ThreadRow& thread = view_.threads()[row.thread.value];
    const auto [known, fresh] = calls_.try_emplace({thread.process.value, row.site});
    Call& call = known->second;
    if (fresh && row.site != 0) {
      const std::uint64_t address = row.site - 1;
      Moment moment = view_.moment(row.thread, thread.end_ns != 0 ? thread.end_ns : end_ns_);
      call.place = view_.spaces().find(moment, address);
      if (!call.place) {  // unloaded meanwhile
        moment.time_ns = thread.begin_ns;
        call.place = view_.spaces().find(moment, address);
      }
      call.frame = own_place(view_, moment, address, {}).frame;
    }
    return call;
  }

  const ProgramView& view_;
  std::uint64_t end_ns_;
  std::vector<LoopRow>& loops_;
  LoopIndex rows_;
  std::map<std::uint32_t, std::size_t> by_id_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Call> calls_;  // by process and site
  std::map<std::tuple<WaitKind, std::string, std::uint32_t, std::string>, WaitPlace> places_;
};

}  // namespace

MeasuredWaits measured_waits(std::span<const ThreadWaitRow> rows, const ProgramView& view, std::uint64_t end_ns,
                             std::vector<LoopRow>& loops) {
  MeasuredWaits result;
  result.threads.resize(view.threads().size());
  Places places(view, end_ns, loops);
  for (const ThreadWaitRow& row : rows) {
    if (!view.knows(row.thread)) {
      continue;
    }
    std::optional<Waited>& thread = result.threads[row.thread.value];
    thread = thread ? thread : std::optional(Waited());
    if (row.kind != WaitKind::all) {
      add(row, *thread);
      places.add_row(row);
    }
  }
  result.places = places.finish();
  return result;
}

const char* wait_kind_name(WaitKind kind) {
  static constexpr const char* names[] = {"all",  "mutex",     "rwlock",    "critical", "barrier",
                                          "team", "condition", "semaphore", "futex"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace crosstalk::attribution
