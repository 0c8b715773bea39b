# SPDX-License-Identifier: Apache-2.0
"""The published study of communication counts by hardware samples, repeated by simulation: its section of docs/accuracy.md."""

import re

import common

NAME = re.compile(r"published_(accesses|ops)_(\d+)_threads_(\d+)_shared_(\d)_registers_([\d.]+)_periods"
                  r"(_pairs)?(?:_([a-z]+)_(\w+))?")
UNIT = {"accesses": "loads and stores, as by PEBS", "ops": "micro-operations, as by IBS"}
REGISTERS, THREADS, SHARED = 4, 4, 50  # of the sweeps that vary something else
DEFAULT, PUBLISHED = "post_stratified", "board"
LARGEST_BIAS = 0.02
# Parameters beyond the published study: the words of the first column, and the usual value.
DIMENSIONS = {"skid": ("the sample", "is of the access at which the counter ran out"),
              "latency": ("least latency of sampled loads", "none"),
              "board": ("the bulletin board remembers", "4096 lines"),
              "method": ("method", "watch"),
              "late": ("from the sample to its watch", "0 us")}

TEXT = """## The published study, by simulation

Written by `./dev bench estimators --only published --runs {runs}`. The published study compares total counts of communications
with the truth over the share of shared data, the number of threads and that of debug registers, on processors with PEBS and
with IBS. Here its program is simulated {runs} times at each point (`tests/simulation/published.cpp`): so many of a thread's
turns update one of 16 lines that all threads update, the others are private work. A sample of each event comes once a period,
whatever the rate of accesses; the usual one stands for the source's 50,000. Given is the error of the total number, found -
true, in % of the true one, with two standard errors over the seeds: of `post_stratified`, the default, and of `board`, the
published estimator.

{findings}

How the rest is modelled, and what it does:

- A line changes hands as the access that fetches it ends, and that access's sample comes next. If others could take it while the
  access lasts, which is before a watch can begin, the default would be low by 6 % where nothing is private: the chance that one
  access in 16 lines hits the same one.
- *Debug registers*: a watch takes two, so two of three are used. With one, watches see half as much of what they see with two, and
  take turns; a run has a few of them, and the ratio of detections to few watches is low by nature (`one_register` above). The
  published estimator gives what was seen for what there was.
- *Skid by accesses*: a sample is of an access so many counted ones later. This does no harm, since which access is sampled is as
  much by chance as before. IBS tags the operation that it samples and has none; PEBS has that of one instruction at most.
- *The instruction of the access before* (PEBS without its correction): harmless, too. *The address of the access before*: its
  watch begins one access late, as below.
- *Skid by a time*: the sample is of the first access that begins so much after the counter ran out. It
  passes over accesses that follow a quick one at once, so the number is low.
- *Least latency*: loads that take less are neither counted nor sampled, but for one of each private visit; stores all are. Most
  samples are then of loads that wait for their line. If stores follow the loads, the number is right all the same. For updates it
  is low, and lower than the published one, because fewer updates follow a slow one than follow any. A report cannot tell these
  cases apart and gives no number.
- *The bulletin board*: a small one forgets a line before another thread is sampled there, so fewer lines are suspected and watched.
  This costs detections and makes no bias. The published estimator counts what it detects, so it falls with the board.
- *Probe*: the sampled thread stands still between two looks, 0.25 to 16.4 us apart. They see that others store meanwhile, not
  whether the thread would have come back before: a load that its own store follows counts like one that others follow. Costs by
  the clock's samples do not need to know this, numbers do, and a report says none.
- *Watches that come late*: where visits to a line come at random, the number is high by a few per cent. A load that its own store
  follows is watched after the store, and what follows the visit would count twice: with the samples of the load and with those of
  the store, which before this was mended gave twice the truth. But threads then come back to the load alone, so the samples of the
  store count nothing (`attribution/estimate/return_balance.h`). Recordings read samples of hardware at the clock's next tick, up to
  4 ms later, so their numbers are of this kind. If a visit goes round a loop of one instruction, its number stays too high, by as
  many times as the loop goes round at most.

"""


def is_published(result):
    return NAME.fullmatch(result["scenario"]) is not None


def scores_of(result):
    return {score["estimator"]: score for score in result["scores"]}


def points(results):
    """The published study's own: (source, threads, shared percent, registers, periods) -> scores by estimator."""
    found = {}
    for result in results:
        source, threads, shared, registers, periods, pairs, dimension, _ = NAME.fullmatch(result["scenario"]).groups()
        if not pairs and not dimension:
            found[source, int(threads), int(shared), int(registers), float(periods)] = scores_of(result)
    return found


def variations(results):
    """Those beyond it, and what is usual: (source, dimension, summary) -> by pairs, the result."""
    found = {}
    for result in results:
        source, threads, shared, registers, periods, pairs, dimension, _ = NAME.fullmatch(result["scenario"]).groups()
        usual = (int(threads), int(shared), int(registers), float(periods)) == (THREADS, SHARED, REGISTERS, 1.0)
        if usual:
            found.setdefault((source, dimension, result["summary"] if dimension else None), {})[bool(pairs)] = result
    return found


def error(score):
    return f"{100 * score['bias']:+.1f} ± {200 * score['bias_error']:.1f}"


def cell(scores):
    return f"{error(scores[DEFAULT])}; {error(scores[PUBLISHED])}" if scores else "-"


def sweep(found, heading, columns, rows):
    """`columns`: heading -> key; `rows`: heading -> function of a column's key that gives the point."""
    return common.table([heading, *columns], [[name, *(cell(found.get(point(key))) for key in columns.values())]
                                              for name, point in rows.items()])


def values(found, source, index):
    return sorted({point[index] for point in found if point[0] == source})


def published_tables(found, source):
    shares = {f"{share} % shared": share for share in values(found, source, 2)}
    threads = {str(count): lambda share, count=count: (source, count, share, REGISTERS, 1.0)
               for count in values(found, source, 1)}
    registers = {f"{count} threads, {share} % shared": (count, share) for count in values(found, source, 1)
                 for share in values(found, source, 2) if (source, count, share, 1, 1.0) in found}
    by_register = {str(number): lambda at, number=number: (source, *at, number, 1.0) for number in values(found, source, 3)}
    periods = {f"{period:g}": period for period in values(found, source, 4)}
    of_period = {"error": lambda period: (source, THREADS, SHARED, REGISTERS, period)}
    return [sweep(found, "threads", shares, threads), sweep(found, "debug registers", registers, by_register),
            sweep(found, "periods, of the usual one", periods, of_period)]


def variation_row(name, programs):
    said = "no" if any(result["withheld"] for result in programs.values()) else "yes"
    return [name, *(cell(scores_of(programs[pairs])) if pairs in programs else "-" for pairs in (False, True)), said]


def variation_tables(found, source):
    tables = []
    for dimension, (heading, usual) in DIMENSIONS.items():
        rows = {key[2]: programs for key, programs in found.items() if key[:2] == (source, dimension)}
        if rows:
            rows = {usual: found.get((source, None, None), {}), **rows}
            tables.append(common.table([heading, "updates", "loads, then stores", "reported"],
                                       [variation_row(name, programs) for name, programs in rows.items()]))
    return tables


def mean_of(scores):
    """Weighted by their precision, with two standard errors."""
    weights = [1 / score["bias_error"] ** 2 for score in scores]
    mean = sum(weight * score["bias"] for weight, score in zip(weights, scores)) / sum(weights)
    return f"{100 * mean:+.1f} ± {200 / sum(weights) ** 0.5:.1f} %"


def is_nearer(scores):
    return abs(scores[DEFAULT]["bias"]) < abs(scores[PUBLISHED]["bias"])


def is_off(score):
    return abs(score["bias"]) > LARGEST_BIAS + 2 * score["bias_error"]


def of_point(point):
    source, threads, shared, registers, periods = point
    return f"{source}, {threads} threads, {shared} % shared, {registers} registers, {periods:g} periods"


def of_variation(key, pairs):
    source, dimension, summary = key
    what = f"{DIMENSIONS[dimension][0]} {summary}" if dimension else "as usual"
    return f"{source}, {what}, {'loads, then stores' if pairs else 'updates'}"


def listed(names):
    return f": {'; '.join(names)}" if names else ""


def published_findings(found):
    off = sorted(abs(scores[DEFAULT]["bias"]) for scores in found.values())
    published = sorted(abs(scores[PUBLISHED]["bias"]) for scores in found.values())
    own = {point: scores[DEFAULT] for point, scores in found.items() if point[3] == REGISTERS}
    wrong = [of_point(point) for point, scores in found.items() if is_off(scores[DEFAULT])]
    farther = [of_point(point) for point, scores in found.items() if not is_nearer(scores)]
    lines = [
        f"- In what the published study varies, the default is nearer to the truth than the published estimator at "
        f"{len(found) - len(farther)} of {len(found)} points{listed(farther)}.",
        f"- Its errors are {100 * off[len(off) // 2]:.1f} % in the median and {100 * off[-1]:.1f} % at most; those of the "
        f"published one {100 * published[len(published) // 2]:.0f} % and {100 * published[-1]:.0f} %.",
        f"- It is off by more than {100 * LARGEST_BIAS:.0f} % beyond two standard errors at {len(wrong)} points{listed(wrong)}."]
    for source in UNIT:
        scores = [score for point, score in own.items() if point[0] == source]
        if scores:
            lines.append(f"- Its mean error over all points of {REGISTERS} registers is {mean_of(scores)} ({UNIT[source]}).")
    return lines


def variation_findings(found):
    judged = {(key, pairs): result for key, programs in found.items() if key[1] for pairs, result in programs.items()}
    if not judged:
        return []
    farther = [of_variation(*at) for at, result in judged.items() if not is_nearer(scores_of(result))]
    wrong = [of_variation(*at) for at, result in judged.items()
             if not result["withheld"] and is_off(scores_of(result)[DEFAULT])]
    return [f"- In what is varied beyond it, the default is nearer at {len(judged) - len(farther)} of {len(judged)} "
            f"points{listed(farther)}.",
            f"- Of the {sum(not result['withheld'] for result in judged.values())} of them whose number a report says, it is "
            f"off by more than {100 * LARGEST_BIAS:.0f} % beyond two standard errors at {len(wrong)}{listed(wrong)}."]


def tables(results):
    found, beyond = points(results), variations(results)
    sources = [source for source in UNIT if any(NAME.fullmatch(result["scenario"])[1] == source for result in results)]
    return "\n\n".join("\n\n".join([f"**{UNIT[source]}**: `post_stratified`; `board`", *published_tables(found, source),
                                     *variation_tables(beyond, source)]) for source in sources)


def write(results):
    findings = "\n".join(published_findings(points(results)) + variation_findings(variations(results)))
    text = TEXT.format(runs=results[0]["runs"], findings=findings)
    common.write_section("accuracy.md", "estimators-published", text + tables(results))
