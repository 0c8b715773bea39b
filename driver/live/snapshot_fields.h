// SPDX-License-Identifier: Apache-2.0
// The names of a snapshot's fields in the stream "crosstalk.top/1", each once, for its writer and its reader.
#pragma once

#include <concepts>
#include <type_traits>

#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

template <class Given, class Row>
concept Like = std::same_as<std::remove_const_t<Given>, Row>;

// Calls `field(name, value)` for each field of `row`.

void each_field(Like<Exchange> auto& row, auto& field) {
  field("cost_s", row.cost_s);
  field("gain_s", row.gain_s);
  field("gain_most_s", row.gain_most_s);
  field("latest_cost_s", row.latest_cost_s);
  field("seen", row.seen);
  field("latest_seen", row.latest_seen);
}

void each_field(Like<PairShare> auto& row, auto& field) {
  field("producer", row.producer);
  field("consumer", row.consumer);
  field("cost_s", row.cost_s);
  field("seen", row.seen);
}

void each_field(Like<ThreadRow> auto& row, auto& field) {
  field("index", row.index);
  field("pid", row.pid);
  field("tid", row.tid);
  field("name", row.name);
  field("cpu_s", row.cpu_s);
  field("latest_cpu_s", row.latest_cpu_s);
  field("communication_s", row.communication_s);
}

void each_field(Like<CellRow> auto& row, auto& field) {
  field("producer", row.producer);
  field("consumer", row.consumer);
  each_field(row.exchange, field);
  field("true_cost_s", row.true_cost_s);
  field("false_cost_s", row.false_cost_s);
}

void each_field(Like<LineRow> auto& row, auto& field) {
  field("file", row.file);
  field("line", row.line);
  field("function", row.function);
  field("through", row.through);
  field("module", row.module);
  field("role", row.role);
  field("object", row.object);
  each_field(row.exchange, field);
  field("pairs", row.pairs);
}

void each_field(Like<PlaceRow> auto& row, auto& field) {
  field("file", row.file);
  field("line", row.line);
  field("function", row.function);
}

void each_field(Like<ObjectRow> auto& row, auto& field) {
  field("name", row.name);
  field("label", row.label);
  field("kind", row.kind);
  field("sharing", row.sharing);
  each_field(row.exchange, field);
  field("lines", row.lines);
  field("pairs", row.pairs);
}

void each_field(Like<ThreadTime> auto& row, auto& field) {
  field("thread", row.thread);
  field("cpu_s", row.cpu_s);
}

void each_field(Like<LoopRow> auto& row, auto& field) {
  field("id", row.id);
  field("function", row.function);
  field("file", row.file);
  field("line_begin", row.line_begin);
  field("line_end", row.line_end);
  field("depth", row.depth);
  field("self_s", row.self_s);
  field("cpu_s", row.cpu_s);
  field("latest_cpu_s", row.latest_cpu_s);
  field("share", row.share);
  field("class", row.busy_class);
  field("samples", row.samples);
  field("threads", row.threads);
}

void each_field(Like<FindingRow> auto& row, auto& field) {
  field("sentence", row.sentence);
  field("kind", row.kind);
  field("cost_s", row.cost_s);
  field("gain_s", row.gain_s);
  field("gain_most_s", row.gain_most_s);
  field("object", row.object);
  field("producer", row.producer);
  field("consumer", row.consumer);
  field("advice", row.advice);
}

void each_field(Like<CodeRow> auto& row, auto& field) {
  field("file", row.file);
  field("line", row.line);
  field("function", row.function);
  field("self_s", row.self_s);
}

void each_field(Like<Overhead> auto& row, auto& field) {
  field("fraction", row.fraction);
  field("recorder_cpu_s", row.recorder_cpu_s);
  field("producer_cpu_s", row.producer_cpu_s);
  field("budget", row.budget);
}

void each_field(Like<Losses> auto& row, auto& field) {
  field("records", row.records);
  field("unread_threads", row.unread_threads);
}

void each_field(Like<WarningRow> auto& row, auto& field) {
  field("code", row.code);
  field("message", row.message);
}

void each_field(Like<Snapshot> auto& row, auto& field) {
  field("sequence", row.sequence);
  field("time_unix_s", row.time_unix_s);
  field("window_s", row.window_s);
  field("latest_s", row.latest_s);
  field("refresh_s", row.refresh_s);
  field("command", row.command);
  field("pids", row.pids);
  field("cpu_s", row.cpu_s);
  field("latest_cpu_s", row.latest_cpu_s);
  field("processors", row.processors);
  field("latest_processors", row.latest_processors);
  field("source", row.source);
  field("method", row.method);
  field("watching", row.watching);
  field("overhead", row.overhead);
  field("losses", row.losses);
  field("warnings", row.warnings);
  field("threads", row.threads);
  field("cells", row.cells);
  field("lines", row.lines);
  field("objects", row.objects);
  field("loops", row.loops);
  field("findings", row.findings);
  field("code", row.code);
}

}  // namespace crosstalk::driver::live
