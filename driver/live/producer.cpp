// SPDX-License-Identifier: Apache-2.0
#include "driver/live/producer.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "attribution/analysis.h"
#include "attribution/renumber.h"
#include "base/clock.h"
#include "driver/files/report_machine.h"
#include "driver/live/private_folder.h"
#include "driver/live/recorder_process.h"
#include "driver/live/thread_numbers.h"
#include "driver/live/window.h"
#include "profile/reader.h"
#include "profile/switched_files.h"
#include "symbolizer/module_cache.h"

namespace crosstalk::driver::live {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int files_kept = 8;          // by the recorder, while nobody reads them
constexpr double least_first_s = 1.5;  // a refresh that takes longer has a picture of its beginning
constexpr double first_look_s = 0.5;   // after which the recorder may have written something
constexpr int look_again_ms = 50;      // until there is a picture
constexpr int usual_wait_ms = 1000;

/// The recorder's last words, with the remedy that a live view has for a profile that cannot be written.
std::string with_own_remedy(std::string words) {
  constexpr std::string_view of_record = "choose another file with -o";
  if (const std::size_t at = words.find(of_record); at != std::string::npos) {
    words.replace(at, of_record.size(), "name another place by the variable TMPDIR");
  }
  return words;
}

double processor_time_s() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

/// Seconds since 1970 of a moment of CLOCK_MONOTONIC.
double unix_time_s(std::uint64_t moment_ns) {
  const double now_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return now_s - (static_cast<double>(monotonic_ns()) - static_cast<double>(moment_ns)) * 1e-9;
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  for (const char* const suffix : {"", "-wal", "-shm"}) {
    fs::remove(path + suffix, ignored);
  }
}

/// Threads that the recorder could not watch, or found too late.
std::uint64_t unread_threads_of(const profile::ProfileReader& profile) {
  std::uint64_t threads = 0;
  for (const profile::MessageRow& message : profile.messages()) {
    const bool counts = message.code == "threads_not_watched" || message.code == "brief_threads_missed";
    threads += counts ? message.count : 0;
  }
  return threads;
}

UniqueFd watch_of(const std::string& folder) {
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (watch.valid()) {  // without it, the folder is looked at every second
    (void)::inotify_add_watch(watch.get(), folder.c_str(), IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_TO);
  }
  return watch;
}

void drain(int fd) {
  std::array<char, 4096> bytes{};
  while (::read(fd, bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace

class Producer::State {
 public:
  State(const ProducerRequest& request, PrivateFolder folder, RecorderProcess recorder)
      : folder_(std::move(folder)),
        watch_(watch_of(folder_.path())),
        recorder_(std::move(recorder)),
        window_(request.window_s, request.refresh_s),
        refresh_s_(request.refresh_s),
        is_attached_(request.command.empty()) {
    options_.symbols.sysroot = request.sysroot;
    options_.symbols.debuginfod = false;  // a live view does not wait for servers
    options_.symbols.cache = std::make_shared<symbolizer::ModuleCache>();
  }

  Result<std::optional<Snapshot>> next(int stop);
  static std::string name_in(const PrivateFolder& folder) { return folder.path() + "/top"; }

 private:
  [[nodiscard]] std::vector<std::string> finished_files(bool ended) const;
  [[nodiscard]] Result<Interval> analysed(const profile::ProfileReader& profile);
  bool take(const std::string& path);
  [[nodiscard]] Result<profile::ProfileReader> open_copy_of(const std::string& path) const;
  bool take_begun();
  [[nodiscard]] Snapshot picture();
  [[nodiscard]] bool wait(int stop);
  [[nodiscard]] Result<std::optional<Snapshot>> last();

  PrivateFolder folder_;
  UniqueFd watch_;
  RecorderProcess recorder_;
  Window window_;
  double refresh_s_;
  bool is_attached_;  // else its recorder dies of the same signal as the command
  attribution::AnalysisOptions options_;
  std::optional<ReportMachine> machine_;  // from the first profile on
  ThreadNumbers numbers_;
  std::string unread_;  // why the latest file could not be read
  Clock::time_point begin_ = Clock::now();
};

/// The profiles that the recorder has finished, oldest first, up to the first that it has not: a log lies beside that.
/// It closes one after the other, so only the last two may be unfinished. `ended`: it writes none.
std::vector<std::string> Producer::State::finished_files(bool ended) const {
  std::vector<std::string> files = profile::switched_files(name_in(folder_));
  for (std::size_t i = files.size() > 2 ? files.size() - 2 : 0; !ended && i < files.size(); ++i) {
    if (exists(files[i] + "-wal")) {
      files.resize(i);
    }
  }
  return files;
}

Result<Interval> Producer::State::analysed(const profile::ProfileReader& profile) {
  if (!machine_) {
    machine_ = machine_of(profile.session());
    options_.machine = machine_->machine ? &*machine_->machine : nullptr;
  }
  const double before_s = processor_time_s();
  auto analysis = attribution::analyse(profile, options_);
  if (!analysis) {
    return tl::unexpected<Error>(analysis.error());
  }
  const std::vector<std::uint32_t> numbers = numbers_.of(profile.threads(), profile.processes());
  attribution::renumber_threads(
      *analysis, [&](std::uint32_t thread) { return thread < numbers.size() ? numbers[thread] : thread; });
  return Interval{std::move(*analysis), processor_time_s() - before_s, unread_threads_of(profile),
                  unix_time_s(profile.session().end_ns)};
}

/// Adds a finished file to the window and removes it. False if it cannot be used.
bool Producer::State::take(const std::string& path) {
  Result<Interval> interval = tl::unexpected<Error>(Error{});
  {
    const auto profile = profile::ProfileReader::open(path);
    interval = profile ? analysed(*profile) : tl::unexpected<Error>(profile.error());
  }
  remove_file(path);
  if (!interval) {
    unread_ = interval.error().message;
    return false;
  }
  const bool has_time = interval->analysis.duration_s > 0;
  if (has_time) {
    window_.add(std::move(*interval));
  }
  return has_time;
}

/// Opens a copy of a file that the recorder still writes: it could not finish one that is read meanwhile.
Result<profile::ProfileReader> Producer::State::open_copy_of(const std::string& path) const {
  const std::string copy = folder_.path() + "/begun";
  std::error_code error;
  fs::copy_file(path, copy, fs::copy_options::overwrite_existing, error);
  if (!error) {
    fs::copy_file(path + "-wal", copy + "-wal", fs::copy_options::overwrite_existing, error);
  }
  auto profile = error ? fail(ErrorCode::system, error.message()) : profile::ProfileReader::open(copy);
  remove_file(copy);
  return profile;
}

/// Takes the beginning of the first file, if the recorder has put something there.
bool Producer::State::take_begun() {
  const std::chrono::duration<double> since = Clock::now() - begin_;
  if (!window_.empty() || refresh_s_ < least_first_s || since.count() < first_look_s) {
    return false;
  }
  const std::vector<std::string> files = profile::switched_files(name_in(folder_));
  if (files.size() != 1) {
    return false;
  }
  const auto profile = open_copy_of(files.front());
  if (!profile || profile->session().end_ns <= profile->session().begin_ns) {
    return false;
  }
  Result<Interval> interval = analysed(*profile);
  if (!interval || interval->analysis.sampling.samples == 0) {
    return false;
  }
  std::erase_if(interval->analysis.warnings,
                [](const attribution::Warning& warning) { return warning.code == "incomplete_profile"; });
  window_.add_begun(std::move(*interval));
  return true;
}

Snapshot Producer::State::picture() {
  Snapshot snapshot = window_.next();
  if (!unread_.empty()) {
    snapshot.warnings.push_back({"refresh_unread", "a refresh is missing: " + std::exchange(unread_, {})});
  }
  return snapshot;
}

/// False: to stop.
bool Producer::State::wait(int stop) {
  std::array<pollfd, 4> polled = {
      {{stop, POLLIN, 0}, {recorder_.fd(), POLLIN, 0}, {recorder_.words_fd(), POLLIN, 0}, {watch_.get(), POLLIN, 0}}};
  ::poll(polled.data(), polled.size(), window_.empty() ? look_again_ms : usual_wait_ms);
  recorder_.read_words();
  drain(watch_.get());
  return (polled[0].revents & POLLIN) == 0;
}

Result<std::optional<Snapshot>> Producer::State::next(int stop) {
  for (;;) {
    const bool ended = recorder_.status().has_value();
    bool news = false;
    for (const std::string& path : finished_files(ended)) {
      news = take(path) || news;
    }
    if (news || (!ended && take_begun())) {
      return std::optional(picture());
    }
    if (ended) {
      return last();
    }
    if (!wait(stop)) {
      return std::optional<Snapshot>();
    }
  }
}

/// Nothing more will come.
Result<std::optional<Snapshot>> Producer::State::last() {
  recorder_.read_words();
  if (window_.empty()) {
    const int status = *recorder_.status();
    const std::string& words = recorder_.last_words();
    const bool refused = status == 125 || status == 126 || status == 127;
    return fail(refused ? ErrorCode::refused : ErrorCode::system,
                !words.empty()     ? with_own_remedy(words)
                : !unread_.empty() ? unread_
                                   : fmt::format("the recorder ended with status {} before there was a picture; the "
                                                 "processes may have ended",
                                                 status));
  }
  if (is_attached_ && recorder_.killed()) {
    return fail(ErrorCode::system, "the recorder was killed: nothing more is measured");
  }
  return std::optional<Snapshot>();
}

Producer::Producer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Producer::Producer(Producer&&) noexcept = default;
Producer::~Producer() = default;

Result<Producer> Producer::start(const ProducerRequest& request, const daemon::SignalWatch& signals) {
  Result<PrivateFolder> folder = PrivateFolder::make();
  if (!folder) {
    return tl::unexpected<Error>(folder.error());
  }
  std::vector<std::string> arguments = {"record", "-q", "-o", State::name_in(*folder)};
  arguments.insert(arguments.end(), {"--switch-output", fmt::format("{}ms", std::llround(request.refresh_s * 1000)),
                                     "--switch-max-files", std::to_string(files_kept)});
  arguments.insert(arguments.end(), request.recorder.begin(), request.recorder.end());
  if (!request.command.empty()) {
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), request.command.begin(), request.command.end());
  }
  Result<RecorderProcess> recorder = RecorderProcess::start(arguments, signals);
  if (!recorder) {
    return tl::unexpected<Error>(recorder.error());
  }
  return Producer(std::make_unique<State>(request, std::move(*folder), std::move(*recorder)));
}

Result<std::optional<Snapshot>> Producer::next(int stop) { return state_->next(stop); }

}  // namespace crosstalk::driver::live
