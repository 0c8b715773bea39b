# SPDX-License-Identifier: Apache-2.0
"""Reports of workloads that force their communication, against what they force: a table of many workloads at defaults,
and a study of how accuracy and overhead depend on each parameter. Writes docs/accuracy.md."""

import argparse
import json
import os
import statistics
import subprocess
import sys

import common
import counts
import harness
import sensitivity
import sensitivity_model
import sensitivity_text

CASES = [
    ("ping_pong", ["--seconds", "3"]),
    ("ping_pong", ["--seconds", "4", "--wait", "futex", "--lines", "128"]),
    ("ring", ["--seconds", "10", "--threads", "3"]),
    ("ring", ["--seconds", "10", "--threads", "4"]),
    ("halo_exchange", ["--iterations", "220000", "--threads", "2"]),
    ("halo_exchange", ["--iterations", "150000", "--threads", "3"]),
    ("one_writer_many_readers", ["--seconds", "4", "--threads", "3"]),
    ("migrating_object", ["--seconds", "4", "--threads", "2"]),
    ("pipeline", ["--seconds", "4", "--threads", "3"]),
    ("all_to_all", ["--seconds", "4", "--threads", "2", "--lines", "64"]),
    ("all_to_all", ["--seconds", "10", "--threads", "3", "--lines", "64"]),
    ("reduction_tree", ["--seconds", "4", "--threads", "2", "--lines", "1024"]),
    ("reduction_tree", ["--seconds", "10", "--threads", "4", "--lines", "1024"]),
    ("work_stealing", ["--seconds", "4", "--threads", "2"]),
    ("work_stealing", ["--seconds", "8", "--threads", "3"]),
    ("clone_threads", ["--seconds", "3"]),
    ("processes", ["--seconds", "4", "--wait", "yield"]),
    ("processes", ["--seconds", "8", "--wait", "yield", "--threads", "3", "--memory", "memfd"]),
    ("false_sharing", ["--seconds", "3"]),
    ("false_sharing", ["--seconds", "3", "--stride", "4", "--bytes", "4"]),
    ("openmp_reduction", ["--seconds", "3"]),
    ("mixed", ["--seconds", "8", "--true-tenths", "8"]),
    ("mixed", ["--seconds", "8", "--true-tenths", "5"]),
    ("mixed", ["--seconds", "8", "--true-tenths", "2"]),
    ("mixed", ["--seconds", "8", "--threads", "3"]),
    ("mixed", ["--seconds", "8", "--threads", "8"]),
    ("private_only", ["--seconds", "3"]),
    ("read_only_sharing", ["--seconds", "3"]),
]

# Each thread has a processor of its own.
MANY = [(name, ["--seconds", "6", "--threads", threads, *more]) for threads in ("8", "16") for name, more in [
    ("ring", []), ("one_writer_many_readers", []), ("pipeline", []), ("all_to_all", ["--lines", "64"]),
    ("reduction_tree", ["--lines", "1024"]), ("work_stealing", []), ("mixed", []), ("false_sharing", [])]]

MANY_EXPLANATION = """## Many threads, each on a processor of its own

Written by `./dev bench accuracy --many`. The columns are those of the first table; medians of {runs} runs, the worst in
brackets.

Machine: {machine}.
"""

EXPLANATION = """# Accuracy

Written by `./dev bench accuracy`; every figure below is measured, none is typed.

Each workload (tests/workloads/) forces its communication and prints how much there was; most time, too, what it costs
them (`cost_clock.h`): a line is near when both threads run on one processor and far when they do not, so that costs
differ between pairs that communicate alike. Shown are medians of {runs} runs, the worst in brackets.

- *distance of costs*: half the sum of absolute differences between the matrix of costs found and the one that the
  program has timed, each normalised to a sum of 1 (0 = equal, 1 = nothing in common). Where a workload synchronises by
  lines other than its data's, the cells of the data's variable are taken. In *italics*: the program does not time
  itself, and how often its threads communicate is taken for what it costs them.
- *of counts*: the same distance of counts, found against forced, of runs whose report counts every pair that communicates.
- *cost / timed*: the cost found on the data, divided by the timed cost.
- *floor*: the distance to be expected of as many independent detections, about 0.4 sqrt(cells / detections).
- *phantom*: share of the cost found that lies in pairs of threads that do not communicate, all together; *largest*: in
  one of them.
- *true sharing*: share of the cost found, and of the one timed (else of the communications forced).
- *cost*: all communication found, as a share of the threads' CPU time. Where nothing is communicated it should
  be 0.
- *count*: communications found / forced, over the pairs and kinds that the report counts. The second figure is their
  share of all forced communications.
- *detections/s*: communications on the data seen by watchpoints, by second of the threads' CPU time.
- *first*: in how many runs the variable that holds the data came first among the objects (sync aside).

Distances exceed their floors because a floor assumes independent detections of equal weight. But one watch gives
several detections, and each counts for the time of its sample. A program of more threads than processors that waits for
most of its time has few samples. A program that switches context all the time (`ring`, `all_to_all` and
`one_writer_many_readers` of three and more threads) is watched in bursts of a second, to keep the budget: a higher
`--budget` helps.
`reduction_tree` also times the accesses to its threads' own lines, and `migrating_object` the second
access to each line, which communicate nothing: what is found there is less than was timed.

Machine: {machine}.
"""


def observe(name, arguments, profile, options=()):
    command = common.recorded([os.path.join(common.WORKLOADS, name), *arguments], profile, options)
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"bench: {name} ended with {shown.returncode}: {shown.stderr.strip()}")
    return common.report(profile), json.loads(shown.stdout.strip().splitlines()[-1])


def counted(report, truth):
    """Returns (communications counted / forced, the share of the forced ones compared); None if nothing was counted.
    Pairs and kinds of sharing without a count in the report are on neither side."""
    known = [amount for sort in ("true", "false") for amount in counts.amounts(report, truth, sort)]
    found = sum(count[0] for _, count, _ in known if count)
    forced = sum(amount for amount, count, _ in known if count)
    return (found / forced, forced / sum(amount for amount, _, _ in known)) if forced else None


def distance_of_counts(report, truth):
    """None where an amount that was forced has no count."""
    known = [amount for sort in ("true", "false") for amount in counts.amounts(report, truth, sort)]
    if not known or any(count is None for _, count, _ in known):
        return None
    found_sum, forced_sum = sum(count[0] for _, count, _ in known), sum(forced for forced, _, _ in known)
    return 0.5 * sum(abs(count[0] / found_sum - forced / forced_sum) for forced, count, _ in known)


def compare(report, truth):
    costs = harness.cells_by_truth(report, truth)
    objects = report["objects"]
    if truth["sync"]:
        objects = [entry for entry in objects if any(harness.object_named(entry, name) for name in truth["data"])]
    count = counted(report, truth)
    silent = not truth["object"] or truth["workload"] == "read_only_sharing"
    return {
        "distance": None if silent else harness.matrix_distance(costs, truth),
        "of_counts": distance_of_counts(report, truth) if truth["exact"] and not silent else None,
        "floor": None if silent else sensitivity_model.noise_floor(harness.known_matrix(truth),
                                                                   sensitivity_model.seen(report, truth)),
        "timed": harness.is_timed(truth),
        "of_timed": harness.of_timed(costs, truth),
        "phantom": None if silent else sensitivity_model.phantom_share(costs, truth),
        "largest": None if silent else sensitivity_model.largest_phantom(costs, truth),
        "detections": None if silent else sensitivity_model.seen(report, truth) / harness.cpu_seconds(report),
        "true": None if silent else harness.true_share(costs),
        "known_true": None if silent else harness.known_true_share(truth),
        "cost": harness.total_cost(report) / harness.cpu_seconds(report),
        "count": count if truth["exact"] and not silent else None,
        "first": None if silent else bool(objects) and harness.object_named(objects[0], truth["object"]),
        "overhead": report["sampling"]["overhead"]["fraction"],
    }


def median_and_worst(values, worst=max, form="{:.3f}"):
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{form.format(statistics.median(known))} ({form.format(worst(known))})"


def counts_text(known):
    """Formats (ratio, share counted): the median and the worst ratio, and the share of the communications that they
    cover."""
    if not known:
        return "-"
    ratios = [ratio for ratio, _ in known]
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    covered = statistics.median(share for _, share in known)
    return f"{statistics.median(ratios):.2f} ({worst:.2f}), {100 * covered:.0f} %"


def row(name, arguments, results):
    def column(key):
        return [result[key] for result in results]
    shares = [share for share in column("known_true") if share is not None]
    known = statistics.median(shares) if shares else None
    distance = median_and_worst(column("distance"))
    first = [value for value in column("first") if value is not None]
    return [
        "`" + " ".join([name, *arguments]) + "`",
        distance if column("timed")[0] or distance == "-" else f"*{distance}*",
        median_and_worst(column("of_counts")),
        median_and_worst(column("floor")),
        median_and_worst(column("phantom"), form="{:.4f}"),
        median_and_worst(column("largest"), form="{:.4f}"),
        "-" if known is None else
        median_and_worst(column("true"), lambda found: max(found, key=lambda share: abs(share - known))) + f" of {known:.3f}",
        median_and_worst(column("cost"), form="{:.4f}"),
        median_and_worst(column("of_timed"), lambda ratios: max(ratios, key=lambda ratio: abs(ratio - 1)), "{:.2f}"),
        counts_text([count for count in column("count") if count]),
        median_and_worst(column("detections"), min, form="{:.0f}"),
        f"{sum(first)}/{len(first)}" if first else "-",
        median_and_worst(column("overhead")),
    ]


def measure_table(cases, runs, only):
    rows = []
    with common.Folder() as folder:
        for name, arguments in cases:
            if only not in name:
                continue
            results = [compare(*observe(name, arguments, folder.file("run.db"))) for _ in range(runs)]
            rows.append(row(name, arguments, results))
            print(" | ".join(rows[-1]), flush=True)
    return common.table(["workload", "distance of costs", "of counts", "floor", "phantom", "largest", "true sharing",
                         "cost", "cost / timed", "count", "detections/s", "first", "overhead"], rows)


def write_table(section, explanation, runs, text):
    common.write_section("accuracy.md", section, explanation.format(runs=runs, machine=common.machine()) + "\n" + text + "\n")


def write_study(path):
    """Plots and text of the results in `path`, beside it; of results in docs/, as a section of docs/accuracy.md."""
    import sensitivity_plots  # needs matplotlib, which measuring does not
    folder = os.path.dirname(os.path.abspath(path))
    study = sensitivity_text.Study(sensitivity.read(path))
    text = sensitivity_text.section(study, os.path.basename(path), sensitivity_plots.plots(study, folder))
    if os.path.realpath(folder) == os.path.realpath(os.path.join(common.TOP, "docs")):
        common.write_section("accuracy.md", "sensitivity", text)
        return
    with open(os.path.join(folder, "sensitivity.md"), "w", encoding="utf-8") as file:
        file.write(text)
    print(f"written to {file.name}")


def study_path(options):
    """Results of a part of the study are no documentation."""
    if options.output:
        return options.output
    if not options.quick and not options.sweep:
        return os.path.join(common.TOP, "docs", "sensitivity.json")
    folder = os.path.join(common.BUILD, "sensitivity")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, "sensitivity.json")


def parse():
    sweeps = [sweep.name for sweep in sensitivity_model.SWEEPS]
    parser = argparse.ArgumentParser(prog="./dev bench accuracy", description=__doc__)
    parser.add_argument("--many", action="store_true", help="only the table of workloads of 8 and 16 threads, for a machine "
                        "of 16 processors")
    parser.add_argument("--table", action="store_true", help="only the table of workloads at defaults")
    parser.add_argument("--observer", action="store_true", help="only the table of workloads watched from outside and from inside")
    parser.add_argument("--methods", action="store_true", help="only the table of workloads of two threads by watchpoints and by probes")
    parser.add_argument("--waits", action="store_true", help="only the table of waits, measured inside and sampled from outside")
    parser.add_argument("--study", action="store_true", help="only the study of sensitivity")
    parser.add_argument("--quick", action="store_true",
                        help="fewer values, programs and runs, shorter; the study goes to the build folder, the table nowhere")
    parser.add_argument("--runs", type=int, help="runs of each workload (default 3; quick: 1, of the study 2)")
    parser.add_argument("--seconds", type=float, help="length of a run of the study (default 4; quick: 2.5)")
    parser.add_argument("--only", default="", help="table of the workloads whose name contains this; writes no document")
    parser.add_argument("--sweep", action="append", default=[], choices=sweeps,
                        help="only this parameter of the study, may be repeated; goes to the build folder")
    parser.add_argument("--output", default="", metavar="FILE",
                        help="results of the study, plots and text beside it (default docs/sensitivity.json)")
    parser.add_argument("--resume", action="store_true", help="measure what the results of the study lack")
    parser.add_argument("--from", dest="source", default="", metavar="FILE",
                        help="plots and text of the study from its results, without measuring")
    options = parser.parse_args()
    if options.runs is not None and options.runs < 1:
        parser.error(f"--runs {options.runs}: choose 1 or more")
    if options.seconds is not None and not 0.1 <= options.seconds <= 600:
        parser.error(f"--seconds {options.seconds:g}: choose 0.1 to 600")
    return options


def main():
    options = parse()
    if options.source:
        return write_study(options.source)
    if options.observer:
        import accuracy_outside  # which measures by this module
        return accuracy_outside.measure_table(options.runs or (1 if options.quick else 3), options.only,
                                              not options.only and not options.quick)
    if options.methods:
        import accuracy_methods  # which measures by this module
        return accuracy_methods.measure_table(options.runs or (1 if options.quick else 5), options.only,
                                              not options.only and not options.quick)
    if options.waits:
        import accuracy_waits  # which measures by this module
        return accuracy_waits.measure_table(options.runs or (1 if options.quick else 5), options.only,
                                            not options.only and not options.quick)
    if not options.study and not options.sweep:
        cases, section, explanation = ((MANY, "communication-many", MANY_EXPLANATION) if options.many else
                                       (CASES, "communication", EXPLANATION))
        runs = options.runs or (1 if options.quick else 3)
        text = measure_table(cases, runs, options.only)
        if not options.only and not options.quick:
            write_table(section, explanation, runs, text)
    if not options.table and not options.only and not options.many:
        path = study_path(options)
        sensitivity.study(path, options.runs or (2 if options.quick else 3),
                          options.seconds or (2.5 if options.quick else 4), options.quick, options.sweep, options.resume)
        write_study(path)


if __name__ == "__main__":
    main()
