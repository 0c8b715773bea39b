// SPDX-License-Identifier: Apache-2.0
// The tables of a profile file. docs/profile-schema.md says what every column means.
#pragma once

#include <cstdint>
#include <string>

namespace crosstalk::profile::schema {

/// In the SQLite header, offset 68: "CTLK". file(1) and the reader recognise a profile by it.
inline constexpr std::uint32_t application_id = 0x43544c4b;
/// In meta('schema_version') and PRAGMA user_version. A reader reads its own version and older ones.
inline constexpr std::int64_t version = 16;

/// Unit of sample.previous_handler: it saves a byte a sample, and is finer than a handler can be measured.
inline constexpr std::uint32_t handler_unit_ns = 100;

extern const char* const create_tables;

extern const char* const put_meta;
extern const char* const put_process;
extern const char* const put_thread;
extern const char* const put_module;
extern const char* const put_sample;
extern const char* const put_sample_measurement;
extern const char* const put_watch;
extern const char* const put_watch_measurement;
extern const char* const put_line_probe;
extern const char* const put_watch_word;
extern const char* const delete_watch_words;
extern const char* const put_trap;
extern const char* const put_block;
extern const char* const put_shared_mapping;
extern const char* const put_lookahead;
extern const char* const put_thread_creation;
extern const char* const put_thread_wait;
extern const char* const put_region;
extern const char* const put_thread_region;
extern const char* const put_counter;
extern const char* const put_reading;
extern const char* const put_event;
extern const char* const put_call_chain;
extern const char* const put_stack;
extern const char* const put_message;
extern const char* const put_kept_file;

extern const char* const get_meta;
extern const char* const get_processes;
extern const char* const get_processes_before_version_10;
/// For a file of that version.
[[nodiscard]] std::string get_threads(std::int64_t of_version);
extern const char* const get_modules;
extern const char* const get_modules_before_version_16;
extern const char* const get_modules_before_version_8;
/// For a file of that version: the columns that sample_of reads. `measured`: includes table sample_measurement.
[[nodiscard]] std::string get_samples(std::int64_t of_version, bool whole, bool measured);
extern const char* const get_watches;
extern const char* const get_watches_before_version_4;
extern const char* const get_watch_measurements;  // from version 6 on
extern const char* const get_line_probes;         // from version 14 on
extern const char* const get_watch_words;
/// For a file of that version, in the order written.
[[nodiscard]] std::string get_traps(std::int64_t of_version);
extern const char* const get_blocks;
extern const char* const get_shared_mappings;   // from version 3 on
extern const char* const get_lookaheads;        // from version 5 on
extern const char* const get_thread_creations;  // from version 7 on
extern const char* const get_thread_waits;      // from version 11 on
extern const char* const get_regions;           // from version 12 on
extern const char* const get_thread_regions;    // from version 12 on
extern const char* const get_counters;          // from version 13 on
extern const char* const get_readings;          // from version 13 on
extern const char* const get_events;            // from version 9 on
extern const char* const get_call_chains;       // from version 9 on
extern const char* const get_stacks;
extern const char* const get_messages;
extern const char* const get_kept_files;  // from version 16 on

}  // namespace crosstalk::profile::schema
