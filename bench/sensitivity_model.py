# SPDX-License-Identifier: Apache-2.0
"""The study of sensitivity without its measuring: what is varied, what a run is worth, what many runs say."""

import collections
import dataclasses
import math
import statistics

import harness

UNDISTURBED = 0.95    # share of the processors' time that programs have on a machine where nothing else runs
OVER_BUDGET = 1.1     # an overhead up to so many times the budget is within it: the report's own measure
DEFAULT_BUDGET = 3.0  # % of CPU time, of `crosstalk record`


@dataclasses.dataclass(frozen=True)
class Sweep:
    """One parameter is varied, the others have their defaults."""
    name: str
    title: str        # of its axis
    values: tuple     # numbers, or words
    quick: tuple      # those of a quick study
    default: object   # None: a property of the program, which has no default
    says: str         # the parameter's meaning, a sentence


SWEEPS = (
    Sweep("period", "sampling period, ms", (1, 2, 4, 8, 16), (1, 4, 16), 4,
          "CPU time of a thread between two of its samples (`record --period`); longer where the budget demands it."),
    Sweep("watchpoints", "watchpoints", (1, 2, 3, 4), (1, 4), 4, "Debug registers in use (`record --watchpoints`)."),
    Sweep("board", "slots of the bulletin board", (16, 128, 1024, 4096, 16384), (16, 4096), 4096,
          "Lines that the bulletin board remembers (`record --board-slots`). `mixed` works on 2048 lines, `all_to_all` and "
          "`ring` on some 1500 and 500."),
    Sweep("budget", "overhead budget, %", (0.75, 1.5, 3, 6, 12), (0.75, 1.5, 3), DEFAULT_BUDGET,
          "What observing may cost, in % of CPU time (`record --budget`)."),
    Sweep("partner", "partner", ("auto", "board", "next-access", "next-store"), ("auto", "next-store"), "auto",
          "How partners are found (`record --partner`): what it changes in a recording. What the rules themselves give on one and "
          "the same recording is the next parameter."),
    Sweep("estimator", "estimator", ("post_stratified", "board", "board_ipw", "next_access", "next_store"),
          ("post_stratified", "board_ipw"), "post_stratified",
          "How samples become estimates (`report --estimator`), of the recordings made at all defaults."),
    Sweep("threads", "threads", (2, 4, 8, 16, 32, 64), (2, 8, 64), None, "Threads of the program; in "
          "`all_to_all` each writes some 500 lines a round, whatever their number."),
    Sweep("true", "share of true sharing", (0, 0.2, 0.5, 0.8, 1), (0, 0.5, 1), None,
          "Share of the communications of `mixed` that are true sharing (its `--true-tenths`)."),
    Sweep("shared", "share of work that is shared", (0, 0.25, 0.5, 0.75, 1), (0, 0.5, 1), None,
          "Share of the lines that the threads of `all_to_all` write and read that pass between them (its `--posted`)."),
)

LINES = 256       # of a letter of all_to_all, at most
LETTERS = 512     # lines that a thread writes in a round, as far as letters can be so long

PROGRAMS = {  # forced and exact; none spins without yielding, which would depend on what else runs
    "mixed": ("mixed", "--threads", "3", "--true-tenths", "5"),
    "all_to_all": ("all_to_all", "--threads", "3", "--lines", str(LINES)),
    "ring": ("ring", "--threads", "4"),
}
QUICK_PROGRAMS = ("mixed", "all_to_all")


@dataclasses.dataclass(frozen=True)
class Subject:
    """A run: a program bare, or recorded with options and reported by an estimator."""
    program: tuple
    options: tuple = ()
    estimator: str = ""   # empty: the default
    bare: bool = False


@dataclasses.dataclass(frozen=True)
class Point:
    sweep: str
    value: object
    label: str            # of the program, in tables and plots
    subject: Subject


def sweep_named(name):
    return next(sweep for sweep in SWEEPS if sweep.name == name)


def subjects_of(sweep, value, quick):
    """(label, subject) of each program that is run at a value of a sweep."""
    if sweep.name == "threads":
        lines = min(LINES, LETTERS // (value - 1))
        return [("all_to_all", Subject(("all_to_all", "--threads", str(value), "--lines", str(lines)))),
                ("ring", Subject(("ring", "--threads", str(value))))]
    if sweep.name == "true":
        return [("mixed", Subject((*PROGRAMS["mixed"][:-1], str(round(10 * value)))))]
    if sweep.name == "shared":
        posted = () if value == 1 else ("--posted", str(round(LINES * value)))
        return [("all_to_all", Subject((*PROGRAMS["all_to_all"], *posted)))]
    options, estimator = (), ""
    if value != sweep.default:
        if sweep.name == "estimator":
            estimator = value
        else:
            flag = {"board": "--board-slots"}.get(sweep.name, "--" + sweep.name)
            options = (flag, f"{value}ms" if sweep.name == "period" else str(value))
    return [(label, Subject(program, options, estimator)) for label, program in PROGRAMS.items()
            if not quick or label in QUICK_PROGRAMS]


def points(quick=False, names=()):
    """All points of the sweeps called `names` (empty: of all)."""
    return [Point(sweep.name, value, label, subject)
            for sweep in SWEEPS if not names or sweep.name in names
            for value in (sweep.quick if quick else sweep.values)
            for label, subject in subjects_of(sweep, value, quick)]


# ---- what a run is worth --------------------------------------------------------------------------------------

def noise_floor(matrix, detections):
    """Expected distance between a matrix and one drawn from it by `detections` independent draws; None without any.

    Each normalised cell p is drawn with the standard deviation sqrt(p (1 - p) / n), and a normal deviate is on average
    sqrt(2 / pi) standard deviations from its mean; for k equal small cells half the sum is 0.4 sqrt(k / n). Detections
    of one watch are not independent and estimates weigh them, so that no estimate can be expected to be nearer.
    """
    total = sum(map(sum, matrix))
    if detections <= 0 or total <= 0:
        return None
    shares = [count / total for row in matrix for count in row]
    return min(1.0, 0.5 * math.sqrt(2 / math.pi) * sum(math.sqrt(p * (1 - p) / detections) for p in shares))


def phantom_share(costs, truth):
    """Share of the cost found that lies in pairs of threads that do not communicate; None when none was found."""
    matrix = truth["matrix"]
    total = sum(costs.values())
    if total <= 0:
        return None
    right = sum(cost for (producer, consumer, _), cost in costs.items()
                if producer is not None and consumer is not None and matrix[producer][consumer] > 0)
    return max(0.0, 1 - right / total)


def largest_phantom(costs, truth):
    """The largest share of the cost found that a pair of threads has that does not communicate; None as above."""
    total = sum(costs.values())
    if total <= 0:
        return None
    pairs = collections.Counter()
    for (producer, consumer, _), cost in costs.items():
        if producer is None or consumer is None or truth["matrix"][producer][consumer] == 0:
            pairs[producer, consumer] += cost
    return max(pairs.values(), default=0.0) / total


def seen(report, truth):
    """Communications that watchpoints saw on the workload's data."""
    return sum((cell.get(sort) or {}).get("seen") or 0
               for cell in harness.cells_of_data(report, truth) for sort in ("true", "false"))


def cost_elsewhere(report, truth):
    """Cost, in s, found on neither the data nor what the workload synchronises by: nothing is communicated there."""
    known = truth["data"] + truth["sync"]
    there = sum((cell.get(sort) or {}).get("cost_s") or 0.0
                for entry in report["objects"] if any(harness.object_named(entry, name) for name in known)
                for cell in entry["cells"] for sort in ("true", "false"))
    return max(0.0, harness.total_cost(report) - there)


def judged(report, truth):
    """The figures of one run. None: cannot be known of it."""
    forced = truth["true"] + truth["false"]
    cpu_s = harness.cpu_seconds(report)
    costs = harness.cells_by_truth(report, truth)
    detections = seen(report, truth)
    unknown = next((warning["message"] for warning in report["warnings"] if warning["code"] == "too_few_events"), None)
    result = {
        "cpu_s": cpu_s,
        "work_per_s": forced / cpu_s if forced > 0 and cpu_s > 0 else None,
        "samples": report["sampling"]["samples"],
        "detections": detections,
        "detections_per_s": detections / cpu_s if cpu_s > 0 else None,
        "overhead": report["sampling"]["overhead"]["fraction"],
        "distance": None, "of_timed": None, "floor": None, "split_points": None, "phantom": None, "cost": None, "elsewhere": None,
    }
    if unknown:
        return {**result, "unknown": unknown}
    if cpu_s > 0:
        result["cost"] = sum(costs.values()) / cpu_s
        result["elsewhere"] = cost_elsewhere(report, truth) / cpu_s
    if forced > 0:
        found_true = harness.true_share(costs)
        result.update({
            "distance": harness.matrix_distance(costs, truth),
            "of_timed": harness.of_timed(costs, truth),
            "floor": noise_floor(harness.known_matrix(truth), detections),
            "split_points": None if found_true is None else 100 * abs(found_true - harness.known_true_share(truth)),
            "phantom": phantom_share(costs, truth),
        })
    return result


def judged_bare(truth, cpu_s, elapsed_s, processors):
    """The figures of a bare run. `got`: share of the processors' time that its threads, which never sleep, had for
    themselves; what is missing went to other programs."""
    wanted_s = elapsed_s * min(processors, truth["threads"] - 1)
    return {"cpu_s": cpu_s, "work_per_s": (truth["true"] + truth["false"]) / cpu_s if cpu_s > 0 else None,
            "got": min(1.0, cpu_s / wanted_s) if wanted_s > 0 else None}


# ---- what many runs say -----------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Range:
    """The median of some runs, the least and the greatest."""
    median: float
    low: float
    high: float
    count: int


def range_of(values):
    """None when no value is known."""
    known = [value for value in values if value is not None]
    return Range(statistics.median(known), min(known), max(known), len(known)) if known else None


def good_runs(runs):
    """Returns the runs that did not fail, by round."""
    return sorted((run for run in runs if "failed" not in run), key=lambda run: run["round"])


def column(runs, key):
    return [run.get(key) for run in good_runs(runs)]


def work_lost(runs, bare):
    """By how much less work a CPU second does than in the bare runs of the same round; a fraction each round."""
    result = []
    for run in good_runs(runs):
        rates = [other["work_per_s"] for other in good_runs(bare)
                 if other["round"] == run["round"] and other.get("work_per_s")]
        if rates and run.get("work_per_s"):
            result.append(1 - run["work_per_s"] / statistics.median(rates))
    return result


@dataclasses.dataclass(frozen=True)
class Score:
    """A value of a sweep over all its programs: by round, the mean of their distances."""
    value: object
    distance: Range
    floor: float      # mean of the programs' medians
    overhead: float   # fraction: the greatest of the programs' medians


def score(value, runs_of_programs):
    """None when a program has no round that all have, so that values would not be compared alike."""
    if not runs_of_programs:
        return None
    kept = [{run["round"]: run for run in good_runs(runs) if run.get("distance") is not None} for runs in runs_of_programs]
    rounds = set.intersection(*(set(runs) for runs in kept))
    if not rounds:
        return None
    floors = [range_of(run["floor"] for run in runs.values()) for runs in kept]
    overheads = [range_of(run["overhead"] for run in runs.values()) for runs in kept]
    return Score(value, range_of([statistics.fmean(runs[number]["distance"] for runs in kept) for number in rounds]),
                 statistics.fmean(floor.median if floor else 1.0 for floor in floors),
                 max(overhead.median if overhead else 0.0 for overhead in overheads))


@dataclasses.dataclass(frozen=True)
class Choice:
    best: Score            # the nearest of those within the budget
    default: Score
    better: bool           # its worst run is nearer than the default's best
    chance: float          # that some value looks better so although all are alike


def choose(scores, default, budget):
    """Judges a sweep's default by its scores; None if the default was not measured. `budget`: a fraction of CPU time. A
    default over the budget stays in the choice, together with the values up to its own overhead."""
    known = [score for score in scores if score is not None]
    own = next((score for score in known if score.value == default), None)
    if own is None:
        return None
    allowed = max(OVER_BUDGET * budget, own.overhead)
    within = [score for score in known if score.overhead <= allowed]
    best = min(within, key=lambda score: (score.distance.median, score.value != default))
    runs = min(best.distance.count, own.distance.count)
    chance = min(1.0, (len(within) - 1) / math.comb(2 * runs, runs))
    apart = runs > 1 and best.distance.high < own.distance.low
    return Choice(best, own, best.value != default and apart, chance)
