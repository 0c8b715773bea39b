// SPDX-License-Identifier: Apache-2.0
// The order of work: watches and traps become timelines; samples are streamed once, against what the timelines made
// interesting; stacks are streamed once, for what is needed of them; then everything is filed and named.
#include "attribution/analysis.h"

#include <algorithm>
#include <optional>
#include <span>

#include "attribution/brief_threads.h"
#include "attribution/busy/loop_busy.h"
#include "attribution/busy/thread_waits.h"
#include "attribution/busy/wait_places.h"
#include "attribution/code/function_code.h"
#include "attribution/counts/communication_counts.h"
#include "attribution/counts/trap_index.h"
#include "attribution/estimate/communication.h"
#include "attribution/estimate/estimator.h"
#include "attribution/estimate/gain.h"
#include "attribution/estimate/strata.h"
#include "attribution/findings.h"
#include "attribution/gain_limits.h"
#include "attribution/jit_hint.h"
#include "attribution/loops/code_time.h"
#include "attribution/loops/loop_progress.h"
#include "attribution/loops/loop_rates.h"
#include "attribution/memory/memory_samples.h"
#include "attribution/memory/memory_view.h"
#include "attribution/objects/data_objects.h"
#include "attribution/objects/near_callers.h"
#include "attribution/objects/program_view.h"
#include "attribution/objects/symbolized_map.h"
#include "attribution/overview.h"
#include "attribution/processor_times.h"
#include "attribution/sentences.h"
#include "attribution/start_routines.h"
#include "attribution/timeline/address_space.h"
#include "attribution/timeline/ownership_timeline.h"
#include "attribution/timeline/probe_effect.h"
#include "attribution/timeline/sample_digest.h"
#include "attribution/timeline/third_parties.h"
#include "base/concurrently.h"

namespace crosstalk::attribution {
namespace {

constexpr double ns_per_s = 1e9;

/// Was the line accessed by another thread than the sampled one?
bool visited(const profile::WatchRow& watch, const OwnershipTimeline& timeline) {
  return std::any_of(timeline.accesses.begin(), timeline.accesses.end(),
                     [&](const AccessPoint& point) { return point.thread != watch.thread; });
}

/// What the traps tell.
struct Told {
  std::vector<OwnershipTimeline> timelines;  // by watch; what one without visitors saw is not kept
  TrapIndex traps;
};

/// Reads the traps once, and keeps of each what is needed later: they are most of the profile of a program that does
/// nothing but communicate.
Result<Told> tell(const profile::ProfileReader& profile, const ProgramView& view, StackTable& stacks) {
  const AccessLookup lookup = [&](Moment moment, std::uint64_t ip) { return view.access_before(moment, ip); };
  NearCallers near(view, stacks);
  const CallersLookup callers = [&](const profile::TrapRow& trap) { return near.of(trap); };
  const std::vector<profile::WatchRow>& watches = profile.watches();
  Told told;
  const auto restart = [&] {
    told.timelines.assign(watches.size(), {});
    told.traps = {};
  };
  restart();
  const auto take = [&](std::size_t watch, std::span<const profile::TrapRow> traps) {
    OwnershipTimeline timeline = ownership_timeline(watches[watch], traps, view.threads(), lookup, callers);
    prefer_watched_stores(timeline.communications);
    timeline.communications.shrink_to_fit();
    timeline.invalidations.shrink_to_fit();
    if (!visited(watches[watch], timeline)) {
      std::vector<AccessPoint>().swap(timeline.accesses);
    }
    told.timelines[watch] = std::move(timeline);
    told.traps.add(static_cast<std::uint32_t>(watch), traps);
  };
  if (auto read = profile.for_each_trapped_watch(take, restart); !read) {
    return tl::unexpected<Error>(read.error());
  }
  told.traps.shrink();
  return told;
}

/// The lines that saw communication, the stacks of both sides, and those of the blocks there.
void find_interesting(std::span<const OwnershipTimeline> timelines, const ProgramView& view, const BlockIndex& blocks,
                      LineSet& lines, StackTable& stacks) {
  for (const OwnershipTimeline& timeline : timelines) {
    for (const SeenCommunication& seen : timeline.communications) {
      for (const AccessPoint& point : {seen.producer, seen.consumer}) {
        const Moment moment = view.moment(point.thread, point.time_ns);
        lines.add(moment.process, point.line);
        stacks.want(point.stack, point.thread, moment);
        if (const auto* block = blocks.find(moment, point.line + point.bytes.first())) {
          stacks.want(block->stack, moment);
        }
      }
    }
  }
}

/// The stacks of those who made threads: what they share with them lies there.
void want_creations(const profile::ProfileReader& profile, const ProgramView& view, StackTable& stacks) {
  constexpr std::size_t most = 2000;  // of a program that makes threads all the time, some
  const auto& creations = profile.thread_creations();
  const std::size_t step = creations.size() / most + 1;
  for (std::size_t i = 0; i < creations.size(); i += step) {
    const profile::ThreadCreationRow& creation = creations[i];
    stacks.want(creation.stack, creation.thread, view.moment(creation.thread, creation.time_ns));
  }
}

/// Reads the stacks that are wanted.
Result<void> unwind(const profile::ProfileReader& profile, const ProgramView& view, StackTable& stacks) {
  if (stacks.empty()) {
    return {};
  }
  const auto wanted = [&](StackId stack) { return stacks.wants(stack); };
  return profile.for_each_stack([&](const profile::StackRow& stack) { stacks.add(stack, view); }, wanted);
}

Defects defects_of(std::span<const OwnershipTimeline> timelines, const SampleDigest& digest, const Strata& strata,
                   const SymbolizedMap& code) {
  Defects defects;
  for (const OwnershipTimeline& timeline : timelines) {
    defects.ignored_traps += timeline.ignored;
    defects.trap_gaps += timeline.gaps;
  }
  defects.malformed_samples = digest.malformed();
  defects.unwatched_share = strata.eligible_ns() > 0 ? strata.unwatched_ns() / strata.eligible_ns() : 0;
  defects.missing_symbols = code.missing();
  return defects;
}

/// The file of the program that was launched.
void fill_program(const profile::ProfileReader& profile, const Defects& defects, Analysis& analysis) {
  if (profile.processes().empty()) {
    return;
  }
  const profile::ProcessRow& program = profile.processes().front();
  for (const profile::ModuleRow& module : profile.modules()) {
    if (module.process == program.id && module.path == program.executable && !module.is_vdso) {
      analysis.build_id = module.build_id;
    }
  }
  for (const auto& missing : defects.missing_symbols) {
    if (missing.no_file && missing.path == program.executable) {
      analysis.program_missing = missing.why;
    }
  }
}

void fill_times(const profile::ProfileReader& profile, Analysis& analysis) {
  const profile::Session& session = profile.session();
  analysis.duration_s =
      session.end_ns > session.begin_ns ? static_cast<double>(session.end_ns - session.begin_ns) / ns_per_s : 0;
  for (const ThreadSummary& thread : analysis.threads) {
    analysis.cpu_s += thread.cpu_s.value_or(0);
  }
}

profile::SampleParts parts_of(const AnalysisOptions& options) {
  return options.code ? profile::SampleParts::all : profile::SampleParts::accesses;
}

}  // namespace

Result<Analysis> analyse(const profile::ProfileReader& profile, const AnalysisOptions& options) {
  const auto estimator = find_estimator(options.estimator);
  if (!estimator) {
    return tl::unexpected<Error>(estimator.error());
  }
  const AddressSpaces spaces(profile.processes(), profile.modules());
  SymbolizedMap code(spaces, profile.processes(), options.symbols);
  const ProgramView view(profile.processes(), profile.threads(), spaces, code);

  StackTable stacks;
  Result<Told> told = tell(profile, view, stacks);
  if (!told) {
    return tl::unexpected<Error>(told.error());
  }
  std::vector<OwnershipTimeline>& timelines = told->timelines;
  const BlockIndex blocks(profile.blocks());
  LineSet lines;
  find_interesting(timelines, view, blocks, lines, stacks);
  want_creations(profile, view, stacks);
  StartRoutines starts(view);
  if (options.start_routines) {
    starts.want(profile.watches(), stacks);
  }

  Strata strata(profile.watches(), profile.threads(), (*estimator)->policy);
  std::optional<LoopProgress> progress(view);
  std::optional<StreamSamples> positions(view);
  ConsumerSamples consumers(timelines);
  LineStores stores(timelines, profile.threads());
  SampleDigest digest(profile.threads(), spaces, lines, strata);
  ProcessorTimes processors;
  InstructionFigures instructions(view);
  MemorySamples memory_samples;
  const auto take = [&](const profile::SampleRow& sample) {
    if (options.code) {
      instructions.add(sample);
    }
    digest.add(sample);
    processors.add(sample);
    progress->add(sample);
    positions->add(sample);
    consumers.add(sample);
    stores.add(sample);
    memory_samples.add(sample);
  };
  if (auto read = profile.for_each_sample(take, parts_of(options)); !read) {
    return tl::unexpected<Error>(read.error());
  }
  strata.finish();
  Analysis analysis;
  analysis.session = profile.session();
  analysis.processes = profile.processes();
  const auto find = [&] { find_producers(profile.watches(), timelines, stores, profile.threads()); };
  Result<void> read_rest;
  CodeTime time;
  concurrently(find, [&] {
    read_rest = unwind(profile, view, stacks);
    if (read_rest) {
      time = code_time(digest.code(), view, options.max_rows, uncovered_s(profile.threads(), digest.threads()));
      LookaheadReplay replay(view);
      read_rest = profile.for_each_lookahead([&](const profile::LookaheadRow& row) { replay.add(row); });
      add_rates(time.loops, progress->trails(), replay.loops(), view);
      LoopStandings standings(view);
      for (const CodeTotal& total : digest.code()) {
        standings.add(total);
      }
      add_figures(time.loops, {options.machine, positions->loops(), standings.loops(), profile.session().core}, view);
    }
    progress.reset();  // a step a sample
    positions.reset();
  });
  if (!read_rest) {
    return tl::unexpected<Error>(read_rest.error());
  }
  const SharedIndex shared(profile.shared_mappings());
  DataObjects objects(view, blocks, shared, stacks);
  const std::vector<SampledAccess> sampled = digest.accesses();
  CommunicationFiler filer(view, stacks, objects);
  Estimate estimated;
  CountTable counts;
  const auto count = [&] {
    counts = count_communications({profile.watches(), told->traps, timelines, consumers,
                                   static_cast<double>(profile.session().config.trap_cost_ns), profile.threads()});
  };
  concurrently(count, [&] {
    estimated = estimate(**estimator, WatchEvidence(profile.watches(), timelines, strata), strata);
    estimated.expansion.count_unknown = why_no_counts(profile.events());
    limit_to_cpu_time(estimated.contributions, estimated.expansion.strata, profile.threads());
    Gains(view, stacks, time.loops, profile.session()).find(estimated.contributions, estimated.expansion);
    filer.locate(estimated.contributions, estimated.expansion);
  });
  estimated.expansion.counts = &counts;
  const std::size_t traps = told->traps.size();
  told->traps = {};  // only counts need them
  analysis.communication =
      filer.file({timelines, estimated.contributions, estimated.expansion, sampled, options.max_rows});
  const bool communication_known = !profile.watches().empty() && !estimated.expansion.unknown;
  analysis.threads = thread_summaries(profile.threads(), profile.processes(), digest.threads(),
                                      communication_known ? &analysis.communication.cells : nullptr);
  limit_gains(analysis.communication, analysis.threads);
  if (options.code) {
    auto listed = instructions.list(*options.code, estimated.contributions, estimated.expansion,
                                    uncovered_s(profile.threads(), digest.threads()));
    if (!listed) {
      return tl::unexpected<Error>(listed.error());
    }
    analysis.code = std::move(*listed);
    limit_gains(analysis.code, analysis.threads);
  }
  starts.name(analysis.threads, stacks);
  analysis.processors = processors.summaries();
  analysis.sampling =
      sampling_summary(profile.session(), profile.threads(), digest.threads(),
                       {digest.samples(), digest.with_address(), digest.user_mode(), profile.watches().size(), traps,
                        time.unknown_frames, digest.measured(), profile.events()});
  analysis.sampling.estimator = (*estimator)->name;
  analysis.loops = std::move(time.loops);
  analysis.functions = std::move(time.functions);
  analysis.code_lines = std::move(time.lines);
  auto memory = memory_view({profile, view, objects, shared, analysis.loops, memory_samples}, options.max_rows);
  if (!memory) {
    return tl::unexpected<Error>(memory.error());
  }
  analysis.memory = std::move(*memory);
  fill_times(profile, analysis);
  MeasuredWaits waits = measured_waits(profile.thread_waits(), view, profile.session().end_ns, analysis.loops);
  analysis.wait_places = std::move(waits.places);
  add_thread_waits(analysis, {profile.threads(), digest.threads(), waits.threads});
  charge_stand_ins(analysis.functions, analysis.cpu_s, analysis.sampling);
  const Defects defects = defects_of(timelines, digest, strata, code);
  fill_program(profile, defects, analysis);
  analysis.warnings =
      warnings_of(profile.session(), profile.messages(), analysis.sampling, analysis.communication, defects);
  if (options.machine == nullptr && !options.uncalibrated.empty() && !analysis.loops.empty()) {
    analysis.warnings.push_back({"no_calibration", options.uncalibrated});
  }
  if (auto unsampled = unsampled_in_words(profile.threads(), digest.threads(),
                                          creation_places(profile.thread_creations(), view, stacks),
                                          starts.given_to_unsampled(digest.threads()))) {
    analysis.warnings.push_back({"unsampled_threads", std::move(*unsampled)});
  }
  if (auto hint = jit_hint(time.fileless_s, analysis.cpu_s, analysis.communication, profile.processes())) {
    analysis.warnings.push_back({"code_without_names", std::move(*hint)});
  }
  if (estimated.expansion.unknown && !profile::is_imported(analysis.session)) {  // that would not help there
    analysis.warnings.push_back({"too_few_events", "costs are unknown: " + *estimated.expansion.unknown + "; " +
                                                       to_see_more(analysis.session)});
  }
  analysis.findings = findings_of(analysis);
  return analysis;
}

}  // namespace crosstalk::attribution
