// SPDX-License-Identifier: Apache-2.0
// The order of work: watches and traps become timelines. Samples are streamed once, to collect data on the timelines'
// lines. Stacks are streamed once, for those that are needed. Then everything is filed and named.
#include "attribution/analysis.h"

#include <sys/utsname.h>

#include <algorithm>
#include <optional>
#include <span>

#include "attribution/busy/loop_busy.h"
#include "attribution/busy/regions.h"
#include "attribution/busy/thread_waits.h"
#include "attribution/busy/wait_places.h"
#include "attribution/code/function_code.h"
#include "attribution/counters/counted_loops.h"
#include "attribution/counts/communication_counts.h"
#include "attribution/estimate/communication.h"
#include "attribution/estimate/estimator.h"
#include "attribution/estimate/gain.h"
#include "attribution/few_samples.h"
#include "attribution/findings.h"
#include "attribution/gain_limits.h"
#include "attribution/jit_hint.h"
#include "attribution/loops/code_time.h"
#include "attribution/loops/loop_rates.h"
#include "attribution/memory/memory_view.h"
#include "attribution/model/sentences.h"
#include "attribution/objects/data_objects.h"
#include "attribution/overview.h"
#include "attribution/program/program_view.h"
#include "attribution/program/symbolized_map.h"
#include "attribution/samples/brief_threads.h"
#include "attribution/samples/sample_digest.h"
#include "attribution/samples/strata.h"
#include "attribution/stacks/weighted_stacks.h"
#include "attribution/stages/sample_readers.h"
#include "attribution/stages/trap_reading.h"
#include "attribution/stages/watch_sight.h"
#include "attribution/start_routines.h"
#include "attribution/timeline/probe_effect.h"
#include "attribution/timeline/probe_timeline.h"
#include "attribution/undetected_cost.h"
#include "base/concurrently.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

/// Reads the requested stacks.
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

/// Fills in the file of the launched program.
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

double duration_s(const profile::Session& session) {
  return session.end_ns > session.begin_ns ? static_cast<double>(session.end_ns - session.begin_ns) / ns_per_s : 0;
}

void fill_times(const profile::ProfileReader& profile, Analysis& analysis) {
  analysis.duration_s = duration_s(profile.session());
  for (const ThreadSummary& thread : analysis.threads) {
    analysis.cpu_s += thread.cpu_s.value_or(0);
  }
}

bool has_jit_names(std::span<const FunctionRow> functions) {
  return std::any_of(functions.begin(), functions.end(), [](const FunctionRow& row) { return row.module == "[JIT]"; });
}

/// Drops zeros and upper limits of communication that the watchpoints could not see: they are unknown.
void forget_what_was_not_seen(const WatchSight& sight, Estimate& estimated) {
  Expansion& expansion = estimated.expansion;
  if (sight.sees == WatchSight::Sees::everything) {
    return;
  }
  expansion.unseen.reset();
  expansion.unseen_counts.reset();
  expansion.zeros_unknown = true;
  if (sight.sees == WatchSight::Sees::nothing) {
    expansion.unknown = sight.because;
    for (Contribution& contribution : estimated.contributions) {
      contribution.cost = 0;
    }
  }
}

/// The uses of objects without communication seen.
std::vector<SampledUse> other_uses(std::vector<SampledUse> uses, const Communication& communication) {
  const auto seen = [&](const SampledUse& use) {
    return std::any_of(communication.objects.begin(), communication.objects.end(),
                       [&](const ObjectRow& object) { return object.name == use.object && !object.cells.empty(); });
  };
  uses.erase(std::remove_if(uses.begin(), uses.end(), seen), uses.end());
  return uses;
}

/// The options for finding files, by the recording's machine and its copies of files.
symbolizer::Options symbols_for(const profile::ProfileReader& profile, symbolizer::Options options) {
  const profile::Session& session = profile.session();
  struct utsname here {};
  if (profile::is_imported(session)) {
    const std::string& architecture = session.architecture;
    options.foreign_architecture = architecture == "x86_64" ? std::string() : architecture;
    options.other_host = ::uname(&here) == 0 && session.host != here.nodename ? session.host : std::string();
  }
  options.kept_copy = [&profile](const symbolizer::ModuleSpec& file) {
    return profile.kept_file(file.path, file.build_id, file.content_hash);
  };
  return options;
}

/// One analysis. Each step needs the results of those before it.
class Course {
 public:
  Course(const profile::ProfileReader& profile, const AnalysisOptions& options, const Estimator& estimator)
      : profile_(profile),
        options_(options),
        estimator_(estimator),
        spaces_(profile.processes(), profile.modules()),
        code_(spaces_, profile.processes(), symbols_for(profile, options.symbols)),
        view_(profile.processes(), profile.threads(), spaces_, code_),
        blocks_(profile.blocks()),
        starts_(view_),
        strata_(profile.watches(), profile.threads(), estimator.policy),
        shared_(profile.shared_mappings()) {
    spaces_.ask([this](std::uint32_t file, std::uint64_t offset) { return code_.address_of(file, offset); });
  }

  Result<void> read_traps();
  Result<void> read_samples();
  Result<void> find_producers_and_loops();
  Result<void> estimate_costs();
  Result<void> list_code();
  Result<void> view_memory();
  [[nodiscard]] Analysis finish();

 private:
  [[nodiscard]] Result<void> find_loops();
  [[nodiscard]] double uncovered() const { return uncovered_s(profile_.threads(), samples_->digest.threads()); }
  void fill_sampling();
  void fill_waits_and_regions();
  void fill_warnings();

  const profile::ProfileReader& profile_;
  const AnalysisOptions& options_;
  const Estimator& estimator_;
  AddressSpaces spaces_;
  SymbolizedMap code_;
  ProgramView view_;
  StackTable stacks_;
  BlockIndex blocks_;
  StartRoutines starts_;
  Strata strata_;
  SharedIndex shared_;
  LineSet lines_;
  TrapsRead traps_read_;
  std::size_t traps_ = 0;
  std::optional<SampleReaders> samples_;  // from read_samples() on
  std::vector<CodeTotal> code_totals_;
  CodeTime time_;
  CountedCode counted_;
  MeasuredWaits waits_;
  std::optional<DataObjects> objects_;  // from estimate_costs() on
  Estimate estimated_;
  CountTable counts_;
  ProbeRates probe_rates_;
  Analysis analysis_;
};

/// Reads the traps, and finds the lines and stacks to read for them.
Result<void> Course::read_traps() {
  Result<TrapsRead> traps = attribution::read_traps(profile_, view_, blocks_, lines_, stacks_);
  if (!traps) {
    return tl::unexpected<Error>(traps.error());
  }
  traps_read_ = std::move(*traps);
  traps_ = traps_read_.traps.size();
  if (options_.start_routines) {
    starts_.want(profile_.watches(), stacks_);
  }
  return {};
}

Result<void> Course::read_samples() {
  // A recording with a trap proves that watchpoints fire.
  const auto trapless = traps_ == 0 ? std::span(profile_.watches()) : std::span<const profile::WatchRow>();
  samples_.emplace(profile_, view_, spaces_, shared_, traps_read_.timelines, lines_, strata_, trapless);
  if (options_.stacks) {
    samples_->stacks.emplace(view_);
  }
  const Result<std::optional<profile::EventId>> event = event_of_shares(profile_);
  if (!event) {
    return tl::unexpected<Error>(event.error());
  }
  if (*event && (*event)->value <= profile_.events().size()) {
    samples_->digest.weigh_by(**event);
    analysis_.shares_of = profile_.events()[(*event)->value - 1].name;
  }
  const bool by_instruction = options_.code.has_value();
  const auto take = [&](const profile::SampleRow& sample) { samples_->add(sample, by_instruction, stacks_); };
  if (auto read = profile_.for_each_sample(take, profile::SampleParts::all); !read) {
    return read;
  }
  samples_->callers.want(stacks_);
  if (samples_->stacks) {
    samples_->stacks->want(stacks_);
  }
  strata_.finish();
  analysis_.session = profile_.session();
  analysis_.processes = profile_.processes();
  analysis_.left_alone = left_alone_because(profile_.messages(), samples_->digest.samples() < few_samples);
  analysis_.sight = watch_sight(profile_.session(), profile_.messages(), samples_->telling.count());
  return {};
}

Result<void> Course::find_producers_and_loops() {
  const auto find = [&] {
    find_producers(profile_.watches(), traps_read_.timelines, samples_->stores, profile_.threads());
    probe_rates_ = tell_probes(profile_.watches(), traps_read_.timelines, samples_->probed);
  };
  Result<void> found;
  concurrently(find, [&] {
    found = find_loops();
    samples_->progress.reset();
    samples_->called.reset();
    samples_->positions.reset();
  });
  return found;
}

/// Loops with their times, rates and figures; functions and lines.
Result<void> Course::find_loops() {
  if (auto read = unwind(profile_, view_, stacks_); !read) {
    return read;
  }
  if (auto read = samples_->callers.read_chains(profile_); !read) {
    return read;
  }
  if (samples_->stacks) {
    if (auto read = samples_->stacks->read_chains(profile_, stacks_); !read) {
      return read;
    }
  }
  code_totals_ = code_totals(samples_->digest.code(), view_);
  time_ = code_time(code_totals_, view_, options_.max_rows, uncovered(), samples_->digest.access_times());
  samples_->callers.fill(stacks_, time_);
  if (!analysis_.shares_of.empty()) {
    forget_times(time_);
  }
  LookaheadReplay replay(view_);
  if (auto read = profile_.for_each_lookahead([&](const profile::LookaheadRow& row) { replay.add(row); }); !read) {
    return read;
  }
  add_rates(time_.loops, samples_->progress->trails(), replay.loops(), view_, samples_->called->speeds(stacks_));
  LoopStandings standings(view_);
  for (const CodeTotal& total : code_totals_) {
    standings.add(total);
  }
  auto counted = count_code(profile_, view_, time_.loops);
  if (!counted) {
    return tl::unexpected<Error>(counted.error());
  }
  counted_ = std::move(*counted);
  count_rates(time_.loops, counted_.loops);
  waits_ = measured_waits({profile_.thread_waits(), profile_.sampled_waits()}, view_, stacks_,
                          profile_.session().end_ns, time_.loops);
  add_figures(
      time_.loops,
      {options_.machine, samples_->positions->loops(), standings.loops(), profile_.session().core, counted_.loops},
      view_);
  return {};
}

/// Costs and numbers of communications, and their places.
Result<void> Course::estimate_costs() {
  objects_.emplace(view_, blocks_, shared_, stacks_);
  const std::vector<SampledAccess> sampled = samples_->digest.accesses();
  CommunicationFiler filer(view_, stacks_, *objects_);
  const bool probed = profile::are_lines_probed(profile_.session());
  const auto count = [&] {
    if (probed) {
      return;
    }
    counts_ = count_communications({profile_.watches(), traps_read_.traps, traps_read_.timelines, samples_->consumers,
                                    static_cast<double>(profile_.session().config.trap_cost_ns), profile_.threads()});
  };
  concurrently(count, [&] {
    estimated_ = estimate(estimator_, WatchEvidence(profile_.watches(), traps_read_.timelines, strata_), strata_,
                          probed ? why_no_counts_of_probes : why_no_counts(profile_.events()));
    forget_what_was_not_seen(analysis_.sight, estimated_);
    limit_to_cpu_time(estimated_.contributions, estimated_.expansion.strata, profile_.threads());
    Gains(view_, stacks_, time_.loops, profile_.session()).find(estimated_.contributions, estimated_.expansion);
    filer.locate(estimated_.contributions, estimated_.expansion);
  });
  estimated_.expansion.counts = &counts_;
  estimated_.expansion.probe_rates = &probe_rates_;
  traps_read_.traps = {};  // only counts need them
  analysis_.communication =
      filer.file({traps_read_.timelines, estimated_.contributions, estimated_.expansion, sampled, options_.max_rows});
  name_awaited(waits_, *objects_);
  if (samples_->uses) {
    const auto name_at = [&](ThreadId thread, std::uint64_t time_ns, std::uint64_t address) {
      return (*objects_)[objects_->resolve(thread, time_ns, address).object].name;
    };
    analysis_.communication.sampled_uses = other_uses(samples_->uses->in_turn(name_at), analysis_.communication);
    samples_->uses.reset();
  }
  const bool known = !profile_.watches().empty() && !estimated_.expansion.unknown;
  analysis_.threads =
      thread_summaries(profile_.threads(), profile_.processes(), samples_->digest.threads(),
                       known ? &analysis_.communication.cells : nullptr, duration_s(profile_.session()));
  limit_gains(analysis_.communication, analysis_.threads);
  limit_unseen(analysis_.communication, analysis_.threads);
  if (options_.stacks) {
    const std::vector<CodeTotal> code = samples_->digest.code();
    analysis_.stacks = std::make_shared<const WeightedStacks>(weighted_stacks(
        {view_, stacks_, *samples_->stacks, code, samples_->digest.threads(), analysis_.threads, filer.located(),
         estimated_.contributions, estimated_.expansion, *objects_, analysis_.communication},
        *options_.stacks));
  }
  return {};
}

/// Lists instructions, if requested.
Result<void> Course::list_code() {
  if (!options_.code) {
    return {};
  }
  auto listed =
      samples_->instructions.list(*options_.code, estimated_.contributions, estimated_.expansion, uncovered());
  if (!listed) {
    return tl::unexpected<Error>(listed.error());
  }
  analysis_.code = std::move(*listed);
  limit_gains(analysis_.code, analysis_.threads);
  return {};
}

/// Builds the memory view from hardware samples, by line, object and loop.
Result<void> Course::view_memory() {
  analysis_.loops = std::move(time_.loops);
  auto memory =
      memory_view({profile_, view_, *objects_, shared_, analysis_.loops, samples_->memory}, options_.max_rows);
  if (!memory) {
    return tl::unexpected<Error>(memory.error());
  }
  analysis_.memory = std::move(*memory);
  return {};
}

void Course::fill_sampling() {
  const SampleDigest& digest = samples_->digest;
  analysis_.sampling =
      sampling_summary(profile_.session(), profile_.threads(), digest.threads(),
                       {digest.samples(), digest.with_address(), digest.user_mode(), profile_.watches().size(), traps_,
                        time_.unknown_frames, digest.measured(), profile_.events()});
  analysis_.sampling.estimator = estimator_.name;
  analysis_.sampling.unknown_writers = unknown_writers(profile_.watches(), traps_read_.timelines);
}

void Course::fill_waits_and_regions() {
  const SampleDigest& digest = samples_->digest;
  analysis_.wait_places = std::move(waits_.places);
  add_thread_waits(analysis_, {profile_.threads(), digest.threads(), waits_.threads});
  if (!profile_.regions().empty()) {
    analysis_.regions = region_summaries({profile_.regions(), profile_.thread_regions(), digest.regions(), code_totals_,
                                          digest.threads(), waits_.threads},
                                         analysis_.threads, analysis_.loops, LoopIndex(view_, analysis_.loops));
  }
}

void Course::fill_warnings() {
  const SampleDigest& digest = samples_->digest;
  const Defects defects = defects_of(traps_read_.timelines, digest, strata_, code_);
  fill_program(profile_, defects, analysis_);
  std::vector<Warning>& warnings = analysis_.warnings;
  warnings = warnings_of(profile_.session(), profile_.messages(), analysis_.sampling, analysis_.communication, defects);
  for (Warning& warning : warnings) {
    add_remedy(warning, analysis_.processes);
  }
  if (analysis_.sampling.samples == 0 && analysis_.left_alone.empty()) {
    warnings.push_back({"no_samples", "no samples were taken: " + why_few_samples(few_samples_facts(analysis_))});
  }
  if (analysis_.sight.found_late) {
    warnings.push_back({"watchpoints_silent", analysis_.sight.because + "; " + analysis_.sight.remedy});
  }
  if (!analysis_.shares_of.empty()) {
    const bool others = digest.measured().size() > 1;
    warnings.push_back({"no_times", "no sample stands for time, so no times are known: shares are of the event " +
                                        analysis_.shares_of +
                                        (others ? ", and those of other events are left out" : "")});
  }
  if (options_.machine == nullptr && !options_.uncalibrated.empty() && !analysis_.loops.empty()) {
    warnings.push_back({"no_calibration", options_.uncalibrated});
  }
  if (auto unsampled = unsampled_in_words(profile_.threads(), digest.threads(),
                                          has_unsampled_made_thread(profile_.processes(), profile_.threads())
                                              ? creation_places(profile_.thread_creations(), view_, stacks_)
                                              : std::vector<std::string>(),
                                          starts_.given_to_unsampled(digest.threads()))) {
    warnings.push_back({"unsampled_threads", std::move(*unsampled)});
  }
  if (auto missing = not_looked_at_in_words(waits_, view_, profile_.processes(), profile_.session())) {
    warnings.push_back({"waits_not_looked_at", std::move(*missing)});
  }
  if (auto hint = jit_hint(time_.fileless_s, analysis_.cpu_s, analysis_.communication, profile_.processes(),
                           has_jit_names(analysis_.functions))) {
    warnings.push_back({"code_without_names", std::move(*hint)});
  }
  if (const std::uint64_t unknown = analysis_.sampling.unknown_writers; unknown > 0) {
    warnings.push_back({"unknown_writers", count_of(unknown, "probe", "probes") +
                                               " saw a store by nobody who was sampled storing there (a thread, "
                                               "another process or the kernel): what that costs is in no figure"});
  }
  // A longer recording does not help if nothing was recorded here, nothing could be watched, or no thread can have a
  // partner.
  const auto& unknown = estimated_.expansion.unknown;
  const auto sampled = std::count_if(analysis_.threads.begin(), analysis_.threads.end(),
                                     [](const ThreadSummary& thread) { return thread.samples > 0; });
  const bool possible = analysis_.communication.undetected.at_most_s != 0.0 || !analysis_.communication.cells.empty();
  if (!possible) {
    std::erase_if(warnings, [](const Warning& warning) { return warning.code == "small_blocks_unnamed"; });
  }
  if (unknown && sampled > 1 && possible && !profile::is_imported(analysis_.session) &&
      analysis_.sight.sees != WatchSight::Sees::nothing) {
    warnings.push_back({"too_few_events", "costs are unknown: " + *unknown + "; " + to_see_more(analysis_)});
  }
}

Analysis Course::finish() {
  starts_.name(analysis_.threads, stacks_);
  analysis_.processors = samples_->processors.summaries();
  fill_sampling();
  analysis_.counters = std::move(counted_.summary);
  analysis_.functions = std::move(time_.functions);
  analysis_.kernel = std::move(time_.kernel);
  analysis_.code_lines = std::move(time_.lines);
  fill_times(profile_, analysis_);
  fill_waits_and_regions();
  charge_stand_ins(time_.collector_s, analysis_.cpu_s, analysis_.sampling);
  analysis_.communication.undetected = undetected_cost(analysis_, samples_->reachable, uncovered());
  fill_warnings();
  analysis_.findings = findings_of(analysis_);
  return std::move(analysis_);
}

}  // namespace

Result<Analysis> analyse(const profile::ProfileReader& profile, const AnalysisOptions& options) {
  const auto estimator = find_estimator(options.estimator);
  if (!estimator) {
    return tl::unexpected<Error>(estimator.error());
  }
  Course course(profile, options, **estimator);
  for (const auto step : {&Course::read_traps, &Course::read_samples, &Course::find_producers_and_loops,
                          &Course::estimate_costs, &Course::list_code, &Course::view_memory}) {
    if (auto done = (course.*step)(); !done) {
      return tl::unexpected<Error>(done.error());
    }
  }
  return course.finish();
}

}  // namespace crosstalk::attribution
