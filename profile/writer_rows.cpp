// SPDX-License-Identifier: Apache-2.0
// The rows of ProfileWriter, table by table.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "profile/codec.h"
#include "profile/schema.h"
#include "profile/sqlite.h"
#include "profile/writer.h"
#include "profile/writer_state.h"

namespace crosstalk::profile {

using sqlite::Statement;

namespace {

Statement& bind_measurement(Statement& put, std::int64_t of, const Measurement& measurement, std::uint64_t weight) {
  put.bind(of).bind(static_cast<std::int64_t>(measurement.source)).bind(static_cast<std::int64_t>(measurement.unit));
  put.bind(as_signed(weight)).bind_unless_zero(measurement.latency_cycles);
  return put.bind_unless_zero(measurement.data_source);
}

/// Puts the measurement that a clock's sample lacks; a clock's takes no space in the file.
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

Result<void> put_probe(Statement& put, const WatchRow& row) {
  return put.bind(std::int64_t{row.id.value})
      .bind(as_signed(row.probe->changed))
      .bind(std::int64_t{row.probe->gap_ns})
      .bind(as_signed(row.probe->value))
      .bind(std::int64_t{row.probe->value_bytes})
      .run();
}

}  // namespace

Result<void> ProfileWriter::put(const ProcessRow& row) {
  WriterState& s = *state_;
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
  WriterState& s = *state_;
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
    return put.bind_unless_zero(row.start_routine).bind_unless_zero(row.ran_ns).bind_unless_zero(row.waited_ns).run();
  });
}

Result<void> ProfileWriter::put(const ModuleRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.module;
    put.bind(std::int64_t{row.process.value}).bind(as_signed(row.begin)).bind(as_signed(row.loaded_ns));
    put.bind_unless_zero(row.unloaded_ns).bind(as_signed(row.bias)).bind(as_signed(row.end));
    put.bind(row.tls_offset).bind(as_signed(row.tls_size));
    row.build_id.empty() ? put.bind_null() : put.bind(std::string_view(row.build_id));
    put.bind(std::string_view(row.path)).bind(std::int64_t{row.is_vdso});
    put.bind_unless_zero(row.content_hash);
    row.file_offset ? put.bind(as_signed(*row.file_offset)) : put.bind_null();
    return put.run();
  });
}

Result<void> ProfileWriter::put(const SampleRow& row) {
  WriterState& s = *state_;
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
      result = put.bind(steps.bytes()).bind_unless_zero(row.region.value).run();
    } else {
      result = put.bind_null().bind_unless_zero(row.region.value).run();
    }
    return result ? put_measurement(s.statements.sample_measurement, s.database.last_row(), row) : result;
  });
}

RegisterSteps WriterState::steps_to(ThreadId thread, const Registers& registers_now) {
  const auto [previous, first] = registers.try_emplace(thread.value);
  const RegisterSteps steps(registers_now, first ? nullptr : &previous->second);
  previous->second = registers_now;
  return steps;
}

Result<void> WriterState::put_words(const WatchRow& row) {
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

/// Binds `state` to the last column, and runs.
Result<void> run_with_state(Statement& put, const std::optional<LineState>& state) {
  if (!state) {
    return put.bind_null().run();
  }
  const PackedLineState packed(*state);  // a blob is bound by its address
  return put.bind(packed.bytes()).run();
}

}  // namespace

Result<void> ProfileWriter::put(const WatchRow& row) {
  WriterState& s = *state_;
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
    result = result && row.probe ? put_probe(s.statements.line_probe, row) : result;
    return result ? s.put_words(row) : result;
  });
}

Result<void> ProfileWriter::put(const TrapRow& row) {
  WriterState& s = *state_;
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
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.block;
    put.bind(std::int64_t{row.process.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.begin));
    put.bind(as_signed(row.bytes)).bind_unless_zero(row.site).bind(static_cast<std::int64_t>(row.kind));
    return put.bind_unless_zero(row.stack.value).run();
  });
}

Result<void> ProfileWriter::put(const SharedMappingRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.shared_mapping;
    put.bind(std::int64_t{row.process.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.begin));
    put.bind(as_signed(row.bytes)).bind(as_signed(row.file_offset)).bind(as_signed(row.device));
    return put.bind(as_signed(row.inode)).bind(std::string_view(row.name)).run();
  });
}

Result<void> ProfileWriter::put(const LookaheadRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.lookahead;
    put.bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.begin));
    put.bind_unless_zero(row.head).bind(std::int64_t{row.instructions}).bind(std::int64_t{row.passages});
    put.bind(std::int64_t{row.cost_ns}).bind(static_cast<std::int64_t>(row.end));
    return put.bind(std::span<const std::uint8_t>(row.branches)).run();
  });
}

Result<void> ProfileWriter::put(const ThreadCreationRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.thread_creation;
    put.bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns));
    return put.bind(std::int64_t{row.stack.value}).run();
  });
}

Result<void> ProfileWriter::put(const ThreadWaitRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.thread_wait;
    put.bind(std::int64_t{row.thread.value}).bind(static_cast<std::int64_t>(row.kind)).bind(as_signed(row.site));
    return put.bind(as_signed(row.waited_ns)).bind(as_signed(row.count)).run();
  });
}

Result<void> ProfileWriter::put(const RegionRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.region;
    put.bind(std::int64_t{row.id.value}).bind_unless_zero(row.parent.value);
    return put.bind(std::string_view(row.name)).run();
  });
}

Result<void> ProfileWriter::put(const ThreadRegionRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.thread_region;
    put.bind(std::int64_t{row.thread.value}).bind(std::int64_t{row.region.value});
    put.bind(as_signed(row.entries)).bind(as_signed(row.elapsed_ns));
    for (const std::uint64_t waited_ns : row.waited_ns) {
      put.bind(as_signed(waited_ns));
    }
    return put.run();
  });
}

Result<void> ProfileWriter::put(const EventRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.event;
    put.bind(std::int64_t{row.id.value}).bind(std::string_view(row.name)).bind(static_cast<std::int64_t>(row.source));
    put.bind(static_cast<std::int64_t>(row.unit)).bind_unless_zero(row.period);
    return put.bind_unless_zero(row.least_latency_cycles).bind(std::int64_t{row.at_access}).run();
  });
}

Result<void> ProfileWriter::put(const CounterRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.counter;
    put.bind(std::int64_t{row.id}).bind(std::int64_t{row.group}).bind(std::string_view(row.name));
    put.bind(std::string_view(row.event)).bind(std::string_view(row.unit));
    return put.bind(static_cast<std::int64_t>(row.quantity)).bind(row.each).run();
  });
}

Result<void> ProfileWriter::put(const ReadingRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    const std::vector<std::uint8_t> packed = pack_counts(row.counts);  // a blob is bound by its address
    Statement& put = s.statements.reading;
    put.bind(std::int64_t{row.thread.value}).bind(s.since_base(row.time_ns)).bind(as_signed(row.ip));
    put.bind(std::int64_t{row.group}).bind(std::int64_t{row.life}).bind(std::int64_t{row.cpu});
    put.bind(as_signed(row.enabled_ns)).bind(as_signed(row.running_ns));
    return put.bind(std::span<const std::uint8_t>(packed)).run();
  });
}

Result<void> ProfileWriter::put(const CallChainRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    const std::vector<std::uint8_t> packed = pack_call_chain(row.addresses);  // a blob is bound by its address
    Statement& put = s.statements.call_chain;
    return put.bind(std::int64_t{row.id.value}).bind(std::span<const std::uint8_t>(packed)).run();
  });
}

Result<void> ProfileWriter::put(const StackRow& row) {
  WriterState& s = *state_;
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

Result<void> ProfileWriter::put(const KeptFileRow& row) {
  WriterState& s = *state_;
  return s.guarded([&]() -> Result<void> {
    const auto packed = s.packer.pack(row.bytes);
    if (!packed) {
      return fail(ErrorCode::system, "cannot compress the copy of a file: out of memory");
    }
    Statement& put = s.statements.kept_file;
    put.bind(std::string_view(row.path)).bind(std::string_view(row.build_id)).bind(as_signed(row.content_hash));
    return put.bind(*packed).run();
  });
}

Result<void> ProfileWriter::put(const MessageRow& row) {
  WriterState& s = *state_;
  return s.guarded([&] {
    Statement& put = s.statements.message;
    put.bind(std::string_view(row.code)).bind(std::string_view(row.text)).bind(as_signed(row.count));
    return put.run();
  });
}

}  // namespace crosstalk::profile
