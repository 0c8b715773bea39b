// SPDX-License-Identifier: Apache-2.0
#include "profile/reader.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "profile/batch_queue.h"
#include "profile/codec.h"
#include "profile/reader_file.h"
#include "profile/reader_rows.h"
#include "profile/schema.h"
#include "profile/session_meta.h"
#include "profile/trap_grouper.h"

namespace crosstalk::profile {
namespace {

using sqlite::Database;
using sqlite::Statement;

/// One value of table meta, in the form in which it is stored.
struct MetaValue {
  bool is_null = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
};
using Meta = std::map<std::string, MetaValue>;

template <class Field>
void assign(Field& field, const MetaValue& value) {
  if constexpr (std::is_same_v<Field, std::string>) {
    field = value.text;
  } else if constexpr (std::is_same_v<Field, std::optional<int>>) {
    if (!value.is_null) {
      field = static_cast<int>(value.integer);
    }
  } else if constexpr (std::is_same_v<Field, bool>) {
    field = value.integer != 0;
  } else if constexpr (std::is_floating_point_v<Field>) {
    field = static_cast<Field>(value.real);
  } else {
    field = static_cast<Field>(value.integer);
  }
}

/// True if `config`'s enumerators exist and its fractions lie within 0..1.
bool sound(const SessionConfig& config) {
  return config.clock <= ClockKind::perf && config.method <= Method::probe && config.partner <= Partner::next_store &&
         config.budget >= 0 && config.budget <= 1;
}

}  // namespace

struct ProfileReader::State {
  std::string path;
  Database database;
  Bounds bounds;
  Session session;
  bool measured = false;  // there are samples of another source than a clock
  std::vector<ProcessRow> processes;
  std::vector<ThreadRow> threads;
  std::vector<ModuleRow> modules;
  std::vector<WatchRow> watches;
  std::vector<BlockRow> blocks;
  std::vector<SharedMappingRow> shared_mappings;
  std::vector<ThreadCreationRow> thread_creations;
  std::vector<ThreadWaitRow> thread_waits;
  std::vector<RegionRow> regions;
  std::vector<ThreadRegionRow> thread_regions;
  std::vector<EventRow> events;
  std::vector<CounterRow> counters;
  std::vector<MessageRow> messages;
  std::vector<KeptFileRow> kept_files;

  [[nodiscard]] tl::unexpected<Error> corrupt(const std::string& what) const {
    return read_failure(path, ErrorCode::corrupt, what + "; record it again");
  }

  /// Runs `sql` and passes each row to `take`, which checks it through its scan.
  template <class Take>
  [[nodiscard]] Result<void> each(const char* table, const char* sql, Take&& take) const {
    Result<Statement> statement = database.prepare(sql);
    if (!statement) {
      return corrupt(std::string("table ") + table + ": " + statement.error().message);
    }
    while (true) {
      const Result<bool> row = statement->step();
      if (!row) {
        return read_failure(path, row.error().code, std::string("table ") + table + ": " + row.error().message);
      }
      if (!*row) {
        return {};
      }
      ColumnScan scan(*statement);
      take(scan);
      if (!scan.sound()) {
        return corrupt(std::string("in table ") + table + ", " + scan.error());
      }
    }
  }

  template <class Row, class Read>
  [[nodiscard]] Result<void> load(const char* table, const char* sql, std::vector<Row>& rows, Read read) const {
    return each(table, sql, [&](ColumnScan& scan) { rows.push_back(read(scan, bounds)); });
  }

  /// Loads rows whose ids have to be 0, 1, 2, ...
  template <class Row, class Read>
  [[nodiscard]] Result<void> load_dense(const char* table, const char* sql, std::vector<Row>& rows, Read read) const {
    return each(table, sql, [&](ColumnScan& scan) {
      rows.push_back(read(scan, bounds));
      if (rows.back().id.value != rows.size() - 1) {
        scan.reject("id (expected without gaps)", rows.back().id.value);
      }
    });
  }

  [[nodiscard]] Result<std::uint32_t> count(const char* table) const;
  [[nodiscard]] Result<void> load_meta();
  [[nodiscard]] Result<void> look_for_measurements();
  [[nodiscard]] Result<void> load_watches();
  [[nodiscard]] Result<void> load_watch_measurements();
  [[nodiscard]] Result<void> load_line_probes();
  [[nodiscard]] Result<void> load_events();
  [[nodiscard]] Result<void> load_counters();
  [[nodiscard]] Result<void> load_regions();
  void number_threads();
  [[nodiscard]] Result<void> load_all();
};

ProfileReader::ProfileReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProfileReader::ProfileReader(ProfileReader&&) noexcept = default;
ProfileReader& ProfileReader::operator=(ProfileReader&&) noexcept = default;
ProfileReader::~ProfileReader() = default;

Result<std::uint32_t> ProfileReader::State::count(const char* table) const {
  const auto rows = database.query_integer(std::string("SELECT count(*) FROM ") + table);
  if (!rows) {
    return corrupt(std::string("table ") + table + ": " + rows.error().message);
  }
  return static_cast<std::uint32_t>(std::min<std::int64_t>(rows->value_or(0), 0xffffffffLL));
}

Result<void> ProfileReader::State::load_meta() {
  Meta meta;
  Result<void> result = each("meta", schema::get_meta, [&](ColumnScan& scan) {
    std::string key = scan.text();
    // Reads one column in all its forms: SQLite converts.
    MetaValue value;
    value.is_null = scan.next_is_null();
    value.real = scan.value_as_real();
    value.integer = scan.value_as_integer();
    value.text = scan.text();
    meta.emplace(std::move(key), std::move(value));
  });
  if (!result) {
    return result;
  }
  const auto stored_version = meta.find("schema_version");
  const auto base = meta.find("time_base_ns");
  if (stored_version == meta.end() || base == meta.end() || stored_version->second.integer < 1) {
    return corrupt("table meta lacks schema_version or time_base_ns");
  }
  if (stored_version->second.integer != schema::version) {
    return other_version(path, stored_version->second.integer);
  }
  bounds.time_base_ns = static_cast<std::uint64_t>(base->second.integer);
  if (const auto source = meta.find("source"); source != meta.end() && source->second.text == imported_source) {
    session.config = no_settings();
  }
  visit_session(session, [&meta](const char* key, auto& field) {
    const auto found = meta.find(key);
    if (found != meta.end()) {
      assign(field, found->second);
    }
  });
  if (!sound(session.config) || session.watch_trial.verdict > TrialVerdict::untestable || session.line_bytes == 0 ||
      (session.line_bytes & (session.line_bytes - 1)) != 0) {
    return corrupt("table meta has a setting out of its range");
  }
  return {};
}

Result<void> ProfileReader::State::look_for_measurements() {
  const Result<std::uint32_t> rows = count("sample_measurement");
  if (!rows) {
    return tl::unexpected<Error>(rows.error());
  }
  measured = *rows > 0;
  return {};
}

Result<void> ProfileReader::State::load_watches() {
  const Result<std::uint32_t> rows = count("watch");
  if (!rows) {
    return tl::unexpected<Error>(rows.error());
  }
  watches.reserve(*rows);  // grown, they would be moved through twice as much fresh memory
  Result<void> result = load("watch", schema::get_watches, watches, watch_of);
  if (!result) {
    return result;
  }
  if (measured) {
    result = load_watch_measurements();
    if (!result) {
      return result;
    }
  }
  result = load_line_probes();
  if (!result) {
    return result;
  }
  auto watch = watches.begin();  // both are in order of the watch
  return each("watch_word", schema::get_watch_words, [&](ColumnScan& scan) {
    const WatchWordOf of = watch_word_of(scan);
    while (watch != watches.end() && watch->id < of.watch) {
      ++watch;
    }
    if (watch == watches.end() || watch->id != of.watch || watch->words.size() != of.index ||
        of.word.offset + of.word.length > session.line_bytes) {
      scan.reject("word", of.index);
      return;
    }
    watch->words.push_back(of.word);
  });
}

/// Leaves out measurements of watches whose opening was lost.
Result<void> ProfileReader::State::load_watch_measurements() {
  auto watch = watches.begin();  // both are in order of the watch
  return each("watch_measurement", schema::get_watch_measurements, [&](ColumnScan& scan) {
    const MeasurementOf of = watch_measurement_of(scan);
    while (watch != watches.end() && watch->id < of.watch) {
      ++watch;
    }
    if (scan.sound() && watch != watches.end() && watch->id == of.watch) {
      watch->sample_measurement = of.measurement;
    }
  });
}

Result<void> ProfileReader::State::load_line_probes() {
  auto watch = watches.begin();  // both are in order of the watch
  return each("line_probe", schema::get_line_probes, [&](ColumnScan& scan) {
    const LineProbeOf of = line_probe_of(scan);
    while (watch != watches.end() && watch->id < of.watch) {
      ++watch;
    }
    if (scan.sound() && watch != watches.end() && watch->id == of.watch) {
      watch->probe = of.probe;
    }
  });
}

Result<void> ProfileReader::State::load_events() {
  return each("event", schema::get_events, [&](ColumnScan& scan) {
    events.push_back(event_of(scan));
    if (events.back().id.value != events.size()) {
      scan.reject("id (expected without gaps)", events.back().id.value);
    }
  });
}

Result<void> ProfileReader::State::load_counters() {
  return each("counter", schema::get_counters, [&](ColumnScan& scan) {
    counters.push_back(counter_of(scan));
    if (counters.back().id != counters.size()) {
      scan.reject("id (expected without gaps)", counters.back().id);
    }
  });
}

Result<void> ProfileReader::State::load_regions() {
  const Result<void> result = each("region", schema::get_regions, [&](ColumnScan& scan) {
    regions.push_back(region_of(scan));
    if (regions.back().id.value != regions.size()) {
      scan.reject("id (expected without gaps)", regions.back().id.value);
    }
  });
  bounds.regions = static_cast<std::uint32_t>(regions.size());
  return result ? load("thread_region", schema::get_thread_regions, thread_regions, thread_region_of) : result;
}

void ProfileReader::State::number_threads() {
  bounds.thread_numbers = numbers_by_creation(threads);
  std::vector<ThreadRow> numbered(threads.size());
  for (ThreadRow& thread : threads) {
    thread.id = ThreadId{bounds.thread_numbers[thread.id.value]};
    const std::uint32_t number = thread.id.value;
    numbered[number] = std::move(thread);
  }
  threads = std::move(numbered);
}

Result<void> ProfileReader::State::load_all() {
  const Result<std::uint32_t> process_count = count("process");
  const Result<std::uint32_t> thread_count = process_count ? count("thread") : process_count;
  if (!thread_count) {
    return tl::unexpected<Error>(thread_count.error());
  }
  bounds.processes = *process_count;
  bounds.threads = *thread_count;
  Result<void> result = load_meta();
  result = result ? load_dense("process", schema::get_processes, processes, process_of) : result;
  result = result ? load_dense("thread", schema::get_threads, threads, thread_of) : result;
  number_threads();
  result = result ? load("module", schema::get_modules, modules, module_of) : result;
  result = result ? look_for_measurements() : result;
  result = result ? load_watches() : result;
  result = result ? load("block", schema::get_blocks, blocks, block_of) : result;
  result = result ? load("shared_mapping", schema::get_shared_mappings, shared_mappings, shared_mapping_of) : result;
  result =
      result ? load("thread_creation", schema::get_thread_creations, thread_creations, thread_creation_of) : result;
  result = result ? load("thread_wait", schema::get_thread_waits, thread_waits, thread_wait_of) : result;
  result = result ? load_regions() : result;
  result = result ? load_events() : result;
  result = result ? load_counters() : result;
  result = result
               ? each("message", schema::get_messages, [&](ColumnScan& scan) { messages.push_back(message_of(scan)); })
               : result;
  result = result ? load("kept_file", schema::get_kept_files, kept_files, kept_file_of) : result;
  std::stable_sort(modules.begin(), modules.end(), [](const ModuleRow& a, const ModuleRow& b) {
    return std::tie(a.process, a.loaded_ns, a.begin) < std::tie(b.process, b.loaded_ns, b.begin);
  });
  std::stable_sort(blocks.begin(), blocks.end(), [](const BlockRow& a, const BlockRow& b) {
    return std::tie(a.process, a.time_ns) < std::tie(b.process, b.time_ns);
  });
  std::stable_sort(shared_mappings.begin(), shared_mappings.end(),
                   [](const SharedMappingRow& a, const SharedMappingRow& b) {
                     return std::tie(a.process, a.time_ns) < std::tie(b.process, b.time_ns);
                   });
  return result;
}

bool is_profile(const std::string& path) { return has_profile_header(path); }

Result<ProfileReader> ProfileReader::open(const std::string& path) {
  Result<Database> database = open_profile_file(path);
  if (!database) {
    return tl::unexpected<Error>(database.error());
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->database = std::move(*database);
  const Result<void> result = state->load_all();
  if (!result) {
    return tl::unexpected<Error>(result.error());
  }
  return ProfileReader(std::move(state));
}

const Session& ProfileReader::session() const { return state_->session; }
const std::vector<ProcessRow>& ProfileReader::processes() const { return state_->processes; }
const std::vector<ThreadRow>& ProfileReader::threads() const { return state_->threads; }
const std::vector<ModuleRow>& ProfileReader::modules() const { return state_->modules; }
const std::vector<WatchRow>& ProfileReader::watches() const { return state_->watches; }
const std::vector<BlockRow>& ProfileReader::blocks() const { return state_->blocks; }
const std::vector<SharedMappingRow>& ProfileReader::shared_mappings() const { return state_->shared_mappings; }
const std::vector<ThreadCreationRow>& ProfileReader::thread_creations() const { return state_->thread_creations; }
const std::vector<ThreadWaitRow>& ProfileReader::thread_waits() const { return state_->thread_waits; }
const std::vector<RegionRow>& ProfileReader::regions() const { return state_->regions; }
const std::vector<ThreadRegionRow>& ProfileReader::thread_regions() const { return state_->thread_regions; }
const std::vector<EventRow>& ProfileReader::events() const { return state_->events; }
const std::vector<CounterRow>& ProfileReader::counters() const { return state_->counters; }
const std::vector<MessageRow>& ProfileReader::messages() const { return state_->messages; }

Result<void> ProfileReader::for_each_sample(const std::function<void(const SampleRow&)>& visit,
                                            SampleParts parts) const {
  std::vector<std::optional<Registers>> last(state_->threads.size());
  const std::string sql = schema::get_samples(parts == SampleParts::all, state_->measured);
  const auto read = [&](const auto& put) {
    return state_->each("sample", sql.c_str(), [&](ColumnScan& scan) {
      const SampleRow row = sample_of(scan, state_->bounds, {parts, state_->measured}, last);
      if (scan.sound()) {
        put(row);
      }
    });
  };
  return make_and_use<SampleRow>(read, visit);
}

Result<void> ProfileReader::for_each_trapped_watch(
    const std::function<void(std::size_t watch, std::span<const TrapRow> traps)>& visit,
    const std::function<void()>& restart) const {
  const auto read_in_order_of = [&](const std::string& sql, TrapGrouper& grouper) {
    const auto read = [&](const auto& put) {
      return state_->each("trap", sql.c_str(), [&](ColumnScan& scan) {
        const TrapRow row = trap_of(scan, state_->bounds);
        if (scan.sound()) {
          put(row);
        }
      });
    };
    return make_and_use<TrapRow>(read, [&](const TrapRow& row) { grouper.add(row); });
  };
  const std::string sql = schema::get_traps;
  TrapGrouper grouper(state_->watches, visit);
  Result<void> result = read_in_order_of(sql, grouper);
  if (result && grouper.finish()) {
    return result;
  }
  if (result) {
    restart();
    TrapGrouper ordered(state_->watches, visit);
    result = read_in_order_of(sql + " ORDER BY watch, sequence", ordered);
    (void)ordered.finish();
  }
  return result;
}

Result<void> ProfileReader::for_each_lookahead(const std::function<void(const LookaheadRow&)>& visit) const {
  LookaheadRow row;
  return state_->each("lookahead", schema::get_lookaheads, [&](ColumnScan& scan) {
    read_lookahead(scan, state_->bounds, row);
    if (scan.sound()) {
      visit(row);
    }
  });
}

Result<void> ProfileReader::for_each_reading(const std::function<void(const ReadingRow&)>& visit) const {
  ReadingRow row;
  return state_->each("reading", schema::get_readings, [&](ColumnScan& scan) {
    read_reading(scan, state_->bounds, row);
    if (scan.sound()) {
      visit(row);
    }
  });
}

Result<void> ProfileReader::for_each_call_chain(const std::function<void(const CallChainRow&)>& visit) const {
  CallChainRow row;
  return state_->each("call_chain", schema::get_call_chains, [&](ColumnScan& scan) {
    read_call_chain(scan, row);
    if (scan.sound()) {
      visit(row);
    }
  });
}

Result<void> ProfileReader::for_each_stack(const std::function<void(const StackRow&)>& visit,
                                           const std::function<bool(StackId)>& wanted) const {
  StackRow row;
  return state_->each("stack", schema::get_stacks, [&](ColumnScan& scan) {
    row.id = stack_id_of(scan);
    if (!scan.sound() || (wanted && !wanted(row.id))) {
      return;
    }
    read_stack(scan, row);
    if (scan.sound()) {
      visit(row);
    }
  });
}

std::optional<std::vector<std::uint8_t>> ProfileReader::kept_file(const std::string& path, const std::string& build_id,
                                                                  std::uint64_t content_hash) const {
  for (const KeptFileRow& row : state_->kept_files) {  // packed, as they are stored
    std::vector<std::uint8_t> bytes;
    if (row.path == path && row.build_id == build_id && row.content_hash == content_hash &&
        unpack_bytes(row.bytes, bytes, max_kept_file_bytes)) {
      return bytes;
    }
  }
  return std::nullopt;
}

}  // namespace crosstalk::profile
