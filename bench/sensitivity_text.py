# SPDX-License-Identifier: Apache-2.0
"""Tables and sentences of the study of sensitivity, from its results."""

import statistics

import common
import sensitivity_model as model

CHANCE_TAKEN = 0.05  # a likelier chance is no finding

EXPLANATION = """## Sensitivity

Written by `./dev bench accuracy --study`; every figure is measured, and every sentence with a figure in it is made from
the results, which are in [{results}]({results}): `./dev bench accuracy --from docs/{results}` writes this section anew.

One parameter is varied at a time, the others have their defaults. The programs force their communication and count
it exactly (`tests/workloads/`): `mixed` (three threads in turn, each communicates to the next one only; half true and half
false sharing), `all_to_all` (three threads, each pair alike) and `ring` (four threads, each gives to the next one only).
Each point is {runs} of {seconds:g} s; a figure is the median, in brackets the least and the greatest. Each round goes through all points in an order of its
own, so that what drifts on the machine is spread over all.

- *distance*: half the sum of absolute differences of the matrix of costs found and the one that the program's threads
  have timed, each normalised (0 = equal, 1 = nothing in common; 1 also where nothing was seen).
- *floor*: the distance that is expected of a matrix drawn by as many independent detections from the known one, about
  0.4 sqrt(cells / detections). Where distance and floor are alike, more detections would help and nothing else;
  where the distance is well above the floor, something else is wrong.
- *cost / timed*: the cost found on the data, divided by the timed cost.
- *split*: difference of the shares of true sharing in the cost found and timed, in points of 100.
- *phantom*: share of the cost found that lies in pairs of threads that do not communicate.
- *elsewhere*: cost found on variables that are neither the program's data nor what it synchronises by, as a share
  of CPU time. It should be 0.
- *detections/s*: communications seen by watchpoints on the data, by second of the threads' CPU time.
- *overhead*: as the recording measured it, share of CPU time.
- *work lost*: by how much fewer communications a CPU second of the program did than in bare runs of the same round. It
  includes what the recording cannot know of itself, and the program's own ups and downs.
- `-`: cannot be known: nothing was communicated, nothing of it was seen, or there were no bare runs.

Machine: {machine}. {load}

"""


class Study:
    """A results' document by subject."""

    def __init__(self, document):
        self.document = document
        self.quick = document["quick"]
        self.runs_of = {model.Subject(tuple(entry["program"]), tuple(entry["options"]), entry["estimator"],
                                      entry["bare"]): entry["runs"] for entry in document["measurements"]}
        self.points = [point for point in model.points(self.quick) if self.runs_of.get(point.subject)]

    def runs(self, point):
        return self.runs_of[point.subject]

    def lost(self, point):
        """For settings only: reports of one recording by several estimators are one run."""
        bare = self.runs_of.get(model.Subject(point.subject.program, bare=True), [])
        return [] if point.subject.estimator else model.work_lost(self.runs(point), bare)

    def sweeps(self):
        """Returns the measured sweeps. All share the recordings at defaults, which are no sweep by themselves."""
        return [sweep for sweep in model.SWEEPS if len({point.value for point in self.of(sweep)}) > 1]

    def of(self, sweep, label=None):
        return [point for point in self.points if point.sweep == sweep.name and label in (None, point.label)]

    def labels(self, sweep):
        return list(dict.fromkeys(point.label for point in self.of(sweep)))

    def scores(self, sweep):
        """Returns the scores of the values that all programs were measured at."""
        expected = {value: len(model.subjects_of(sweep, value, self.quick)) for value in sweep.values}
        result = []
        for value in sweep.values:
            runs = [self.runs(point) for point in self.of(sweep) if point.value == value]
            result.append(model.score(value, runs) if len(runs) == expected[value] else None)
        return result


def range_text(values, form="{:.3f}"):
    found = model.range_of(values)
    if found is None:
        return "-"
    text = form.format(found.median)
    return text if found.count < 2 else f"{text} ({form.format(found.low)}..{form.format(found.high)})"


def runs_text(runs):
    """How many runs; of those that failed, or told nothing, why."""
    good = model.good_runs(runs)
    reasons = [run["failed"] for run in runs if "failed" in run] + [run["unknown"] for run in good if run.get("unknown")]
    text = str(len(good)) if len(good) == len(runs) else f"{len(good)} of {len(runs)}"
    return text + "".join(f"; {reason}" for reason in dict.fromkeys(reasons)).replace("|", "/")


def value_text(sweep, value):
    text = f"`{value}`" if isinstance(value, str) else f"{value:g}"
    return f"**{text}**" if value == sweep.default else text


HEADER = ["program", "distance", "floor", "cost / timed", "split", "phantom", "elsewhere", "detections/s", "overhead", "work lost", "runs"]


def row(study, sweep, point):
    runs = study.runs(point)

    def text(key, form="{:.3f}"):
        return range_text(model.column(runs, key), form)

    floor = model.range_of(model.column(runs, "floor"))
    return [value_text(sweep, point.value), f"`{point.label}`", text("distance"), f"{floor.median:.3f}" if floor else "-",
            text("of_timed", "{:.2f}"), text("split_points", "{:.1f}"), text("phantom"), text("elsewhere", "{:.4f}"), text("detections_per_s", "{:.0f}"),
            text("overhead"), range_text(study.lost(point)), runs_text(runs)]


def table(study, sweep):
    return common.table([sweep.title, *HEADER], [row(study, sweep, point) for point in study.of(sweep)])


# ---- what it says -------------------------------------------------------------------------------------------------

def distance_text(score):
    where = "" if score.distance.count < 2 else f" ({score.distance.low:.3f}..{score.distance.high:.3f})"
    return f"{score.distance.median:.3f}{where}"


def odds_text(chance):
    return f"{100 * chance:.0f} %" if chance >= 0.01 else "less than 1 %"


def about_choice(sweep, choice):
    best, default = choice.best, choice.default
    names = f"{value_text(sweep, best.value)} has the smallest mean distance, {distance_text(best)}"
    against = f"the default {value_text(sweep, default.value)} has {distance_text(default)}"
    if best.value == default.value:
        return f"the default {value_text(sweep, default.value)} has the smallest mean distance, {distance_text(default)}"
    if best.distance.count < 2:
        return f"{names}; {against}. One run each tells nothing of whether that is chance"
    if choice.better:
        odds = f"were all values alike, one would look so much better with a chance of {odds_text(choice.chance)}"
        if choice.chance > CHANCE_TAKEN:
            return f"{names}; {against}. The ranges do not overlap, but {odds}: more runs would tell"
        return f"{names}; {against}. **The ranges do not overlap**: {odds}"
    return f"{names}; {against}. The ranges overlap: nothing speaks against the default"


def about_default(study, sweep, budget=model.DEFAULT_BUDGET / 100):
    scores = study.scores(sweep)
    choice = model.choose(scores, sweep.default, budget)
    if choice is None:
        return f"- **{sweep.title}**: the default was not measured with all programs."
    over = [score for score in scores if score and score.overhead > model.OVER_BUDGET * budget]
    text = f"- **{sweep.title}**: of the values within the budget, {about_choice(sweep, choice)}."
    if over:
        text += " Over the budget of " + f"{100 * budget:g} %: " + ", ".join(
            f"{value_text(sweep, score.value)} ({100 * score.overhead:.1f} %)" for score in over) + "."
    return text


def about_half_budget(study):
    """Accuracy at half the default overhead."""
    sweep = model.sweep_named("budget")
    scores = {score.value: score for score in study.scores(sweep) if score}
    half, whole = scores.get(model.DEFAULT_BUDGET / 2), scores.get(model.DEFAULT_BUDGET)
    if half is None or whole is None:
        return None
    return (f"- **half the overhead**: with a budget of {half.value:g} % ({100 * half.overhead:.1f} % spent) the mean distance "
            f"is {distance_text(half)}, floor {half.floor:.3f}; with {whole.value:g} % ({100 * whole.overhead:.1f} % spent) it is "
            f"{distance_text(whole)}, floor {whole.floor:.3f}.")


def about_detections(study, sweep):
    """How many communications are seen at the ends of a sweep of settings, against the default."""
    def rate(value):
        rates = [model.range_of(model.column(study.runs(point), "detections_per_s"))
                 for point in study.of(sweep) if point.value == value]
        known = [found.median for found in rates if found]
        return statistics.fmean(known) if known else None

    own = rate(sweep.default)
    values = [point.value for point in study.of(sweep)]
    ends = [value for value in dict.fromkeys((values[0], values[-1])) if value != sweep.default and rate(value) is not None]
    if not own or not ends:
        return None
    told = " and ".join(f"{rate(value) / own:.2f} with {value_text(sweep, value)}" for value in ends)
    return f"  Communications seen by CPU second, on the mean of the programs, of those at the default: {told}."


def about_program(study, sweep, label):
    """Returns the place along a property of the program where the distance is far above the floor, and the ends."""
    known = []
    for point in study.of(sweep, label):
        distance, floor = (model.range_of(model.column(study.runs(point), key)) for key in ("distance", "floor"))
        if distance:
            known.append((point.value, distance, floor))
    if not known:
        return None
    told = ", ".join(f"{value:g}: {distance.median:.3f}" + (f" (floor {floor.median:.3f})" if floor else "")
                     for value, distance, floor in known)
    return f"- **{sweep.title}**, `{label}`: distance at {told}."


def about_silence(study):
    """Reports findings in programs without sharing."""
    sweep = model.sweep_named("shared")
    silent = [run for point in study.of(sweep) if point.value == 0 for run in model.good_runs(study.runs(point))]
    found = model.range_of(run.get("elsewhere") for run in silent)
    if found is None:
        return None
    return (f"- **nothing shared**: where no line passes between the threads but those they meet by, {found.high:.2%} of CPU "
            f"time at most was taken for communication ({found.count} runs).")


def sentences(study):
    """Puts the figures into words, as a Markdown list; no number is missing from the results."""
    lines = []
    for sweep in study.sweeps():
        if sweep.default is not None:
            lines += [about_default(study, sweep), None if sweep.name == "estimator" else about_detections(study, sweep)]
        else:
            lines += [about_program(study, sweep, label) for label in study.labels(sweep)]
    lines += [about_half_budget(study), about_silence(study)]
    return "\n".join(line for line in lines if line)


def about_load(study):
    """True if the machine was used by the study alone."""
    got = model.range_of(run.get("got") for subject, runs in study.runs_of.items() if subject.bare
                         for run in model.good_runs(runs))
    if got is None:
        return "What else ran on it is not known: there were no bare runs."
    text = f"Bare runs had {got.median:.0%} of its processors' time ({got.low:.0%}..{got.high:.0%})"
    return text + ("." if got.low >= model.UNDISTURBED else
                   ": **other programs ran beside the study**, so ranges are wider than they need be.")


def section(study, results, plots):
    """The section of docs/accuracy.md. `plots`: [(file, what it shows)]."""
    document = study.document
    runs = "1 run" if document["runs"] == 1 else f"{document['runs']} runs"
    text = EXPLANATION.format(results=results, runs=runs, seconds=document["seconds"], machine=document["machine"], load=about_load(study))
    text += "\n\n".join(f"![{shows}]({file})" for file, shows in plots)
    text += ("\n\n### What it says of the defaults\n\nThe mean of the programs' distances is compared, among the values whose "
             f"overhead is within the default budget of {model.DEFAULT_BUDGET:g} %. The floor tells what of a distance is chance.\n\n")
    text += sentences(study)
    text += "\n\n### Tables\n\nThe default is in bold."
    for sweep in study.sweeps():
        text += f"\n\n**{sweep.title}.** {sweep.says}\n\n{table(study, sweep)}"
    return text + "\n"
