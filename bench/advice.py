#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the advice help? Programs in pairs (bench/advice/), as found and as a report would have them changed: the saving
of CPU time that the report of the first predicts, beside the one that is measured. Writes docs/advice.md."""

import argparse
import dataclasses
import os

import advice_sources
import common

PROGRAMS = os.path.join(common.BUILD, "bench", "advice")

# Change of each: `pad` gives falsely shared data lines of their own, which saves the gain of false sharing; `unshare`
# makes threads share less often, which saves all gain.
CHANGES = {
    "counters": "pad", "results": "pad", "hot_cold": "pad", "neighbouring_locks": "pad",
    "queue_indices": "unshare", "reference_count": "unshare", "statistics": "unshare", "work_queue": "unshare",
    "one_processor": "pad", "handed_over": "pad", "spin": "pad", "barrier": "pad", "ticket_lock": "pad",
    "redis_benchmark": "pad", "berkeley_db": "pad",
}
# Own sources that are not called as the program is: what belongs to it all the same.
OWN_FILES = {"redis_benchmark": ("redis-benchmark.c", "ae.c", "hdr_histogram.c"),
             "berkeley_db": ("mp_", "mut_", "db_", "bt_", "os_", "env_", "berkeley_db.c")}


def arguments():
    result = argparse.ArgumentParser(description=__doc__)
    result.add_argument("--runs", type=int, default=5, help="paired runs of each program (5)")
    result.add_argument("--permille", type=int, default=2000, help="of the usual amount of work (2000)")
    result.add_argument("--only", nargs="*", default=sorted(CHANGES), help="programs")
    result.add_argument("--print", action="store_true", help="show the table, write nothing")
    return result.parse_args()


@dataclasses.dataclass
class Prediction:
    """Fractions of all CPU time."""
    likely: float | None
    low: float
    high: float


class Own:
    """A program of bench/advice/."""

    def __init__(self, name):
        self.name = name

    def command(self, form, permille):
        return [os.path.join(PROGRAMS, f"advice_{self.name}_{form}"), str(permille)]

    def end(self):
        pass


def program_of(name):
    return advice_sources.PROGRAMS[name]() if name in advice_sources.PROGRAMS else Own(name)


def measured(program, options):
    """Saved part of the CPU time, over pairs of runs."""
    savings = []
    for _ in range(options.runs):
        found = common.weigh(program.command("found", options.permille)).cpu_s
        advised = common.weigh(program.command("advised", options.permille)).cpu_s
        savings.append(1 - advised / found)
    return common.median_with_interval(savings)


def predicted(report, change):
    sorts = ("false_sharing",) if change == "pad" else ("true_sharing", "false_sharing")
    totals = report["communication"]["totals"]
    cpu = sum(thread["cpu_s"] or 0 for thread in report["threads"])
    amounts = [totals[sort] for sort in sorts]
    if not cpu or any(amount["gain_ci95"] is None for amount in amounts):
        return None
    likely = [amount["gain_s"] for amount in amounts]
    return Prediction(None if None in likely else sum(likely) / cpu,
                      sum(amount["gain_ci95"][0] for amount in amounts) / cpu,
                      min(1.0, sum(amount["gain_ci95"][1] for amount in amounts) / cpu))


def lacking_of(finding, own):
    """Returns the program's own parts that the finding lacks: its source line (of files that begin with one of `own`),
    its object, its threads. Empty: none."""
    nameless = ("", "memory at ", "memory that has no name", "heap block of ", "stack of thread", "data of ")
    lacks = []
    if not (finding["consumer"] or "").startswith(own):
        lacks.append("line")
    if not finding["object"] or any(part and finding["object"].startswith(part) for part in nameless):
        lacks.append("object")
    if "hread" not in finding["sentence"].split("`")[0]:
        lacks.append("thread")
    return lacks


def lacking(name, finding):
    return lacking_of(finding, OWN_FILES.get(name, (name + ".cpp",)))


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def verdict(prediction, saving):
    if prediction is None:
        return "no prediction"
    false_hope = (prediction.likely if prediction.likely is not None else prediction.low) > 0.10 and saving.median < 0.03
    if false_hope:
        return "**promises too much**"
    # The measured saving has an interval of its own.
    inside = prediction.low - 0.02 <= saving.high and saving.low <= prediction.high + 0.02
    return "inside" if inside else "**outside**"


def row(name, options, folder):
    program = program_of(name)
    try:
        return compared(name, program, options, folder)
    finally:
        program.end()


def compared(name, program, options, folder):
    change = CHANGES[name]
    saving = measured(program, options)
    predictions, findings = [], []
    for run in range(3):
        profile = folder.file(f"{name}{run}.db")
        common.weigh(common.recorded(program.command("found", options.permille), profile))
        report = common.report(profile)
        predictions.append(predicted(report, change))
        findings.append(next((each for each in report["findings"] if each["object"]), report["findings"][0]))
    known = [each for each in predictions if each is not None]
    middle = sorted(known, key=lambda each: each.likely if each.likely is not None else each.high)[len(known) // 2] \
        if known else None
    shown = "-" if middle is None else f"{percent(middle.likely)} ({percent(middle.low)} to {percent(middle.high)})"
    first = findings[0]
    print(f"{name}: {first['sentence']}", flush=True)
    return [f"`{name}`", change, shown, f"{percent(saving.median)} ({percent(saving.low)} to {percent(saving.high)})",
            verdict(middle, saving), f"`{first['kind']}`", f"`{first['object'] or '-'}`", f"{first['consumer'] or '-'}",
            ", ".join(lacking(name, first)) or "-"]


def main():
    options = arguments()
    with common.Folder() as folder:
        rows = [row(name, options, folder) for name in options.only]
    inside = sum("inside" == each[4] for each in rows)
    named = sum(each[-1] == "-" for each in rows)
    header = ["program", "change", "predicted", "measured", "", "first finding", "object", "at", "lacks"]
    text = "\n".join([
        "# Advice and what it gains", "",
        "Each program of `bench/advice/` exists as found and as advised; `redis_benchmark` and `berkeley_db` are real ones,",
        "built from Debian's sources with and without the patches there. *predicted*: of all CPU time of the program as",
        "found, what its report says would be saved (`gain_s` with `gain_ci95`): of false sharing where the change pads,",
        "of all communication where threads share less often; the middle one of three recordings. *measured*: CPU time",
        f"saved, median of {options.runs} paired runs with its 95 % interval. *inside*: the intervals meet within two",
        "points. *lacks*: what the first finding does not name of the program's own source lines, objects and threads.",
        "Measured on " + common.machine() + ". Regenerate with `./dev bench advice`.", "",
        common.table(header, rows), "",
        f"{inside} of {len(rows)} are inside; the first finding of {named} names a line, an object and threads of the program."])
    if options.print:
        print(text)
    else:
        common.write_section("advice.md", "advice", text)


if __name__ == "__main__":
    main()
