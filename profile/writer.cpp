// SPDX-License-Identifier: Apache-2.0
#include "profile/writer.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "profile/codec.h"
#include "profile/rotate.h"
#include "profile/schema.h"
#include "profile/session_meta.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {
namespace {

using sqlite::Database;
using sqlite::Statement;

// WAL: a killed recorder leaves the committed rows readable. No fsync: a power cut may cost the profile, a
// recorder that waits for the disk would cost samples.
constexpr const char* settings = R"sql(
PRAGMA page_size = 8192;
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -1024;
)sql";

// Only after the tables are made: so the file itself, not its log, says from the start what it is.
constexpr const char* write_a_log = "PRAGMA journal_mode = WAL;";

constexpr const char* leave_one_file = R"sql(
PRAGMA wal_checkpoint(TRUNCATE);
PRAGMA journal_mode = DELETE;
)sql";

struct Statements {
  Statement meta, process, thread, module, sample, sample_measurement, watch, watch_measurement, watch_word,
      delete_words, trap, block, shared_mapping, lookahead, thread_creation, thread_wait, event, call_chain, stack,
      message;

  [[nodiscard]] Result<void> prepare(const Database& database) {
    const std::pair<Statement*, const char*> all[] = {
        {&meta, schema::put_meta},
        {&process, schema::put_process},
        {&thread, schema::put_thread},
        {&module, schema::put_module},
        {&sample, schema::put_sample},
        {&sample_measurement, schema::put_sample_measurement},
        {&watch, schema::put_watch},
        {&watch_measurement, schema::put_watch_measurement},
        {&watch_word, schema::put_watch_word},
        {&delete_words, schema::delete_watch_words},
        {&trap, schema::put_trap},
        {&block, schema::put_block},
        {&shared_mapping, schema::put_shared_mapping},
        {&lookahead, schema::put_lookahead},
        {&thread_creation, schema::put_thread_creation},
        {&event, schema::put_event},
        {&call_chain, schema::put_call_chain},
        {&thread_wait, schema::put_thread_wait},
        {&stack, schema::put_stack},
        {&message, schema::put_message},
    };
    for (const auto& [statement, sql] : all) {
      Result<Statement> prepared = database.prepare(sql);
      if (!prepared) {
        return tl::unexpected<Error>(prepared.error());
      }
      *statement = std::move(*prepared);
    }
    return {};
  }
};

std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

template <class Value>
void bind_value(Statement& statement, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    statement.bind(std::string_view(value));
  } else if constexpr (std::is_same_v<Value, std::optional<int>>) {
    value ? statement.bind(static_cast<std::int64_t>(*value)) : statement.bind_null();
  } else if constexpr (std::is_floating_point_v<Value>) {
    statement.bind(static_cast<double>(value));
  } else {
    statement.bind(static_cast<std::int64_t>(value));  // integers, bool, enumerations
  }
}

Statement& bind_measurement(Statement& put, std::int64_t of, const Measurement& measurement, std::uint64_t weight) {
  put.bind(of).bind(static_cast<std::int64_t>(measurement.source)).bind(static_cast<std::int64_t>(measurement.unit));
  put.bind(as_signed(weight)).bind_unless_zero(measurement.latency_cycles);
  return put.bind_unless_zero(measurement.data_source);
}

/// What a clock's sample lacks: that takes no space in the file.
Result<void> put_measurement(Statement& put, const WatchRow& row) {
  const Measurement& measurement = row.sample_measurement;
  return measurement.source == SourceKind::clock
             ? Result<void>()
             : bind_measurement(put, row.id.value, measurement, measurement.weight).run();
}
Result<void> put_measurement(Statement& put, std::int64_t of, const SampleRow& row) {
  if (row.measurement.source == SourceKind::clock && row.event.value == 0 && row.call_chain.value == 0) {
    return {};
  }
  bind_measurement(put, of, row.measurement, row.weight().value).bind_unless_zero(row.event.value);
  return put.bind_unless_zero(row.call_chain.value).run();
}

/// What the recorder of a session was set to, spent and measured: an imported session had none.
bool is_of_our_recorder(std::string_view key) {
  return key.starts_with("config.") || key.starts_with("waits.") || key == "core.locked_ps" ||
         key == "core.forward_ps" || key == "memory_bytes" || key == "recorder_cpu_ns";
}

}  // namespace

struct ProfileWriter::State {
  Database database;
  Statements statements;
  StackPacker packer;
  std::string path;
  std::uint64_t time_base_ns = 0;  // what `time` columns count from; fixed by the first session put
  bool based = false;
  bool failed = false;
  std::unordered_map<std::uint32_t, Registers> registers;  // by thread: what its next sample's are counted from

  /// Runs `write` in the open transaction, unless an earlier failure has not been retried.
  template <class Write>
  [[nodiscard]] Result<void> guarded(Write&& write) {
    if (failed) {
      return {};
    }
    Result<void> result;
    if (!database.in_transaction()) {
      result = database.execute("BEGIN");
    }
    if (result) {
      result = write();
    }
    if (!result) {
      return give_up(result.error());
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> give_up(const Error& error) {
    failed = true;
    registers.clear();  // rows that are lost are nothing to count from
    if (database.in_transaction()) {
      (void)database.execute("ROLLBACK");  // SQLite may have done so itself: then this fails harmlessly
    }
    return fail(error.code, "cannot write the profile '" + path + "': " + error.message);
  }

  void fix_base(std::uint64_t time_ns) {
    if (!based) {
      time_base_ns = time_ns;
      based = true;
    }
  }

  [[nodiscard]] std::int64_t since_base(std::uint64_t time_ns) {
    fix_base(0);
    return as_signed(time_ns - time_base_ns);
  }

  template <class Value>
  [[nodiscard]] Result<void> put_meta(std::string_view key, const Value& value) {
    statements.meta.bind(key);
    bind_value(statements.meta, value);
    return statements.meta.run();
  }

  [[nodiscard]] Result<void> put_words(const WatchRow& row);
  [[nodiscard]] RegisterSteps steps_to(ThreadId thread, const Registers& registers_now);
};

ProfileWriter::ProfileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProfileWriter::ProfileWriter(ProfileWriter&&) noexcept = default;
ProfileWriter& ProfileWriter::operator=(ProfileWriter&&) noexcept = default;
ProfileWriter::~ProfileWriter() = default;

Result<ProfileWriter> ProfileWriter::create(const std::string& path) {
  const Result<bool> had_one = make_room(path);
  if (!had_one) {
    return tl::unexpected<Error>(had_one.error());
  }
  auto state = std::make_unique<State>();
  state->path = path;
  const auto failure = [&](const Error& error) {
    state.reset();
    undo_make_room(path, *had_one);
    return fail(error.code == ErrorCode::corrupt ? ErrorCode::system : error.code,
                "cannot create the profile '" + path + "': " + error.message + "; choose another file with -o");
  };
  Result<Database> database =
      Database::open(sqlite::file_uri(path, "mode=rwc"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI);
  if (!database) {
    return failure(database.error());
  }
  state->database = std::move(*database);
  Database& db = state->database;
  const std::string identity = "PRAGMA application_id = " + std::to_string(schema::application_id) +
                               "; PRAGMA user_version = " + std::to_string(schema::version) + ";";
  Result<void> result = db.execute(settings);
  result = result ? db.execute("BEGIN") : result;
  result = result ? db.execute(identity.c_str()) : result;
  result = result ? db.execute(schema::create_tables) : result;
  result = result ? state->statements.prepare(db) : result;
  result = result ? state->put_meta("schema_version", schema::version) : result;
  result = result ? state->put_meta("time_base_ns", std::int64_t{0}) : result;
  result = result ? db.execute("COMMIT") : result;
  result = result ? db.execute(write_a_log) : result;
  if (!result) {
    return failure(result.error());
  }
  return ProfileWriter(std::move(state));
}

Result<void> ProfileWriter::put(const Session& session) {
  State& s = *state_;
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

Result<void> ProfileWriter::put_source_choice(const std::string& choice) {
  State& s = *state_;
  return s.guarded([&] { return s.put_meta("source_choice", choice); });
}

Result<void> ProfileWriter::put(const ProcessRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.process;
    put.bind(std::int64_t{row.id.value}).bind(std::int64_t{row.pid}).bind(std::int64_t{row.parent_pid});
    put.bind(std::string_view(row.executable)).bind(std::string_view(row.command));
    put.bind(as_signed(row.begin_ns)).bind_unless_zero(row.end_ns);
    row.exit_status ? put.bind(std::int64_t{*row.exit_status}) : put.bind_null();
    put.bind(std::int64_t{row.after_fork});
    row.modules_of ? put.bind(std::int64_t{row.modules_of->value}) : put.bind_null();
    put.bind_unless_zero(static_cast<std::uint64_t>(row.observation));
    row.unobserved_because.empty() ? put.bind_null() : put.bind(std::string_view(row.unobserved_because));
    return put.run();
  });
}

Result<void> ProfileWriter::put(const ThreadRow& row) {
  State& s = *state_;
  if (row.end_ns != 0) {
    s.registers.erase(row.id.value);  // should a sample follow nevertheless, it is counted from 0
  }
  return s.guarded([&] {
    Statement& put = s.statements.thread;
    put.bind(std::int64_t{row.id.value}).bind(std::int64_t{row.process.value}).bind(std::int64_t{row.tid});
    put.bind(std::string_view(row.name)).bind(as_signed(row.begin_ns)).bind_unless_zero(row.end_ns);
    put.bind_unless_zero(row.stack_low).bind_unless_zero(row.stack_high).bind_unless_zero(row.thread_pointer);
    for (const std::uint64_t total : {row.cpu_ns, row.samples, row.traps, row.armed, row.lost, row.handlers_ns,
                                      row.switches_ns, row.switches, row.handler_samples_ns}) {
      put.bind(as_signed(total));
    }
    put.bind(static_cast<std::int64_t>(row.clock)).bind(std::int64_t{row.period_us});
    return put.bind_unless_zero(row.start_routine).run();
  });
}

Result<void> ProfileWriter::put(const ModuleRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.module;
    put.bind(std::int64_t{row.process.value}).bind(as_signed(row.begin)).bind(as_signed(row.loaded_ns));
    put.bind_unless_zero(row.unloaded_ns).bind(as_signed(row.bias)).bind(as_signed(row.end));
    put.bind(row.tls_offset).bind(as_signed(row.tls_size));
    row.build_id.empty() ? put.bind_null() : put.bind(std::string_view(row.build_id));
    put.bind(std::string_view(row.path)).bind(std::int64_t{row.is_vdso});
    return put.bind_unless_zero(row.content_hash).run();
  });
}

Result<void> ProfileWriter::put(const SampleRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.sample;
    put.bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.ip));
    row.access_ip != 0 ? put.bind(as_signed(row.access_ip - row.ip)) : put.bind_null();
    put.bind_unless_zero(row.address).bind(as_signed(row.cpu_ns));
    put.bind_unless_zero(row.watch.value).bind_unless_zero(row.stack.value);
    put.bind(std::int64_t{row.cpu}).bind_unless_zero(row.width).bind(static_cast<std::int64_t>(row.access));
    put.bind(static_cast<std::int64_t>(row.from)).bind(std::int64_t{row.flags});
    put.bind_unless_zero(row.previous_handler_ns / schema::handler_unit_ns);
    Result<void> result;
    if (row.registers) {
      const RegisterSteps steps = s.steps_to(row.thread, *row.registers);  // a blob is bound by its address
      result = put.bind(steps.bytes()).run();
    } else {
      result = put.bind_null().run();
    }
    return result ? put_measurement(s.statements.sample_measurement, s.database.last_row(), row) : result;
  });
}

RegisterSteps ProfileWriter::State::steps_to(ThreadId thread, const Registers& registers_now) {
  const auto [previous, first] = registers.try_emplace(thread.value);
  const RegisterSteps steps(registers_now, first ? nullptr : &previous->second);
  previous->second = registers_now;
  return steps;
}

Result<void> ProfileWriter::State::put_words(const WatchRow& row) {
  std::int64_t index = 0;
  for (const WatchWord& word : row.words) {
    Statement& put = statements.watch_word;
    put.bind(std::int64_t{row.id.value}).bind(index++).bind(std::int64_t{word.offset});
    Result<void> result = put.bind(std::int64_t{word.length}).bind(double{word.probability}).run();
    if (!result) {
      return result;
    }
  }
  return statements.delete_words.bind(std::int64_t{row.id.value}).bind(index).run();
}

namespace {

/// Binds the last column, and runs.
Result<void> run_with_state(Statement& put, const std::optional<LineState>& state) {
  if (!state) {
    return put.bind_null().run();
  }
  const PackedLineState packed(*state);  // a blob is bound by its address
  return put.bind(packed.bytes()).run();
}

}  // namespace

Result<void> ProfileWriter::put(const WatchRow& row) {
  State& s = *state_;
  return s.guarded([&]() -> Result<void> {
    Statement& put = s.statements.watch;
    put.bind(std::int64_t{row.id.value}).bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns));
    put.bind(as_signed(row.line)).bind(std::int64_t{row.threads});
    put.bind(std::int64_t{row.armed}).bind(std::int64_t{row.suspected}).bind(as_signed(row.horizon_ns));
    put.bind_unless_zero(row.sample_ip);
    row.sample_access_ip != 0 ? put.bind(as_signed(row.sample_access_ip - row.sample_ip)) : put.bind_null();
    put.bind_unless_zero(row.sample_address).bind(as_signed(row.sample_cpu_ns)).bind_unless_zero(row.sample_width);
    put.bind(static_cast<std::int64_t>(row.sample_access)).bind(static_cast<std::int64_t>(row.sample_from));
    put.bind(std::int64_t{row.sample_flags}).bind(std::int64_t{row.sample_cpu});
    put.bind_unless_zero(row.sample_stack.value);
    if (row.close) {
      put.bind(static_cast<std::int64_t>(*row.close)).bind(s.since_base(row.close_ns));
    } else {
      put.bind_null().bind_null();
    }
    Result<void> result = run_with_state(put, row.state);
    result = result ? put_measurement(s.statements.watch_measurement, row) : result;
    return result ? s.put_words(row) : result;
  });
}

Result<void> ProfileWriter::put(const TrapRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    const PackedRegisters registers(row.registers);
    Statement& put = s.statements.trap;
    put.bind(std::int64_t{row.watch.value}).bind(std::int64_t{row.thread.value}).bind(std::int64_t{row.sequence});
    put.bind(s.since_base(row.time_ns)).bind(as_signed(row.ip)).bind(std::int64_t{row.cpu});
    put.bind(std::int64_t{row.word}).bind(std::int64_t{row.write_only}).bind(registers.bytes());
    put.bind_unless_zero(row.stack.value).bind_unless_zero(row.line);
    Registers words;
    if (row.frame) {
      std::copy(row.frame->begin(), row.frame->end(), words.value.begin());
    }
    const PackedRegisters frame(words);
    row.frame ? put.bind(frame.bytes()) : put.bind_null();
    return run_with_state(put, row.state);
  });
}

Result<void> ProfileWriter::put(const BlockRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.block;
    put.bind(std::int64_t{row.process.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.begin));
    put.bind(as_signed(row.bytes)).bind_unless_zero(row.site).bind(static_cast<std::int64_t>(row.kind));
    return put.bind_unless_zero(row.stack.value).run();
  });
}

Result<void> ProfileWriter::put(const SharedMappingRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.shared_mapping;
    put.bind(std::int64_t{row.process.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.begin));
    put.bind(as_signed(row.bytes)).bind(as_signed(row.file_offset)).bind(as_signed(row.device));
    return put.bind(as_signed(row.inode)).bind(std::string_view(row.name)).run();
  });
}

Result<void> ProfileWriter::put(const LookaheadRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.lookahead;
    put.bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.begin));
    put.bind_unless_zero(row.head).bind(std::int64_t{row.instructions}).bind(std::int64_t{row.passages});
    put.bind(std::int64_t{row.cost_ns}).bind(static_cast<std::int64_t>(row.end));
    return put.bind(std::span<const std::uint8_t>(row.way)).run();
  });
}

Result<void> ProfileWriter::put(const ThreadCreationRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.thread_creation;
    put.bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns));
    return put.bind(std::int64_t{row.stack.value}).run();
  });
}

Result<void> ProfileWriter::put(const ThreadWaitRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.thread_wait;
    put.bind(std::int64_t{row.thread.value}).bind(static_cast<std::int64_t>(row.kind)).bind(as_signed(row.site));
    return put.bind(as_signed(row.waited_ns)).bind(as_signed(row.count)).run();
  });
}

Result<void> ProfileWriter::put(const EventRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.event;
    put.bind(std::int64_t{row.id.value}).bind(std::string_view(row.name)).bind(static_cast<std::int64_t>(row.source));
    put.bind(static_cast<std::int64_t>(row.unit)).bind_unless_zero(row.period);
    return put.bind_unless_zero(row.least_latency_cycles).bind(std::int64_t{row.at_access}).run();
  });
}

Result<void> ProfileWriter::put(const CallChainRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    const std::vector<std::uint8_t> packed = pack_call_chain(row.addresses);  // a blob is bound by its address
    Statement& put = s.statements.call_chain;
    return put.bind(std::int64_t{row.id.value}).bind(std::span<const std::uint8_t>(packed)).run();
  });
}

Result<void> ProfileWriter::put(const StackRow& row) {
  State& s = *state_;
  return s.guarded([&]() -> Result<void> {
    const PackedRegisters registers(row.registers);
    const std::span<const std::uint8_t> all(row.bytes);
    const std::span<const std::uint8_t> bytes = all.first(std::min(all.size(), max_stack_bytes));
    const auto packed = s.packer.pack(bytes);
    if (!packed) {
      return fail(ErrorCode::system, "cannot compress a stack: out of memory");
    }
    Statement& put = s.statements.stack;
    put.bind(std::int64_t{row.id.value}).bind(registers.bytes());
    return put.bind(static_cast<std::int64_t>(bytes.size())).bind(*packed).run();
  });
}

Result<void> ProfileWriter::put(const MessageRow& row) {
  State& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.message;
    put.bind(std::string_view(row.code)).bind(std::string_view(row.text)).bind(as_signed(row.count));
    return put.run();
  });
}

Result<void> ProfileWriter::commit() {
  State& s = *state_;
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
  State& s = *state_;
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
