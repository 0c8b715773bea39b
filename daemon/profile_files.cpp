// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile_files.h"

#include <utility>

#include "base/clock.h"

namespace crosstalk::daemon {
namespace {

/// Returns a function that passes on the first line only.
std::function<void(const std::string&)> once(std::function<void(const std::string&)> warn) {
  return [warn = std::move(warn), said = std::make_shared<bool>(false)](const std::string& line) {
    if (warn && !std::exchange(*said, true)) {
      warn(line);
    }
  };
}

}  // namespace

ProfileFiles::ProfileFiles(profile::ProfileWriter first, std::optional<SwitchedFiles> names,
                           std::function<void(const std::string&)> warn)
    : names_(std::move(names)) {
  if (!names_) {
    whole_ = std::make_unique<ProfileSink>(std::move(first), std::move(warn));
    return;
  }
  warn_ = once(std::move(warn));
  first_ = std::move(first);
  names_->made();
}

void ProfileFiles::begin(const ProcessTable& processes, std::uint64_t time_ns) {
  processes_ = &processes;
  if (names_) {
    present_ = std::make_unique<ProfileFile>(std::move(first_), warn_, processes, Boundary{time_ns, 0, {}, true});
  }
}

Result<profile::ProfileWriter> ProfileFiles::make_next() {
  Result<profile::ProfileWriter> writer = profile::ProfileWriter::create(names_->next(unix_ms()));
  if (writer) {
    names_->made();
  }
  return writer;
}

void ProfileFiles::begin_next(std::uint64_t time_ns, std::uint32_t last_watch, const profile::Session& session) {
  finish_ended();
  ended_ = std::move(present_);
  ended_->set_now(time_ns);
  handed_over_ = false;
  present_ =
      std::make_unique<ProfileFile>(make_next(), warn_, *processes_, Boundary{time_ns, last_watch, last_stack_, false});
  present_->put(session);  // the first row: times of others count from its begin
}

void ProfileFiles::hand_over() {
  present_->begin_with(ended_->end());
  handed_over_ = true;
}

void ProfileFiles::close(ProfileFile& file) {
  if (file.sink().failing() && file.sink().has_file()) {
    file.sink().retry();
  }
  file.commit();
  file.sink().finish();
  stored_.samples += file.sink().stored().samples;
  stored_.traps += file.sink().stored().traps;
  first_loss_ = first_loss_.empty() ? file.sink().loss() : first_loss_;
}

void ProfileFiles::finish_ended() {
  if (ended_) {
    close(*ended_);
    ended_.reset();
    names_->remove_surplus();
  }
}

void ProfileFiles::finish() {
  if (whole_) {
    whole_->finish();
    return;
  }
  finish_ended();
  close(*present_);
}

void ProfileFiles::set_now(std::uint64_t now_ns) {
  if (present_) {
    present_->set_now(now_ns);
  }
}

void ProfileFiles::commit() {
  if (whole_) {
    whole_->commit();
    return;
  }
  present_->commit();
  if (ended_) {
    ended_->commit();
  }
}

void ProfileFiles::retry() { whole_ ? whole_->retry() : present_->sink().retry(); }

const ProfileSink& ProfileFiles::sink() const {
  return whole_ ? *whole_ : ended_ && !handed_over_ ? ended_->sink() : present_->sink();
}

ProfileSink::Stored ProfileFiles::stored() const { return whole_ ? whole_->stored() : stored_; }

std::uint64_t ProfileFiles::take_late() { return std::exchange(late_, 0); }

template <class Row>
void ProfileFiles::put_in(ProfileFile& file, const Row& row) {
  if constexpr (requires { row.stack; }) {
    if (stack_ && stack_->id == row.stack) {
      file.put(*stack_);
    }
  }
  file.put(row);
}

/// Puts a row into the file of its moment; false if that is finished.
template <class Row, class Moment>
bool ProfileFiles::put_at(const Row& row, Moment moment) {
  if (whole_) {
    whole_->put(row);
    return true;
  }
  if (!present_->begin().is_after(moment)) {
    put_in(*present_, row);
  } else if (ended_ && !ended_->begin().is_after(moment)) {
    put_in(*ended_, row);
  } else {
    return false;
  }
  return true;
}

/// Puts a row that later ones refer to, in both files if it is from before the switch.
template <class Row>
void ProfileFiles::put_told_once(const Row& row, std::uint64_t time_ns) {
  if (whole_) {
    whole_->put(row);
    return;
  }
  if (ended_ && (!handed_over_ || present_->begin().is_after(time_ns))) {
    put_in(*ended_, row);
  }
  if (!ended_ || handed_over_) {
    put_in(*present_, row);
  }
}

/// True if a process or thread that ended at `end_ns` (0: it goes on) has no totals in the present file.
bool ProfileFiles::ended_before(std::uint64_t end_ns) const {
  return end_ns != 0 && present_ && present_->begin().is_after(end_ns);
}

void ProfileFiles::put(const profile::ProcessRow& row) {
  if (ended_before(row.end_ns)) {
    if (ended_) {
      ended_->put(row);
    }
    if (!present_->has(row.id)) {
      return;
    }
  }
  put_total(row);
}

void ProfileFiles::put(const profile::ThreadRow& row) {
  if (!ended_before(row.end_ns)) {
    put_total(row);
  } else if (ended_) {
    ended_->put(row);
  } else if (present_->has(row.id)) {
    present_->put(row);
  }
}

void ProfileFiles::put(const profile::SampleRow& row) {
  late_ += (row.watch.value != 0 ? put_at(row, row.watch) : put_at(row, row.time_ns)) ? 0 : 1;
}

void ProfileFiles::put(const profile::TrapRow& row) { late_ += put_at(row, row.watch) ? 0 : 1; }
void ProfileFiles::put(const profile::WatchRow& row) { (void)put_at(row, row.id); }
void ProfileFiles::put(const profile::LookaheadRow& row) { (void)put_at(row, row.time_ns); }
void ProfileFiles::put(const profile::ReadingRow& row) { (void)put_at(row, row.time_ns); }
void ProfileFiles::put(const profile::SampledWaitRow& row) { (void)put_at(row, row.time_ns); }
void ProfileFiles::put(const profile::BlockRow& row) { put_told_once(row, row.time_ns); }
void ProfileFiles::put(const profile::SharedMappingRow& row) { put_told_once(row, row.time_ns); }
void ProfileFiles::put(const profile::ThreadCreationRow& row) { put_told_once(row, row.time_ns); }
void ProfileFiles::put(const profile::ModuleRow& row) { put_told_once(row, row.loaded_ns); }
void ProfileFiles::put(const profile::RegionRow& row) { put_told_once(row, 0); }

void ProfileFiles::put(const profile::ThreadWaitRow& row) { put_total(row); }
void ProfileFiles::put(const profile::ThreadRegionRow& row) { put_total(row); }

void ProfileFiles::put(const profile::StackRow& row) {
  if (whole_) {
    whole_->put(row);
    return;
  }
  stack_ = row;
  last_stack_ = static_cast<std::int32_t>(row.id.value - last_stack_.value) > 0 ? row.id : last_stack_;
}

}  // namespace crosstalk::daemon
