// SPDX-License-Identifier: Apache-2.0
// The state of a ProfileWriter. Internal to the writer.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "profile/codec.h"
#include "profile/model.h"
#include "profile/schema.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

/// A prepared statement for each kind of row.
struct Statements {
  sqlite::Statement meta, process, thread, module, sample, sample_measurement, watch, watch_measurement, line_probe,
      watch_word, delete_words, trap, block, shared_mapping, lookahead, thread_creation, thread_wait, region,
      thread_region, event, counter, reading, call_chain, stack, message, kept_file;

  [[nodiscard]] Result<void> prepare(const sqlite::Database& database) {
    const std::pair<sqlite::Statement*, const char*> all[] = {
        {&meta, schema::put_meta},
        {&process, schema::put_process},
        {&thread, schema::put_thread},
        {&module, schema::put_module},
        {&sample, schema::put_sample},
        {&sample_measurement, schema::put_sample_measurement},
        {&watch, schema::put_watch},
        {&watch_measurement, schema::put_watch_measurement},
        {&line_probe, schema::put_line_probe},
        {&watch_word, schema::put_watch_word},
        {&delete_words, schema::delete_watch_words},
        {&trap, schema::put_trap},
        {&block, schema::put_block},
        {&shared_mapping, schema::put_shared_mapping},
        {&lookahead, schema::put_lookahead},
        {&thread_creation, schema::put_thread_creation},
        {&region, schema::put_region},
        {&thread_region, schema::put_thread_region},
        {&event, schema::put_event},
        {&counter, schema::put_counter},
        {&reading, schema::put_reading},
        {&call_chain, schema::put_call_chain},
        {&thread_wait, schema::put_thread_wait},
        {&stack, schema::put_stack},
        {&message, schema::put_message},
        {&kept_file, schema::put_kept_file},
    };
    for (const auto& [statement, sql] : all) {
      Result<sqlite::Statement> prepared = database.prepare(sql);
      if (!prepared) {
        return tl::unexpected<Error>(prepared.error());
      }
      *statement = std::move(*prepared);
    }
    return {};
  }
};

inline std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

template <class Value>
void bind_value(sqlite::Statement& statement, const Value& value) {
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

/// The file being written, and the parts of it that are kept in memory.
struct WriterState {
  sqlite::Database database;
  Statements statements;
  StackPacker packer;
  std::string path;
  std::uint64_t time_base_ns = 0;  // zero of `time` columns; fixed by the first session put
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

}  // namespace crosstalk::profile
