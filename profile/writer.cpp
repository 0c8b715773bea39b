// SPDX-License-Identifier: Apache-2.0
#include "profile/writer.h"

#include <utility>

#include "profile/empty_profile.h"
#include "profile/rotate.h"
#include "profile/session_meta.h"
#include "profile/sqlite.h"
#include "profile/writer_state.h"

namespace crosstalk::profile {
namespace {

using sqlite::Database;

// WAL: the committed rows of a killed recorder stay readable. No fsync: a power cut may lose the profile, but a
// recorder that waits for the disk loses samples.
constexpr const char* settings = R"sql(
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -1024;
)sql";

constexpr const char* leave_one_file = R"sql(
PRAGMA wal_checkpoint(TRUNCATE);
PRAGMA journal_mode = DELETE;
)sql";

/// True for the settings, costs and measurements of our own recorder, which an imported session lacks.
bool is_of_our_recorder(std::string_view key) {
  return key.starts_with("config.") || key.starts_with("waits.") || key.starts_with("watchpoints.") ||
         key.starts_with("probes.") || key == "core.locked_ps" || key == "core.forward_ps" || key == "memory_bytes" ||
         key == "recorder_cpu_ns" || key == "unobserved_cpu_ns";
}

}  // namespace

ProfileWriter::ProfileWriter(std::unique_ptr<WriterState> state) : state_(std::move(state)) {}
ProfileWriter::ProfileWriter(ProfileWriter&&) noexcept = default;
ProfileWriter& ProfileWriter::operator=(ProfileWriter&&) noexcept = default;
ProfileWriter::~ProfileWriter() = default;

Result<ProfileWriter> ProfileWriter::create(const std::string& path) {
  const Result<bool> had_one = make_room(path);
  if (!had_one) {
    return tl::unexpected<Error>(had_one.error());
  }
  auto state = std::make_unique<WriterState>();
  state->path = path;
  const auto failure = [&](const Error& error) {
    state.reset();
    undo_make_room(path, *had_one);
    return fail(error.code == ErrorCode::corrupt ? ErrorCode::system : error.code,
                "cannot create the profile '" + path + "': " + error.message + "; choose another file with -o");
  };
  // The file itself, not its log, identifies the profile from the start.
  if (const Result<void> made = make_empty_profile(path); !made) {
    return failure(made.error());
  }
  Result<Database> database =
      Database::open(sqlite::file_uri(path, "mode=rw"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  if (!database) {
    return failure(database.error());
  }
  state->database = std::move(*database);
  Result<void> result = state->database.execute(settings);
  result = result ? state->statements.prepare(state->database) : result;
  if (!result) {
    return failure(result.error());
  }
  return ProfileWriter(std::move(state));
}

Result<void> ProfileWriter::put(const Session& session) {
  WriterState& s = *state_;
  return s.guarded([&]() -> Result<void> {
    s.fix_base(session.begin_ns);
    Result<void> result = s.put_meta("time_base_ns", s.time_base_ns);  // again: a roll-back may have lost it
    visit_session(session, [&](const char* key, const auto& value) {
      if (result && !(is_imported(session) && is_of_our_recorder(key))) {
        result = s.put_meta(key, value);
      }
    });
    return result;
  });
}

Result<void> ProfileWriter::commit() {
  WriterState& s = *state_;
  if (s.failed || !s.database.in_transaction()) {
    return {};
  }
  const Result<void> result = s.database.execute("COMMIT");
  if (!result) {
    return s.give_up(result.error());
  }
  return {};
}

void ProfileWriter::retry() { state_->failed = false; }

Result<void> ProfileWriter::finish() {
  WriterState& s = *state_;
  Result<void> result = commit();
  if (!result || s.failed) {
    return result;
  }
  s.statements = Statements();  // open statements would keep the log in use
  result = s.database.execute(leave_one_file);
  s.failed = true;  // nothing can be put any more
  const Result<std::optional<std::int64_t>> in_wal =
      s.database.query_integer("SELECT journal_mode = 'wal' FROM pragma_journal_mode");
  if (result && in_wal && in_wal->value_or(0) != 0) {
    result = fail(ErrorCode::system, "the log is in use by another process and stays beside it");
  }
  s.database = Database();
  if (!result) {
    return fail(result.error().code, "cannot finish the profile '" + s.path + "': " + result.error().message);
  }
  return {};
}

}  // namespace crosstalk::profile
