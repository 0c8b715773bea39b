// SPDX-License-Identifier: Apache-2.0
#include "profile/schema.h"

namespace crosstalk::profile::schema {

const char* const create_tables = R"sql(
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE process(
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent_pid INTEGER NOT NULL, executable TEXT NOT NULL,
  command TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER, exit_status INTEGER,
  after_fork INTEGER NOT NULL, modules_of INTEGER, observation INTEGER, unobserved_because TEXT);
CREATE TABLE thread(
  id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER, stack_low INTEGER, stack_high INTEGER, thread_pointer INTEGER,
  cpu_ns INTEGER NOT NULL, samples INTEGER NOT NULL, traps INTEGER NOT NULL, armed INTEGER NOT NULL,
  lost INTEGER NOT NULL, handlers_ns INTEGER NOT NULL, switches_ns INTEGER NOT NULL, switches INTEGER NOT NULL,
  handler_samples_ns INTEGER NOT NULL, clock INTEGER NOT NULL, period_us INTEGER NOT NULL, start_routine INTEGER,
  ran_ns INTEGER, waited_ns INTEGER);
CREATE TABLE module(
  process INTEGER NOT NULL, begin INTEGER NOT NULL, loaded_ns INTEGER NOT NULL, unloaded_ns INTEGER,
  bias INTEGER NOT NULL, end INTEGER NOT NULL, tls_offset INTEGER NOT NULL, tls_size INTEGER NOT NULL,
  build_id TEXT, path TEXT NOT NULL, is_vdso INTEGER NOT NULL, content_hash INTEGER, file_offset INTEGER,
  PRIMARY KEY(process, begin, loaded_ns)) WITHOUT ROWID;
CREATE TABLE sample(
  thread INTEGER NOT NULL, time INTEGER NOT NULL, ip INTEGER NOT NULL, access_offset INTEGER, address INTEGER,
  cpu_ns INTEGER NOT NULL, watch INTEGER, stack INTEGER, cpu INTEGER NOT NULL, width INTEGER,
  access INTEGER NOT NULL, origin INTEGER NOT NULL, flags INTEGER NOT NULL, previous_handler INTEGER, registers BLOB,
  region INTEGER);
CREATE TABLE sample_measurement(
  sample INTEGER PRIMARY KEY, source INTEGER NOT NULL, unit INTEGER NOT NULL, weight INTEGER NOT NULL,
  latency_cycles INTEGER, data_source INTEGER, event INTEGER, call_chain INTEGER);
CREATE TABLE event(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, source INTEGER NOT NULL, unit INTEGER NOT NULL, period INTEGER,
  least_latency_cycles INTEGER, at_access INTEGER NOT NULL);
CREATE TABLE call_chain(id INTEGER PRIMARY KEY, addresses BLOB NOT NULL);
CREATE TABLE watch(
  id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, time INTEGER NOT NULL, line INTEGER NOT NULL,
  threads INTEGER NOT NULL, armed INTEGER NOT NULL, suspected INTEGER NOT NULL,
  horizon_ns INTEGER NOT NULL, sample_ip INTEGER, sample_access_offset INTEGER, sample_address INTEGER,
  sample_cpu_ns INTEGER NOT NULL, sample_width INTEGER, sample_access INTEGER NOT NULL,
  sample_origin INTEGER NOT NULL, sample_flags INTEGER NOT NULL, sample_cpu INTEGER NOT NULL,
  sample_stack INTEGER, close INTEGER, close_time INTEGER, state BLOB);
CREATE TABLE watch_measurement(
  watch INTEGER PRIMARY KEY, source INTEGER NOT NULL, unit INTEGER NOT NULL, weight INTEGER NOT NULL,
  latency_cycles INTEGER, data_source INTEGER);
CREATE TABLE line_probe(
  watch INTEGER PRIMARY KEY, changed INTEGER NOT NULL, gap_ns INTEGER NOT NULL, value INTEGER NOT NULL,
  value_bytes INTEGER NOT NULL);
CREATE TABLE watch_word(
  watch INTEGER NOT NULL, word INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
  probability REAL NOT NULL, PRIMARY KEY(watch, word)) WITHOUT ROWID;
CREATE TABLE trap(
  watch INTEGER NOT NULL, thread INTEGER NOT NULL, sequence INTEGER NOT NULL, time INTEGER NOT NULL,
  ip INTEGER NOT NULL, cpu INTEGER NOT NULL, word INTEGER NOT NULL, write_only INTEGER NOT NULL,
  registers BLOB NOT NULL, stack INTEGER, line INTEGER, frame BLOB, state BLOB);
CREATE TABLE block(
  process INTEGER NOT NULL, time INTEGER NOT NULL, begin INTEGER NOT NULL, bytes INTEGER NOT NULL,
  site INTEGER, kind INTEGER NOT NULL, stack INTEGER);
CREATE TABLE shared_mapping(
  process INTEGER NOT NULL, time INTEGER NOT NULL, begin INTEGER NOT NULL, bytes INTEGER NOT NULL,
  file_offset INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE lookahead(
  thread INTEGER NOT NULL, time INTEGER NOT NULL, begin INTEGER NOT NULL, head INTEGER,
  instructions INTEGER NOT NULL, passages INTEGER NOT NULL, cost_ns INTEGER NOT NULL, end INTEGER NOT NULL,
  branches BLOB NOT NULL);
CREATE TABLE thread_creation(thread INTEGER NOT NULL, time INTEGER NOT NULL, stack INTEGER NOT NULL);
CREATE TABLE thread_wait(
  thread INTEGER NOT NULL, kind INTEGER NOT NULL, site INTEGER NOT NULL, waited_ns INTEGER NOT NULL,
  count INTEGER NOT NULL, PRIMARY KEY(thread, kind, site)) WITHOUT ROWID;
CREATE TABLE region(id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL);
CREATE TABLE thread_region(
  thread INTEGER NOT NULL, region INTEGER NOT NULL, entries INTEGER NOT NULL, elapsed_ns INTEGER NOT NULL,
  lock_ns INTEGER NOT NULL, barrier_ns INTEGER NOT NULL, condition_ns INTEGER NOT NULL,
  PRIMARY KEY(thread, region)) WITHOUT ROWID;
CREATE TABLE counter(
  id INTEGER PRIMARY KEY, group_number INTEGER NOT NULL, name TEXT NOT NULL, event TEXT NOT NULL, unit TEXT NOT NULL,
  quantity INTEGER NOT NULL, each REAL NOT NULL);
CREATE TABLE reading(
  thread INTEGER NOT NULL, time INTEGER NOT NULL, ip INTEGER NOT NULL, group_number INTEGER NOT NULL,
  life INTEGER NOT NULL, cpu INTEGER NOT NULL, enabled_ns INTEGER NOT NULL, running_ns INTEGER NOT NULL,
  counts BLOB NOT NULL);
CREATE TABLE stack(id INTEGER PRIMARY KEY, registers BLOB NOT NULL, size INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE kept_file(
  path TEXT NOT NULL, build_id TEXT NOT NULL, content_hash INTEGER NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY(path, build_id, content_hash));
CREATE TABLE message(
  code TEXT NOT NULL, text TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(code, text)) WITHOUT ROWID;
)sql";

const char* const put_meta = "INSERT OR REPLACE INTO meta(key, value) VALUES(?,?)";
const char* const put_process = "INSERT OR REPLACE INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";
const char* const put_thread = "INSERT OR REPLACE INTO thread VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
const char* const put_module = "INSERT OR REPLACE INTO module VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)";
const char* const put_sample = "INSERT INTO sample VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
const char* const put_sample_measurement = "INSERT INTO sample_measurement VALUES(?,?,?,?,?,?,?,?)";
const char* const put_watch = "INSERT OR REPLACE INTO watch VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
const char* const put_watch_measurement = "INSERT OR REPLACE INTO watch_measurement VALUES(?,?,?,?,?,?)";
const char* const put_line_probe = "INSERT OR REPLACE INTO line_probe VALUES(?,?,?,?,?)";
const char* const put_watch_word = "INSERT OR REPLACE INTO watch_word VALUES(?,?,?,?,?)";
const char* const delete_watch_words = "DELETE FROM watch_word WHERE watch = ? AND word >= ?";
const char* const put_trap = "INSERT INTO trap VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)";
const char* const put_block = "INSERT INTO block VALUES(?,?,?,?,?,?,?)";
const char* const put_shared_mapping = "INSERT INTO shared_mapping VALUES(?,?,?,?,?,?,?,?)";
const char* const put_lookahead = "INSERT INTO lookahead VALUES(?,?,?,?,?,?,?,?,?)";
const char* const put_thread_creation = "INSERT INTO thread_creation VALUES(?,?,?)";
const char* const put_thread_wait = "INSERT OR REPLACE INTO thread_wait VALUES(?,?,?,?,?)";
const char* const put_region = "INSERT OR REPLACE INTO region VALUES(?,?,?)";
const char* const put_thread_region = "INSERT OR REPLACE INTO thread_region VALUES(?,?,?,?,?,?,?)";
const char* const put_counter = "INSERT OR REPLACE INTO counter VALUES(?,?,?,?,?,?,?)";
const char* const put_reading = "INSERT INTO reading VALUES(?,?,?,?,?,?,?,?,?)";
const char* const put_event = "INSERT OR REPLACE INTO event VALUES(?,?,?,?,?,?,?)";
const char* const put_call_chain = "INSERT INTO call_chain VALUES(?,?)";
const char* const put_stack = "INSERT INTO stack VALUES(?,?,?,?)";
const char* const put_message =
    "INSERT INTO message VALUES(?,?,?) ON CONFLICT(code, text) DO UPDATE SET count = count + excluded.count";

const char* const put_kept_file = "INSERT OR REPLACE INTO kept_file VALUES(?,?,?,?)";

const char* const get_meta = "SELECT key, value FROM meta";
const char* const get_processes =
    "SELECT id, pid, parent_pid, executable, command, begin_ns, end_ns, exit_status, after_fork, modules_of, "
    "observation, unobserved_because FROM process ORDER BY id";
const char* const get_threads =
    "SELECT id, process, tid, name, begin_ns, end_ns, stack_low, stack_high, thread_pointer, cpu_ns, samples, "
    "traps, armed, lost, handlers_ns, switches_ns, switches, handler_samples_ns, clock, period_us, start_routine, "
    "ran_ns, waited_ns FROM thread ORDER BY id";
const char* const get_modules =
    "SELECT process, begin, loaded_ns, unloaded_ns, bias, end, tls_offset, tls_size, build_id, path, is_vdso, "
    "content_hash, file_offset FROM module";
std::string get_samples(bool whole, bool measured) {
  return std::string(
             "SELECT thread, time, ip, access_offset, address, cpu_ns, cpu, width, access, flags, registers, ") +
         "region" + (whole ? ", watch, stack, origin, previous_handler" : "") +
         (measured ? ", source, unit, weight, latency_cycles, data_source, event, call_chain FROM sample LEFT JOIN "
                     "sample_measurement ON sample_measurement.sample = sample.rowid"
                   : " FROM sample") +
         " ORDER BY sample.rowid";
}
const char* const get_watches =
    "SELECT id, thread, time, line, threads, armed, suspected, horizon_ns, sample_ip, "
    "sample_access_offset, sample_address, sample_cpu_ns, sample_width, sample_access, sample_origin, "
    "sample_flags, sample_cpu, sample_stack, close, close_time, state FROM watch ORDER BY id";
const char* const get_watch_measurements =
    "SELECT watch, source, unit, weight, latency_cycles, data_source FROM watch_measurement ORDER BY watch";
const char* const get_line_probes = "SELECT watch, changed, gap_ns, value, value_bytes FROM line_probe ORDER BY watch";
const char* const get_watch_words =
    "SELECT watch, word, offset, length, probability FROM watch_word ORDER BY watch, word";
const char* const get_traps =
    "SELECT watch, thread, sequence, time, ip, cpu, word, write_only, registers, stack, line, frame, state FROM trap";
const char* const get_blocks = "SELECT process, time, begin, bytes, site, kind, stack FROM block";
const char* const get_shared_mappings =
    "SELECT process, time, begin, bytes, file_offset, device, inode, name FROM shared_mapping";
const char* const get_lookaheads =
    "SELECT thread, time, begin, head, instructions, passages, cost_ns, end, branches FROM lookahead ORDER BY rowid";
const char* const get_thread_creations = "SELECT thread, time, stack FROM thread_creation ORDER BY rowid";
const char* const get_thread_waits =
    "SELECT thread, kind, site, waited_ns, count FROM thread_wait ORDER BY thread, kind, site";
const char* const get_regions = "SELECT id, parent, name FROM region ORDER BY id";
const char* const get_thread_regions =
    "SELECT thread, region, entries, elapsed_ns, lock_ns, barrier_ns, condition_ns FROM thread_region "
    "ORDER BY thread, region";
const char* const get_counters = "SELECT id, group_number, name, event, unit, quantity, each FROM counter ORDER BY id";
const char* const get_readings =
    "SELECT thread, time, ip, group_number, life, cpu, enabled_ns, running_ns, counts FROM reading ORDER BY rowid";
const char* const get_events =
    "SELECT id, name, source, unit, period, least_latency_cycles, at_access FROM event ORDER BY id";
const char* const get_call_chains = "SELECT id, addresses FROM call_chain ORDER BY id";
const char* const get_stacks = "SELECT id, registers, size, bytes FROM stack ORDER BY id";
const char* const get_kept_files = "SELECT path, build_id, content_hash, bytes FROM kept_file";
const char* const get_messages = "SELECT code, text, count FROM message";

}  // namespace crosstalk::profile::schema
