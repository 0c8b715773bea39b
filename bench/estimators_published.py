# SPDX-License-Identifier: Apache-2.0
"""The published study of communication counts by hardware samples, repeated by simulation: its section of docs/accuracy.md."""

import re

import common

NAME = re.compile(r"published_(accesses|ops)_(\d+)_threads_(\d+)_shared_(\d)_registers_([\d.]+)_periods")
UNIT = {"accesses": "loads and stores, as by PEBS", "ops": "micro-operations, as by IBS"}
REGISTERS, THREADS, SHARED = 4, 4, 50  # of the sweeps that vary something else

TEXT = """## The published study, by simulation

Written by `./dev bench estimators --only published --runs {runs}`. The published study compares total counts of communications
with the truth over the share of shared data, the number of threads and that of debug registers, on processors with PEBS and
with IBS. Here its program is simulated {runs} times at each point (`tests/simulation/published.cpp`): so many of a thread's
turns update one of 16 lines that all threads update, the others are private work. A sample of each event comes once a period,
whatever the rate of accesses. Given is the error of the total number, found - true, in % of the true one, with its standard
error: of `post_stratified`, the default, and of `board`, the published estimator.

{findings}
- Where nothing is private, the default is low by some 6 %: between an access and the watch that its sample opens, and while
  traps hold a thread up, others go on with the line.
- With fewer debug registers less is seen, so its errors are mostly those of chance. A watch takes two registers, so two
  of three are used. The published estimator gives what was seen for what there was.

"""


def is_published(result):
    return NAME.fullmatch(result["scenario"]) is not None


def points(results):
    """Returns (source, threads, shared percent, registers, periods) -> scores by estimator."""
    found = {}
    for result in results:
        source, threads, shared, registers, periods = NAME.fullmatch(result["scenario"]).groups()
        found[source, int(threads), int(shared), int(registers), float(periods)] = {
            score["estimator"]: score for score in result["scores"]}
    return found


def error(score):
    return f"{100 * score['bias']:+.1f} ± {100 * score['bias_error']:.1f}"


def cell(scores):
    return f"{error(scores['post_stratified'])}; {error(scores['board'])}" if scores else "-"


def sweep(found, heading, columns, rows):
    """`columns`: heading -> key; `rows`: heading -> function of a column's key that gives the point."""
    return common.table([heading, *columns], [[name, *(cell(found.get(point(key))) for key in columns.values())]
                                              for name, point in rows.items()])


def values(found, source, index):
    return sorted({point[index] for point in found if point[0] == source})


def source_tables(found, source):
    shares = {f"{share} % shared": share for share in values(found, source, 2)}
    threads = {str(count): lambda share, count=count: (source, count, share, REGISTERS, 1.0)
               for count in values(found, source, 1)}
    registers = {f"{count} threads, {share} % shared": (count, share) for count in values(found, source, 1)
                 for share in values(found, source, 2) if (source, count, share, 1, 1.0) in found}
    by_register = {str(number): lambda at, number=number: (source, *at, number, 1.0) for number in values(found, source, 3)}
    periods = {f"{period:g}": period for period in values(found, source, 4)}
    of_period = {"error": lambda period: (source, THREADS, SHARED, REGISTERS, period)}
    return "\n\n".join([f"**{UNIT[source]}**: `post_stratified`; `board`", sweep(found, "threads", shares, threads),
                        sweep(found, "debug registers", registers, by_register),
                        sweep(found, "periods, of the usual one", periods, of_period)])


def findings(found):
    """Sentences that follow from the figures."""
    errors = {name: {point: abs(scores[name]["bias"]) for point, scores in found.items()}
              for name in ("post_stratified", "board")}
    better = sum(errors["post_stratified"][point] < errors["board"][point] for point in found)
    off = sorted(errors["post_stratified"].values())
    published = sorted(errors["board"].values())
    clear = [point for point, scores in found.items()
             if abs(scores["post_stratified"]["bias"]) > 0.03 + 2 * scores["post_stratified"]["bias_error"]]
    private = sum(point[2] < 100 for point in clear)
    return "\n".join([
        f"- The default is nearer to the truth than the published estimator at {better} of {len(found)} points.",
        f"- Its errors are {100 * off[len(off) // 2]:.1f} % in the median and {100 * off[-1]:.1f} % at most; those of the "
        f"published one {100 * published[len(published) // 2]:.0f} % and {100 * published[-1]:.0f} %.",
        f"- It is off by more than 3 % beyond two standard errors at {len(clear)} points; at {private} of them something is "
        "private."])


def tables(results):
    found = points(results)
    return "\n\n".join(source_tables(found, source) for source in UNIT if any(point[0] == source for point in found))


def write(results):
    text = TEXT.format(runs=results[0]["runs"], findings=findings(points(results)))
    common.write_section("accuracy.md", "estimators-published", text + tables(results))
