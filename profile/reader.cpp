// SPDX-License-Identifier: Apache-2.0
#include "profile/reader.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include "profile/batch_queue.h"
#include "profile/codec.h"
#include "profile/column_scan.h"
#include "profile/reader_file.h"
#include "profile/schema.h"
#include "profile/session_meta.h"
#include "profile/thread_numbers.h"
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
constexpr bool is_optional = false;
template <class Value>
constexpr bool is_optional<std::optional<Value>> = true;

template <class Field>
void assign(Field& field, const MetaValue& value) {
  if constexpr (std::is_same_v<Field, std::string>) {
    field = value.text;
  } else if constexpr (is_optional<Field>) {
    if (!value.is_null) {
      field = static_cast<typename Field::value_type>(value.integer);
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
  std::vector<SampledWaitRow> sampled_waits;
  std::vector<RegionRow> regions;
  std::vector<ThreadRegionRow> thread_regions;
  std::vector<EventRow> events;
  std::vector<CounterRow> counters;
  std::vector<MessageRow> messages;
  std::vector<KeptFileRow> kept_files;

  [[nodiscard]] tl::unexpected<Error> corrupt(const std::string& what) const {
    return read_failure(path, ErrorCode::corrupt, what + "; record it again");
  }

  /// Runs `sql` and passes each row to `take`, which returns what is wrong with it: nothing, or "column is value".
  template <class Take>
  [[nodiscard]] Result<void> each_row(const char* table, const std::string& sql, Take&& take) const {
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
      if (const std::string wrong = take(std::as_const(*statement)); !wrong.empty()) {
        return corrupt(std::string("in table ") + table + ", " + wrong);
      }
    }
  }

  /// Passes each row of a kind to `take`, with its scan, by which `take` may reject it. A row's buffers are used again.
  template <class Row, class Take>
  [[nodiscard]] Result<void> each(Take&& take, const std::string& sql = schema::get_rows<Row>()) const {
    Row row{};
    return each_row(table_of<Row>.name, sql, [&](const Statement& statement) {
      ColumnScan scan(statement, bounds);
      visit_row(scan, row);
      take(scan, row);
      return scan.error();
    });
  }
  /// As above, without a scan, and without rows that are not sound.
  template <class Row>
  [[nodiscard]] Result<void> each_sound(const std::function<void(const Row&)>& visit,
                                        const std::string& sql = schema::get_rows<Row>()) const {
    return each<Row>(
        [&](const ColumnScan& scan, const Row& row) {
          if (scan.sound()) {
            visit(row);
          }
        },
        sql);
  }

  template <class Row>
  [[nodiscard]] Result<void> load(std::vector<Row>& rows) const {
    return each<Row>([&rows](ColumnScan& /*scan*/, Row& row) { rows.push_back(std::move(row)); });
  }
  /// Loads rows whose ids have to be `first`, first + 1, ...
  template <class Row>
  [[nodiscard]] Result<void> load_dense(std::vector<Row>& rows, std::size_t first) const {
    return each<Row>([&rows, first](ColumnScan& scan, Row& row) {
      std::uint32_t id = 0;
      if constexpr (requires { row.id.value; }) {
        id = row.id.value;
      } else {
        id = row.id;
      }
      if (id != first + rows.size()) {
        scan.reject("id (expected without gaps)", id);
      }
      rows.push_back(std::move(row));
    });
  }
  /// Passes each row about a watch to `take` with its watch, or null if the opening was lost. Both are in order of the
  /// watch.
  template <class Row, class Take>
  [[nodiscard]] Result<void> each_of_watch(Take&& take) {
    auto watch = watches.begin();
    return each<Row>([&](ColumnScan& scan, const Row& row) {
      while (watch != watches.end() && watch->id < row.watch) {
        ++watch;
      }
      take(scan, row, watch != watches.end() && watch->id == row.watch ? &*watch : nullptr);
    });
  }

  [[nodiscard]] Result<std::uint32_t> count(const char* table) const;
  [[nodiscard]] Result<void> load_meta();
  [[nodiscard]] Result<void> look_for_measurements();
  [[nodiscard]] Result<void> load_watches();
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
  Result<void> result = each_row("meta", schema::get_meta, [&](const Statement& row) {
    // Reads one column in all its forms: SQLite converts.
    MetaValue value;
    value.is_null = row.is_null(1);
    value.real = row.real(1);
    value.integer = row.integer(1);
    value.text = row.text(1);
    meta.emplace(row.text(0), std::move(value));
    return std::string();
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
  const auto take_measurement = [](ColumnScan& /*scan*/, const WatchMeasurement& row, WatchRow* watch) {
    if (watch != nullptr) {
      watch->sample_measurement = row.measurement;
    }
  };
  const auto take_probe = [](ColumnScan& /*scan*/, const LineProbeRow& row, WatchRow* watch) {
    if (watch != nullptr) {
      watch->probe = row.probe;
    }
  };
  const auto take_word = [this](ColumnScan& scan, const WatchWordRow& row, WatchRow* watch) {
    if (watch == nullptr || watch->words.size() != row.index ||
        row.word.offset + row.word.length > session.line_bytes) {
      scan.reject("word", row.index);
      return;
    }
    watch->words.push_back(row.word);
  };
  Result<void> result = load(watches);
  result = result && measured ? each_of_watch<WatchMeasurement>(take_measurement) : result;
  result = result ? each_of_watch<LineProbeRow>(take_probe) : result;
  return result ? each_of_watch<WatchWordRow>(take_word) : result;
}

Result<void> ProfileReader::State::load_regions() {
  const Result<void> result = load_dense(regions, 1);
  bounds.regions = static_cast<std::uint32_t>(regions.size());
  return result ? load(thread_regions) : result;
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
  result = result ? load_dense(processes, 0) : result;
  result = result ? load_dense(threads, 0) : result;
  if (!result) {
    return result;  // threads can be numbered only if all are there
  }
  number_threads();
  result = load(modules);
  result = result ? look_for_measurements() : result;
  result = result ? load_watches() : result;
  result = result ? load(blocks) : result;
  result = result ? load(shared_mappings) : result;
  result = result ? load(thread_creations) : result;
  result = result ? load(thread_waits) : result;
  result = result ? load(sampled_waits) : result;
  result = result ? load_regions() : result;
  result = result ? load_dense(events, 1) : result;
  result = result ? load_dense(counters, 1) : result;
  result = result ? load(messages) : result;
  result = result ? load(kept_files) : result;
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
const std::vector<SampledWaitRow>& ProfileReader::sampled_waits() const { return state_->sampled_waits; }
const std::vector<RegionRow>& ProfileReader::regions() const { return state_->regions; }
const std::vector<ThreadRegionRow>& ProfileReader::thread_regions() const { return state_->thread_regions; }
const std::vector<EventRow>& ProfileReader::events() const { return state_->events; }
const std::vector<CounterRow>& ProfileReader::counters() const { return state_->counters; }
const std::vector<MessageRow>& ProfileReader::messages() const { return state_->messages; }

Result<void> ProfileReader::for_each_sample(const std::function<void(const SampleRow&)>& visit,
                                            SampleParts parts) const {
  std::vector<std::optional<Registers>> last(state_->threads.size());
  const std::string sql = schema::get_samples(parts, state_->measured);
  const auto read = [&](const auto& put) {
    return state_->each_row("sample", sql, [&](const Statement& statement) {
      SampleRow row;
      ColumnScan scan(statement, state_->bounds);
      scan.set_parts(parts, last);
      visit_row(scan, row);
      if (state_->measured && !scan.next_is_null()) {
        SampleMeasurement of;
        visit_rest(scan, of);
        const bool by_clock = of.measurement.source == SourceKind::clock;  // there for its event or its calls
        row.measurement = by_clock ? Measurement{} : of.measurement;
        row.event = of.event;
        row.call_chain = of.call_chain;
      }
      if (scan.sound()) {
        put(row);
      }
      return scan.error();
    });
  };
  return make_and_use<SampleRow>(read, visit);
}

Result<void> ProfileReader::for_each_trapped_watch(
    const std::function<void(std::size_t watch, std::span<const TrapRow> traps)>& visit,
    const std::function<void()>& restart) const {
  const auto read_in_order_of = [&](const std::string& sql, TrapGrouper& grouper) {
    const auto read = [&](const auto& put) { return state_->each_sound<TrapRow>(put, sql); };
    return make_and_use<TrapRow>(read, [&](const TrapRow& row) { grouper.add(row); });
  };
  const std::string sql = schema::get_rows<TrapRow>();  // in the order written
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
  return state_->each_sound(visit);
}

Result<void> ProfileReader::for_each_reading(const std::function<void(const ReadingRow&)>& visit) const {
  return state_->each_sound(visit);
}

Result<void> ProfileReader::for_each_call_chain(const std::function<void(const CallChainRow&)>& visit) const {
  return state_->each_sound(visit);
}

Result<void> ProfileReader::for_each_stack(const std::function<void(const StackRow&)>& visit,
                                           const std::function<bool(StackId)>& wanted) const {
  StackRow row;
  return state_->each_row("stack", schema::get_rows<StackRow>(), [&](const Statement& statement) {
    ColumnScan scan(statement, state_->bounds);
    scan.set_wanted(wanted);
    visit_row(scan, row);
    if (scan.sound() && !scan.left_out()) {
      visit(row);
    }
    return scan.error();
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
