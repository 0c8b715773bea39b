# SPDX-License-Identifier: Apache-2.0
"""Accuracy and overhead over each parameter of a recording: the measurements of the study. sensitivity_model.py has the
parameters and the value of a run, sensitivity_text.py the tables and sentences, sensitivity_plots.py the plots."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time

import common
import harness
import sensitivity_model as model

SCHEMA = "crosstalk.sensitivity/2"
BARE_RUNS = 2         # of each program in each round
LEAST_TIMEOUT_S = 60
DIGITS = 6            # significant ones, that are kept


class Failed(Exception):
    """A run that gives no figures; its text is one line."""


def one_line(text, limit=160):
    line = next((line.strip() for line in text.splitlines() if line.strip()), "nothing was said")
    return line[:limit]


def run_to_end(command, seconds):
    """A command's output; raises Failed."""
    name = os.path.basename(command[0])
    try:
        result = harness.run(command, timeout=LEAST_TIMEOUT_S + 10 * seconds)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not end within {error.timeout:.0f} s") from error
    if result.status != 0:
        raise Failed(f"{name} ended with {result.status}: {one_line(result.stderr)}")
    return result.stdout


def report_of(profile, estimator, seconds):
    options = ["--estimator", estimator] if estimator else []
    return json.loads(run_to_end([common.CROSSTALK, "report", "-i", profile, "--format", "json", *options], seconds))


def truth_of(output):
    try:
        return json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise Failed("the workload printed no truth") from error


def bare_run(program, seconds, weight_file):
    """The figures of a run that is not recorded."""
    truth = truth_of(run_to_end([common.WEIGH, weight_file, *program], seconds))
    with open(weight_file, encoding="ascii") as file:
        weight = json.load(file)
    return model.judged_bare(truth, weight["cpu_s"], weight["seconds"], len(os.sched_getaffinity(0)))


def rounded(run):
    def short(value):
        if not isinstance(value, float) or value == 0 or not math.isfinite(value):
            return value
        return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
    return {key: short(value) for key, value in run.items()}


# ---- the plan -----------------------------------------------------------------------------------------------------

class Results:
    """The results so far; a file that is written after each recording."""

    def __init__(self, path, head):
        self.path, self.head, self.measurements = path, head, {}

    def runs(self, subject):
        return self.measurements.setdefault(subject, [])

    def take(self, document):
        for entry in document["measurements"]:
            subject = model.Subject(tuple(entry["program"]), tuple(entry["options"]), entry["estimator"], entry["bare"])
            self.measurements[subject] = entry["runs"]

    def write(self):
        """One line a run, so that two studies can be compared."""
        entries = []
        for subject, runs in self.measurements.items():
            what = json.dumps({"program": subject.program, "options": subject.options, "estimator": subject.estimator,
                               "bare": subject.bare})
            lines = ",\n   ".join(json.dumps(rounded(run)) for run in runs)
            entries.append(f'  {what[:-1]}, "runs": [\n   {lines}]}}' if runs else f'  {what[:-1]}, "runs": []}}')
        head = json.dumps(self.head)
        text = f'{head[:-1]},\n "measurements": [\n' + ",\n".join(entries) + "\n ]}\n"
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self.path + ".new", self.path)


def read(path):
    """A results' document; ends the process when it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"bench: {path} cannot be read: {error}")
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        sys.exit(f"bench: {path} holds no results of this study; measure with ./dev bench accuracy --study")
    return document


def recordings(points):
    """Returns the recordings, each once: estimators share the recordings at defaults."""
    seen = {}
    for point in points:
        subject = point.subject
        key = model.Subject(subject.program, subject.options)
        seen.setdefault(key, [])
        if subject.estimator and subject.estimator not in seen[key]:
            seen[key].append(subject.estimator)
    return seen


def steps_of_round(points, number):
    """(subject, estimators) in an order of its own in each round, so that no value always has the same neighbours; bare
    runs of the programs that have settings varied are spread evenly among them."""
    recorded = list(recordings(points).items())
    random.Random(number).shuffle(recorded)
    varied = {subject.program for subject, _ in recorded if subject.options}
    bare = [(model.Subject(program, bare=True), []) for program in sorted(varied)] * BARE_RUNS
    for index, step in enumerate(bare):
        recorded.insert((index + 1) * len(recorded) // (len(bare) + 1), step)
    return recorded


# ---- measuring ------------------------------------------------------------------------------------------------------

def timed(program, seconds):
    return [os.path.join(common.WORKLOADS, program[0]), *program[1:], "--seconds", str(seconds)]


def measure(subject, estimators, seconds, folder):
    """[(subject, figures)] of one run of it, and of each estimator's report of that run."""
    def attempt(of, action):
        try:
            return of, action()
        except Failed as failure:
            return of, {"failed": str(failure)}

    program = timed(subject.program, seconds)
    if subject.bare:
        return [attempt(subject, lambda: bare_run(program, seconds, folder.file("weight.json")))]
    profile = folder.file("run.db")
    try:
        output = run_to_end(common.recorded(program, profile, subject.options), seconds)
        truth = truth_of(output)
    except Failed as failure:
        return [(of, {"failed": str(failure)}) for of in with_estimators(subject, estimators)]
    return [attempt(of, lambda: model.judged(report_of(profile, of.estimator, seconds), truth))
            for of in with_estimators(subject, estimators)]


def with_estimators(subject, estimators):
    return [subject] + [model.Subject(subject.program, subject.options, name) for name in estimators]


def shown(subject, run):
    what = " ".join([*subject.program, *subject.options]) + (" (bare)" if subject.bare else "")
    if "failed" in run:
        return f"{what}: {run['failed']}"
    figures = [f"{name} {run[key]:.3f}" for name, key in (("distance", "distance"), ("overhead", "overhead"))
               if run.get(key) is not None]
    return f"{what}: " + (", ".join(figures) or f"{run['cpu_s']:.2f} s of CPU time")


def remaining(left, seconds, done, elapsed_s):
    """Minutes: a run's time so far, and what a run takes at least before there are any."""
    each = elapsed_s / done if done else seconds + 1.0
    return left * each / 60


def has(results, subject, number):
    return sum(run["round"] == number for run in results.runs(subject))


def measure_all(points, results, runs, seconds):
    """Runs what the results do not have yet."""
    plan, wanted = [], {}
    for number in range(runs):
        for subject, estimators in steps_of_round(points, number):
            wanted[subject, number] = wanted.get((subject, number), 0) + 1
            if all(has(results, of, number) >= wanted[subject, number] for of in with_estimators(subject, estimators)):
                continue
            plan.append((number, subject, estimators))
    print(f"{len(plan)} runs of {seconds:g} s, about {remaining(len(plan), seconds, 0, 0):.0f} min", flush=True)
    begin = time.monotonic()
    with common.Folder() as folder:
        for done, (number, subject, estimators) in enumerate(plan):
            for of, run in measure(subject, estimators, seconds, folder):
                results.runs(of).append({"round": number, **run})
                if of == subject:
                    left = remaining(len(plan) - done - 1, seconds, done + 1, time.monotonic() - begin)
                    print(f"[{done + 1}/{len(plan)}, {left:.0f} min left] {shown(of, run)}", flush=True)
            results.write()


def results_for(path, runs, seconds, quick, resume):
    head = {"schema": SCHEMA, "machine": common.machine(), "runs": runs, "seconds": seconds, "quick": quick}
    results = Results(path, head)
    if resume:
        document = read(path)
        known = {key: document.get(key) for key in head}
        if known != head:
            differs = ", ".join(f"{key} {known[key]} instead of {head[key]}" for key in head if known[key] != head[key])
            sys.exit(f"bench: {path} cannot be resumed: it has {differs}; measure anew without --resume")
        results.take(document)
    return results


def study(path, runs, seconds, quick=False, names=(), resume=False):
    """Measures and writes the results to `path`."""
    results = results_for(path, runs, seconds, quick, resume)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measure_all(model.points(quick, names), results, runs, seconds)
    except KeyboardInterrupt:
        results.write()
        print(f"\nbench: interrupted; what was measured is in {path}: the same command with --resume goes on",
              file=sys.stderr)
        sys.exit(130)
    results.write()
    print(f"written to {path}")
