# SPDX-License-Identifier: Apache-2.0
"""Estimators of communication cost against simulated programs, whose truth is known exactly."""

import argparse
import json
import os
import subprocess
import sys

import common
import estimators_published

STUDY = os.path.join(common.BUILD, "tests", "simulation", "estimator_study")
PLOT = "estimators.svg"
LARGEST_BIAS, LEAST_COVERAGE, MOST_COVERAGE = 0.02, 0.90, 0.98
LARGEST_COUNT_BIAS = 0.03
LARGEST_PROBED_ERROR, LEAST_PROBED_COVERAGE = 0.10, 0.92
OF_COUNTS = ("post_stratified", "board")  # the default and the published one: the others are variants of these

EXPLANATION = """## Estimators

Written by `./dev bench estimators`. Each scenario is simulated {runs} times with different seeds (`tests/simulation/`):
threads access lines as the scenario says, a clock samples them, watches are drawn, armed, filled and closed by the
collector's rules, and the estimators see only the rows that a profile would hold. The truth is the time of the
accesses that are communications by their definition.

- *bias*: mean of (estimated - true) total cost, of the true one, with its standard error. Half of the time or more of
  each thread is private work.
- *misplaced*: share of the true cost that lies, on average over the runs, in the wrong pair or sort, beyond the bias.
- *coverage*: in how many of (run, pair, sort) with a true cost the 95 % interval held it. A pair that was not seen
  has the limit of what its consumer may have unseen.
- *sum*: the same of the sum over all pairs of a sort. Where threads come and go most pairs are never sampled, and only
  the sum says something.
- *width*: mean width of these intervals, of the pair's true cost.
- *detections*: communications that the estimate rests on, a run.

In bold: bias below {bias:.0%}, and coverage from {least:.0%} to {most:.0%}.

{scenarios}

![Bias of each estimator in each scenario]({plot})

The table shows:

- `post_stratified` is the default because it is right in the most scenarios. It is wrong where the time on a line is
  not spent in communicating: `spinning`, where looking at a line that has not changed is charged like waiting for it.
  So is every estimator that goes by the time of samples.
- `board`, as published, counts one period a trap. It makes up neither for samples that opened no watch nor for words
  that were not drawn, so it is low by half where all sharing is true and by more than nine tenths where it is false;
  with several observers a sample is counted once for each, so it is high where many threads read. It takes the
  sampled thread for the producer: where threads have different parts, its pairs are the wrong way round (*misplaced*).
- `board_ipw` mends what can be mended by weights. The direction and the several observers remain.
- `next_access` needs stores among the samples, and a clock's samples fall on loads; it is right where an access is both.
- `next_store` is right where lines are taken over by loads, and leaves out what plain stores wait for.
- `short_run`: at the start the budget is largest, so lines are watched before they are suspected. So the report decides
  afterwards which lines were suspected. Otherwise these watches would represent private data that is sampled later.
- `many_lines`: lines that meet too seldom to be suspected are watched briefly, which is mostly too short. Estimators
  that weigh a long watch for all brief ones (`board_ipw`, `next_store`) get the sum right on average, from a few events
  with large weights, so that their intervals hold far less often than they say. `post_stratified` takes, of two ways to
  make up for what came late, the one that asks less of a single event: weighing the long watches of the same stratum,
  or what came early there, in the proportion that all long watches show. The latter assumes that unknown lines are as
  busy as known ones, which holds here.
- `brief_threads`, `lasting_threads`: what a thread leaves behind (stacks, heap blocks) the next ones use again, so that it
  is suspected, too, but watched less often than what is exchanged. A thread that lives for a quarter of a period has
  one sample or none to tell the one from the other; all together have enough. Without such common places
  (`Strata::common_unit_watches`) the sum was low by 47 ± 2 % and 11 ± 1 %, and the interval held it in 75 % and 93 % of
  100 runs of half the length; in runs of twice the length it was low by 46 ± 1 % and 16 ± 1 %, and held in 50 % and 60 %.
- `one_register`: the word that was sampled or another one is watched, never both, so a thread that shares falsely is
  not seen to come back. It is expected to: the first store since the sample is charged for the latest before it. The
  sum is low by some 3 % yet, all of it true sharing (-4.0 in 4000 runs). The ratio is biased: a watch that misses the
  word keeps the one register for its whole time, and one that sees exchanges ends early. So runs with many successful
  watches have more watches, and runs with few watches weigh too much. Over all runs together watches saw what there was
  (+0.4 % true, -1.3 % false sharing). A run has some 20 watches of suspected lines for eight pairs and sorts; one in
  four is seen in none. Its limit says so, and intervals of what rests on few watches are those of few events: without
  them coverage was 61 %.
- `spinning`: where a thread looks again and again, all its samples on the line look alike, and the state of the line
  is the same from the first look to the last. Only the first waits, and the time from the sample to the thread's own
  store is longest then; but it is to be compared with a whole turn's, which is known from traps only with the wait and
  the cost of the trap in it. With a turn's looks known exactly (2 us) the mean of those times gives +20 %; with the
  traps' own, less the true wait and trap, +103 %; with 0.5 us more taken off, +288 %; and where nobody looks twice
  (`ping_pong`) it gives less than nothing.

"""
COUNTING = """## Estimators where samples count

Written by `./dev bench estimators --only counting --runs {runs}`. As above, with {runs} runs of each scenario, but one in so
many loads and one in so many stores is sampled (`accesses_`, as by Intel's precise events), or one in so many
micro-operations (`ops_`, as by AMD's IBS), and the truth is how many communications there were. Columns are those of
[Estimators](#estimators), of communications instead of seconds. *Reported*: whether a report of such a session says a number.

In bold: bias below {bias:.0%}, and coverage from {least:.0%} up.

{scenarios}

The table shows:

- `post_stratified`, the default, tells how often threads communicate where accesses are followed to the next of their
  thread. A bias of some -1 to -3 % is left: traps hold up the partner, and what others do between an access and the watch
  that its sample opens is not seen.
- `board`, as published, is right nowhere here. Each sample of a load and each of a store on a line that goes back and forth
  is a communication to it, so it is high where all sharing is true, the higher the more threads read; it is low where words
  were not drawn or threads not armed. Skid changes nothing about that.
- `accesses_skid`, `accesses_skid_ring`: skid by a number of accesses does no harm. Which access is sampled is as much by
  chance as before.
- `accesses_shadow`, `accesses_long_shadow`: skid by a time does. What is quick and comes soon after another access is
  sampled too seldom, what lasts too often, so that samples no longer stand for accesses alone.
- `accesses_no_address`: nothing stands for samples that the collector drops because nobody can tell what they accessed,
  so the number is low by as large a share. A session says how many were dropped (`samples_without_access`).
- `accesses_slow`, `accesses_slow_ring`: with a threshold of latency neither samples nor counts hold fast loads. Where
  threads take their lines over by stores, all of which are sampled, the number is right all the same; where they only load
  it is a fourth of the truth, and no number of slow communications either, since what is counted follows a load instead of
  being one. A report cannot tell the two apart and says no number, with the reason (`count_unknown`).
- `accesses_late`: watches that begin late find the thread between two visits; the samples of instructions with which no visit
  begins are left out of the number then.
- `accesses_whole_lines`, `accesses_packed`, `accesses_spinning`: where threads go from word to word of a line, where
  neighbours share a word of eight bytes, and where threads look again and again, the number is wrong, by as much as the
  table says.

"""
PROBING = """## Estimators where lines are probed

Written by `./dev bench estimators --only probing --runs {runs}`. A simulated program of threads in a ring, each of which stores
to lines that the next one loads, is probed {runs} times with different seeds (`tests/simulation/probing.h`): its clocks expire
each 4 ms of 4 s, a random half of the samples read their line twice with the drawn gaps of the collector (0.25 to 16.4 us), under
its rules for handlers that meet, and the rows go through the timeline and the default estimator of a report. The truth is the time
of the loads that waited for another thread's store.

- *median*: of the runs' errors of the total cost, as a part of the true one; *bias*: their mean, with its standard error.
- *coverage*: in how many of (run, pair, sort) with a true cost the 95 % interval held it.
- *width*, *detections*: as above.

In bold: a median error below {bias:.0%}, and coverage from {least:.0%} to {most:.0%}.

{scenarios}

The table shows:

- Stores up to some 10 us apart are charged right, at random, at equal intervals or in bursts, also if they come faster while the
  loading thread stands still: the fit tells an active partner apart from the rate of its stores.
- `random_20us` and slower: the longest gaps see about as much in proportion as short ones, so any slower rate is as likely, and the
  mean is low. Partners here are active all the time, the end of what is likely, so that end multiplies the interval's; added in
  quadrature, as errors about a most likely value are, intervals held in 81 to 87 % of simulated cases. `half_period` and
  `doubled_gap` are its companions, which say the same within their intervals.
- `random_100us`: one or two changes are seen a run. The interval of a pair that was seen says how little that tells.
- `regular_30us`: a load waits for a store that has just been made, so the next one comes later than the longest gap. It is as if
  nobody stored; a longer gap would disturb the program more.
- `silent`: no probe can see a store that leaves the value as it was. If half of the stores are silent, the others tell.
- `ring_64`: each line has some five probes and one change, which the common rate of its instruction makes up for. A third of
  the lines has no sample of a storing thread; the only thread that stores to the same bytes of other lines on the page is taken.
  Without that the cost was low by 45 %.
- `lockstep`, `lockstep_ring`: handlers that meet drop half of the probes and more. A load that waits is interrupted when it has
  retired, so its handler begins later and finds another one probing more often: in the ring 16 % of samples of loads are
  probed, of all others 26 %. So samples of loads stand for loads alone; before, the ring's cost was low by 15 %, and intervals
  held in 87 %.
"""


def earlier(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def judged(runs, scenarios):
    shown = subprocess.Popen([STUDY, str(runs), *scenarios], stdout=subprocess.PIPE, text=True)
    for line in shown.stdout:
        result = json.loads(line)
        print(f"{result['scenario']}: " + ", ".join(f"{score['estimator']} {score['bias']:+.1%}"
                                                    for score in result["scores"]), flush=True)
        yield result
    if shown.wait() != 0:
        sys.exit(f"bench: the study ended with {shown.returncode}")


def cells(scenario, score, largest_bias=LARGEST_BIAS, most_coverage=MOST_COVERAGE):
    right = abs(score["bias"]) < largest_bias and LEAST_COVERAGE <= score["coverage"] <= most_coverage
    bold = "**" if right else ""
    return [f"`{scenario}`", f"`{score['estimator']}`",
            f"{bold}{100 * score['bias']:+.1f} ± {100 * score['bias_error']:.1f}{bold}",
            f"{100 * score['misplaced']:.1f}", f"{bold}{100 * score['coverage']:.1f}{bold}",
            f"{100 * score['total_coverage']:.1f}", f"{score['width']:.2f}", f"{score['detections']:.0f}"]


COLUMNS = ["scenario", "estimator", "bias, %", "misplaced, %", "coverage, %", "sum, %", "width", "detections"]


def nothing_found(results, unit):
    """Describes the scenarios without communication."""
    return "".join(f"\n\n`{result['scenario']}`: nothing is communicated, and "
                   f"{sum(score['estimated_s'] for score in result['scores']):g} {unit} were found by all estimators together."
                   for result in results if result["scores"][0]["true_s"] == 0)


def tables(results):
    rows = [cells(result["scenario"], score) for result in results for score in result["scores"] if score["true_s"] > 0]
    return common.table(COLUMNS, rows) + nothing_found(results, "s")


def counting_tables(results):
    rows = [[*cells(result["scenario"], score, LARGEST_COUNT_BIAS, 1), "no" if result["withheld"] else "yes"]
            for result in results for score in result["scores"]
            if score["true_s"] > 0 and score["estimator"] in OF_COUNTS]
    return common.table([*COLUMNS, "reported"], rows) + nothing_found(results, "communications")


def probing_cells(scenario, score):
    small = abs(score["median_error"]) < LARGEST_PROBED_ERROR
    covers = LEAST_PROBED_COVERAGE <= score["coverage"] <= MOST_COVERAGE
    return [f"`{scenario}`", bold(small, f"{100 * score['median_error']:+.1f}"),
            f"{100 * score['bias']:+.1f} ± {100 * score['bias_error']:.1f}", bold(covers, f"{100 * score['coverage']:.1f}"),
            f"{score['width']:.2f}", f"{score['detections']:.0f}"]


def bold(chosen, text):
    return f"**{text}**" if chosen else text


def probing_tables(results):
    rows = [probing_cells(result["scenario"], result["scores"][0]) for result in results if result["scores"][0]["true_s"] > 0]
    return common.table(["scenario", "median, %", "bias, %", "coverage, %", "width", "detections"], rows) + nothing_found(results, "s")


def summaries(results):
    return common.table(["scenario", "what happens"], [[f"`{result['scenario']}`", result["summary"]] for result in results])


def plot(results, path):
    import matplotlib  # takes longer to load than all else here, and only this needs it
    matplotlib.use("Agg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "estimators"  # the same figures give the same file
    shown = [result for result in results if result["scores"][0]["true_s"] > 0]
    names = [score["estimator"] for score in shown[0]["scores"]]
    figure, axes = pyplot.subplots(figsize=(9, 0.55 * len(shown) + 1.2))
    for index, name in enumerate(names):
        scores = [next(score for score in result["scores"] if score["estimator"] == name) for result in shown]
        heights = [row + 0.14 * (index - (len(names) - 1) / 2) for row in range(len(shown))]
        axes.errorbar([100 * score["bias"] for score in scores], heights,
                      xerr=[196 * score["bias_error"] for score in scores],
                      fmt="osD^v"[index % 5], markersize=4, linewidth=1, label=name)
    axes.axvspan(-100 * LARGEST_BIAS, 100 * LARGEST_BIAS, color="0.85", zorder=0)
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xticks([-100, -50, -10, -5, 0, 5, 10, 50, 100, 300], ["-100", "-50", "-10", "-5", "0", "5", "10", "50", "100", "300"])
    axes.minorticks_off()
    axes.set_yticks(range(len(shown)), [result["scenario"] for result in shown])
    axes.invert_yaxis()
    axes.grid(axis="x", color="0.9")
    axes.set_xlabel("bias of the total cost, % (95 % intervals; linear up to 10 %, then logarithmic)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, 1.09), ncol=5, frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(f"written to docs/{os.path.basename(path)}")


def write_timing(results):
    plot(results, os.path.join(common.TOP, "docs", PLOT))
    text = EXPLANATION.format(runs=results[0]["runs"], plot=PLOT, scenarios=summaries(results), bias=LARGEST_BIAS,
                              least=LEAST_COVERAGE, most=MOST_COVERAGE)
    common.write_section("accuracy.md", "estimators", text + tables(results))


def write_counting(results):
    text = COUNTING.format(runs=results[0]["runs"], scenarios=summaries(results), bias=LARGEST_COUNT_BIAS,
                           least=LEAST_COVERAGE)
    common.write_section("accuracy.md", "estimators-counting", text + counting_tables(results))


def write_probing(results):
    text = PROBING.format(runs=results[0]["runs"], scenarios=summaries(results), bias=LARGEST_PROBED_ERROR,
                          least=LEAST_PROBED_COVERAGE, most=MOST_COVERAGE)
    common.write_section("accuracy.md", "estimators-probing", text + probing_tables(results))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench estimators", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs of each scenario (default 200)")
    parser.add_argument("--only", choices=["timing", "counting", "probing", "published"],
                        help="the scenarios that a clock samples, those whose samples count, those whose lines are probed, or those "
                             "of the published study (only where asked for); writes their section alone")
    parser.add_argument("--results", metavar="FILE", help="what estimator_study has printed before, instead of running it")
    parser.add_argument("scenario", nargs="*", help="these scenarios only; writes no document")
    options = parser.parse_args()
    chosen = options.scenario or ([options.only] if options.only else [])
    results = earlier(options.results) if options.results else list(judged(max(options.runs, 2), chosen))
    if not results:
        sys.exit(f"bench: there is no scenario called {' or '.join(options.scenario)}")
    probing = [result for result in results if result.get("probed")]
    published = [result for result in results if estimators_published.is_published(result)]
    timing = [result for result in results if not result["counts"] and result not in probing]
    counting = [result for result in results if result["counts"] and result not in published]
    for some, tables_of, write in (timing, tables, write_timing), (counting, counting_tables, write_counting), (
            probing, probing_tables, write_probing), (
            published, estimators_published.tables, estimators_published.write):
        if some:
            print(tables_of(some))
        if some and not options.scenario:
            write(some)


if __name__ == "__main__":
    main()
