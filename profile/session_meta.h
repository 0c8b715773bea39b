// SPDX-License-Identifier: Apache-2.0
// Lists the fields of table `meta` for a session. The writer and the reader share this list.
#pragma once

#include "profile/model.h"

namespace crosstalk::profile {

/// Calls `visit(key, field)` for each of the settings.
template <class Config, class Visitor>
void visit_config(Config& config, Visitor& visit) {
  visit("config.period_ns", config.period_ns);
  visit("config.budget", config.budget);
  visit("config.clock", config.clock);
  visit("config.method", config.method);
  visit("config.partner", config.partner);
  visit("config.watchpoints", config.watchpoints);
  visit("config.follow_children", config.follow_children);
  visit("config.lookahead", config.lookahead);
  visit("config.measure_waits", config.measure_waits);
  visit("config.seed", config.seed);
  visit("config.heap_threshold", config.heap_threshold);
  visit("config.horizon_ns", config.horizon_ns);
  visit("config.stack_bytes", config.stack_bytes);
  visit("config.stacks_per_s", config.stacks_per_s);
  visit("config.board_slots", config.board_slots);
  visit("config.signal_cost_ns", config.signal_cost_ns);
  visit("config.trap_cost_ns", config.trap_cost_ns);
  visit("config.switch_cost_ns", config.switch_cost_ns);
  visit("config.watch_switch_cost_ns", config.watch_switch_cost_ns);
  visit("config.presence_cost_ns", config.presence_cost_ns);
  visit("config.perf_sample_cost_ns", config.perf_sample_cost_ns);
  visit("config.past_presence_cost_ns", config.past_presence_cost_ns);
  visit("config.armed_copy_permille", config.armed_copy_permille);
  visit("config.armed_byte_ps", config.armed_byte_ps);
  visit("config.transfer_call_ns", config.transfer_call_ns);
  visit("config.perf_allowed", config.perf_allowed);
  visit("config.watchpoints_allowed", config.watchpoints_allowed);
  visit("config.timer_allowed", config.timer_allowed);
}

/// Calls `visit(key, field)` for each field; `S` is Session or const Session.
template <class S, class Visitor>
void visit_session(S& session, Visitor&& visit) {
  visit("command", session.command);
  visit("exit_status", session.exit_status);
  visit("begin_ns", session.begin_ns);
  visit("end_ns", session.end_ns);
  visit("begin_unix_ns", session.begin_unix_ns);
  visit("complete", session.complete);
  visit("source", session.source);
  visit("source_choice", session.source_choice);
  visit("method_choice", session.method_choice);
  visit("host", session.host);
  visit("kernel", session.kernel);
  visit("architecture", session.architecture);
  visit("cpu_model", session.cpu_model);
  visit("cpus", session.cpus);
  visit("line_bytes", session.line_bytes);
  visit("topology", session.topology);
  visit("machine", session.machine);
  visit("core.cycle_ps", session.core.cycle_ps);
  visit("core.locked_ps", session.core.locked_ps);
  visit("core.forward_ps", session.core.forward_ps);
  visit("waits.threads", session.waits.threads);
  visit("waits.ran_ns", session.waits.ran_ns);
  visit("waits.waited_ns", session.waits.waited_ns);
  visit("watchpoints.self_test", session.watch_trial.verdict);
  visit("watchpoints.silent", session.watch_trial.silent);
  visit("watchpoints.registers", session.watch_trial.registers);
  visit("watchpoints.why", session.watch_trial.why);
  visit("watchpoints.remedy", session.watch_trial.remedy);
  visit("probes.unreadable", session.skipped_probes.unreadable);
  visit("probes.in_handlers", session.skipped_probes.in_handlers);
  visit("probes.beside_another", session.skipped_probes.beside_another);
  visit("probes.went_on", session.skipped_probes.went_on);
  visit("memory_bytes", session.memory_bytes);
  visit("recorder_cpu_ns", session.recorder_cpu_ns);
  visit("unobserved_cpu_ns", session.unobserved_cpu_ns);
  visit("version", session.version);
  visit_config(session.config, visit);
}

}  // namespace crosstalk::profile
