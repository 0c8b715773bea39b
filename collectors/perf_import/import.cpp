// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/import.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/unique_fd.h"
#include "collectors/perf_data/reader.h"
#include "collectors/perf_data/record_decoder.h"
#include "collectors/perf_import/call_chains.h"
#include "collectors/perf_import/event_units.h"
#include "collectors/perf_import/machine.h"
#include "collectors/perf_import/sample_rows.h"
#include "collectors/perf_import/tasks.h"
#include "profile/rotate.h"
#include "profile/writer.h"

namespace crosstalk::perf_import {
namespace {

/// A file's bytes, as long as this lives.
class MappedFile {
 public:
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) {
      ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

tl::unexpected<Error> not_opened(const std::string& path, int error) {
  return fail(error == ENOENT   ? ErrorCode::not_found
              : error == EACCES ? ErrorCode::permission
                                : ErrorCode::system,
              "cannot open '" + path + "': " + std::strerror(error));
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const UniqueFd fd(::open(path == "-" ? "/dev/stdin" : path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return not_opened(path, errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::unsupported, "'" + path +
                                            "' is a directory, as 'perf record --threads' writes it; record without "
                                            "--threads");
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::unsupported, "'" + path + "' is no regular file; write it to one first");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return MappedFile({});
  }
  void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) {
    return not_opened(path, errno);
  }
  ::madvise(bytes, size, MADV_SEQUENTIAL);
  return MappedFile(std::span(static_cast<const std::byte*>(bytes), size));
}

tl::unexpected<Error> at_record(const perf_data::Record& record, const Error& error) {
  return fail(error.code, perf_data::place_in_words(record.place, record.type) + ": " + error.message);
}

bool of_this_host(const profile::Session& session) {
  struct utsname names {};
  return ::uname(&names) == 0 && session.host == names.nodename;
}

profile::EventId event_id(std::size_t event) { return profile::EventId{static_cast<std::uint32_t>(event) + 1}; }

/// Takes a recording's records and writes their contents.
class Import {
 public:
  Import(const perf_data::Reader& reader, profile::ProfileWriter& writer, const std::string& version)
      : reader_(reader), writer_(writer) {
    session_.version = version;
  }

  [[nodiscard]] Result<void> take(const perf_data::Record& record);
  [[nodiscard]] Result<ImportOutcome> finish(const perf_data::ReadSummary& summary);

 private:
  [[nodiscard]] Result<void> take_sample(const perf_data::Record& record, const perf_data::Sample& sample);
  [[nodiscard]] const EventUnit& unit_of_event(std::size_t event);
  [[nodiscard]] Result<void> note(const std::string& code, const std::string& text);
  [[nodiscard]] Result<void> put_events();
  [[nodiscard]] Result<void> put_notes(const perf_data::ReadSummary& summary);

  const perf_data::Reader& reader_;
  profile::ProfileWriter& writer_;
  profile::Session session_;
  Tasks tasks_;
  CallChains call_chains_;
  std::vector<std::uint64_t> calls_;
  std::vector<std::optional<EventUnit>> units_;
  std::optional<RowSettings> settings_;
  CycleTime cycle_;
  ImportOutcome outcome_;
  std::uint64_t first_ns_ = UINT64_MAX, last_ns_ = 0;
  std::uint64_t throttled_ = 0, without_period_ = 0, without_thread_ = 0;
  bool has_cycles_ = false, has_accesses_ = false;
};

const EventUnit& Import::unit_of_event(std::size_t event) {
  if (event >= units_.size()) {
    units_.resize(event + 1);
  }
  if (!units_[event]) {
    units_[event] = unit_of(reader_.events().list()[event], reader_.features());
    has_cycles_ = has_cycles_ || units_[event]->unit == profile::WeightUnit::cycles;
  }
  return *units_[event];
}

Result<void> Import::take_sample(const perf_data::Record& record, const perf_data::Sample& sample) {
  if (record.identity.tid < 0) {
    ++without_thread_;
    return {};
  }
  if (!settings_) {  // of a file written to a pipe, the machine is known from here on
    cycle_ = cycle_time_of(reader_.features());
    settings_ = RowSettings{cycle_.ps, reader_.features().architecture == "x86_64"};
    describe_machine(reader_.features(), session_);
    session_.begin_ns = record.identity.time_ns;
    if (Result<void> put = writer_.put(session_); !put) {
      return put;
    }
  }
  const Result<Task*> thread = tasks_.sampled(record.identity.pid, record.identity.tid);
  if (!thread) {
    return at_record(record, thread.error());
  }
  profile::SampleRow row = row_of(record, sample, unit_of_event(sample.event), *settings_);
  row.thread = *(*thread)->id;
  (*thread)->cpu_ns += row.cpu_ns;
  row.event = event_id(sample.event);
  read_user_calls(record, sample, calls_);
  const Result<profile::CallChainId> chain = call_chains_.put(calls_, writer_);
  if (!chain) {
    return tl::unexpected<Error>(chain.error());
  }
  row.call_chain = *chain;
  without_period_ += sample.period == 0 ? 1 : 0;
  has_accesses_ = has_accesses_ || row.access != AccessKind::none;
  first_ns_ = std::min(first_ns_, row.time_ns);
  last_ns_ = std::max(last_ns_, row.time_ns);
  constexpr std::uint64_t rows_at_once = 50'000;  // uncommitted rows are kept in memory
  if (++outcome_.samples % rows_at_once == 0) {
    if (Result<void> committed = writer_.commit(); !committed) {
      return committed;
    }
  }
  return writer_.put(row);
}

Result<void> Import::take(const perf_data::Record& record) {
  const std::uint64_t time_ns = record.identity.time_ns;
  Result<void> result;
  if (const auto* sample = std::get_if<perf_data::Sample>(&record.content)) {
    return take_sample(record, *sample);
  }
  if (const auto* mapping = std::get_if<perf_data::Mapping>(&record.content)) {
    result = tasks_.add(*mapping, time_ns);
  } else if (const auto* comm = std::get_if<perf_data::Comm>(&record.content)) {
    result = tasks_.add(*comm, time_ns);
  } else if (const auto* fork = std::get_if<perf_data::Fork>(&record.content)) {
    result = tasks_.add(*fork, time_ns);
  } else if (const auto* exit = std::get_if<perf_data::Exit>(&record.content)) {
    tasks_.add(*exit, time_ns);
  } else if (const auto* id = std::get_if<perf_data::BuildId>(&record.content)) {
    tasks_.add(*id);
  } else if (const auto* lost = std::get_if<perf_data::Lost>(&record.content)) {
    tasks_.lose(record.identity.tid, lost->count);
  } else if (std::holds_alternative<perf_data::Throttle>(record.content)) {
    ++throttled_;
  }
  return result ? result : at_record(record, result.error());
}

Result<void> Import::note(const std::string& code, const std::string& text) {
  outcome_.notes.push_back(text);
  return writer_.put(profile::MessageRow{code, text, 1});
}

/// Runs at the end, because names come after the samples in a recording that was written to a pipe.
Result<void> Import::put_events() {
  const std::vector<perf_data::Event>& events = reader_.events().list();
  Result<void> result;
  for (std::size_t i = 0; i < events.size() && result; ++i) {
    result = writer_.put(event_row(event_id(i), events[i], reader_.features()));
  }
  return result;
}

Result<void> Import::put_notes(const perf_data::ReadSummary& summary) {
  Result<void> result = writer_.put(profile::MessageRow{
      "imported",
      std::string("imported from a recording of perf, which watches no lines of memory: which threads communicate, and "
                  "what it costs, is not known") +
          (has_accesses_ ? "; what its samples of loads and stores tell of it, 'crosstalk report --view memory' shows"
                         : ""),
      1});
  const auto note_if = [&](bool holds, const char* code, const std::string& text) {
    result = result && holds ? note(code, text) : result;
  };
  const auto times = [](std::uint64_t count) { return std::to_string(count); };
  note_if(summary.cut_off, "recording_cut_off",
          "the file ends before the recording does, as perf did not end in an orderly way, or the file is a part of a "
          "copy: "
          "what came behind is missing");
  for (const std::string& damaged : summary.damaged) {
    result = result ? note("recording_damaged", damaged + "; it was left out") : result;
  }
  note_if(summary.unknown_samples > 0, "samples_of_unknown_events",
          times(summary.unknown_samples) + " samples are of events that the file does not describe; left out");
  note_if(without_thread_ > 0, "samples_without_thread",
          times(without_thread_) + " samples do not say which thread they are of; left out");
  note_if(without_period_ > 0, "weights_unknown",
          times(without_period_) + " samples do not say how many events they stand for, and count as one each");
  note_if(throttled_ > 0, "throttled",
          "the kernel throttled events " + times(throttled_) +
              " times, as their samples took too much time: samples are missing then");
  note_if(summary.out_of_order > 0, "out_of_order",
          times(summary.out_of_order) + " records came too late to be put in order of time");
  note_if(
      has_cycles_ && cycle_.nominal, "times_from_cycles",
      "times are cycles at the nominal frequency that the processor's name tells; it may have run faster or slower");
  note_if(has_cycles_ && !cycle_.nominal, "times_from_cycles",
          "the processor's frequency is not known: times are cycles, as if each took one nanosecond; shares are right");
  note_if(tasks_.unidentified_files() > 0 && !of_this_host(session_), "files_without_build_id",
          times(tasks_.unidentified_files()) + " files of code have no build id in the recording, which is of " +
              (session_.host.empty() ? "an unknown host" : "host " + session_.host) +
              ": names come from files of the same path here, if there are any, and may be wrong");
  if (const std::vector<std::string> replaced = tasks_.replaced_files(); !replaced.empty()) {
    const std::string more = replaced.size() > 1 ? " and " + times(replaced.size() - 1) + " more" : "";
    note_if(true, "files_replaced",
            (replaced.size() == 1 ? replaced.front() + " is another file than was recorded"
                                  : replaced.front() + more + " are other files than were recorded") +
                " (by the inode), and the recording has no build id to find the right one by: it gives no names");
  }
  note_if(summary.auxtrace_bytes > 0, "trace_not_decoded",
          times(summary.auxtrace_bytes) + " bytes of hardware traces (AUX) are not decoded");
  return result;
}

Result<ImportOutcome> Import::finish(const perf_data::ReadSummary& summary) {
  describe_machine(reader_.features(), session_);
  session_.begin_ns = outcome_.samples > 0 ? first_ns_ : 0;
  session_.end_ns = last_ns_;
  session_.complete = !summary.cut_off;
  session_.core.cycle_ps = cycle_.nominal ? cycle_.ps : 0;
  outcome_.left_out = summary.unknown_samples + without_thread_;
  Result<void> result = writer_.put(session_);
  result = result ? tasks_.put(writer_, session_.begin_ns, of_this_host(session_)) : result;
  result = result ? put_events() : result;
  result = result ? put_notes(summary) : result;
  result = result ? writer_.finish() : result;
  if (!result) {
    return tl::unexpected<Error>(result.error());
  }
  outcome_.threads = tasks_.threads();
  return outcome_;
}

Result<ImportOutcome> run(perf_data::Reader& reader, profile::ProfileWriter& writer, const std::string& input,
                          const std::string& version) {
  Import import(reader, writer, version);
  const auto summary =
      reader.read([&](const perf_data::Record& record) -> Result<void> { return import.take(record); });
  if (!summary) {
    return summary.error().code == ErrorCode::corrupt
               ? fail(ErrorCode::corrupt, "'" + input + "': " + summary.error().message)
               : tl::unexpected<Error>(summary.error());
  }
  return import.finish(*summary);
}

}  // namespace

Result<ImportOutcome> import_perf_data(const std::string& input, const std::string& output,
                                       const std::string& version) {
  const Result<MappedFile> file = MappedFile::open(input);
  if (!file) {
    return tl::unexpected<Error>(file.error());
  }
  Result<perf_data::Reader> reader = perf_data::Reader::open(file->bytes());
  if (!reader) {
    return fail(reader.error().code, "'" + input + "': " + reader.error().message);
  }
  const bool replaces = ::access(output.c_str(), F_OK) == 0;
  Result<ImportOutcome> outcome;
  {
    Result<profile::ProfileWriter> writer = profile::ProfileWriter::create(output);
    if (!writer) {
      return tl::unexpected<Error>(writer.error());
    }
    outcome = run(*reader, *writer, input, version);
  }
  if (!outcome) {
    profile::undo_make_room(output, replaces);
  }
  return outcome;
}

}  // namespace crosstalk::perf_import
