// SPDX-License-Identifier: Apache-2.0
// The tables of a profile file. docs/profile-schema.md says what every column means.
#pragma once

#include <cstdint>
#include <string>

namespace crosstalk::profile::schema {

/// In the SQLite header, offset 68: "CTLK". file(1) and the reader recognise a profile by it.
inline constexpr std::uint32_t application_id = 0x43544c4b;
/// In meta('schema_version') and PRAGMA user_version. A reader reads its own version only, as long as none was
/// released.
inline constexpr std::int64_t version = 1;

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
extern const char* const get_threads;
extern const char* const get_modules;
/// The columns that sample_of reads. `measured`: includes table sample_measurement.
[[nodiscard]] std::string get_samples(bool whole, bool measured);
extern const char* const get_watches;
extern const char* const get_watch_measurements;
extern const char* const get_line_probes;
extern const char* const get_watch_words;
extern const char* const get_traps;  // in the order written
extern const char* const get_blocks;
extern const char* const get_shared_mappings;
extern const char* const get_lookaheads;
extern const char* const get_thread_creations;
extern const char* const get_thread_waits;
extern const char* const get_regions;
extern const char* const get_thread_regions;
extern const char* const get_counters;
extern const char* const get_readings;
extern const char* const get_events;
extern const char* const get_call_chains;
extern const char* const get_stacks;
extern const char* const get_messages;
extern const char* const get_kept_files;

}  // namespace crosstalk::profile::schema
