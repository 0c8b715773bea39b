// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/text/report.h"

namespace crosstalk::driver {

using attribution::RooflineLoop;

namespace {

std::string thread_name(const attribution::Analysis& analysis, const RooflineLoop& loop) {
  if (loop.work.thread == nullptr) {
    return "";
  }
  const auto& threads = analysis.threads;
  const auto found = std::find_if(threads.begin(), threads.end(),
                                  [&](const auto& thread) { return thread.index == loop.work.thread->thread; });
  return found == threads.end() ? "" : found->name;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

const RooflineLoop* former(const RooflineReport& report, const RooflineLoop& loop) {
  if (report.against == nullptr) {
    return nullptr;
  }
  const auto& loops = report.against->loops;
  const auto found = std::find_if(loops.begin(), loops.end(), [&](const RooflineLoop& other) {
    const bool same_thread = (other.work.thread == nullptr) == (loop.work.thread == nullptr) &&
                             (loop.work.thread == nullptr || other.work.thread->thread == loop.work.thread->thread);
    return same_thread && other.row().function == loop.row().function &&
           file_name(other.row().file) == file_name(loop.row().file);
  });
  return found != loops.end() ? &*found : nullptr;
}

std::string loop_place(const RooflineReport& report, const RooflineLoop& loop) {
  const attribution::LoopRow& row = loop.row();
  const std::string place = source_text(row.file, row.line_begin, row.line_end);
  std::string text = row.function + (place.empty() ? "" : " " + place);
  if (loop.work.thread == nullptr) {
    return text;
  }
  const std::string name = thread_name(*report.analysis, loop);
  return fmt::format("thread {}{}: {}", loop.work.thread->thread, name.empty() ? "" : " " + name, text);
}

std::string roofs_of_whom(const RooflineLoop& loop) {
  const auto& threads = loop.work.threads;
  return threads.at_once == 1  ? "one thread"
         : threads.part_of_one ? fmt::format("one of {} threads", threads.at_once)
                               : fmt::format("{} threads together", threads.at_once);
}

}  // namespace crosstalk::driver
