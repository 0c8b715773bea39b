# SPDX-License-Identifier: Apache-2.0
"""Plots of the study of sensitivity: small multiples, a row for each parameter."""

import os

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot, ticker

import sensitivity_model as model

matplotlib.rcParams["svg.hashsalt"] = "sensitivity"  # the same figures give the same file
matplotlib.rcParams["font.size"] = 8.5
matplotlib.rcParams["axes.spines.top"] = matplotlib.rcParams["axes.spines.right"] = False

# Okabe and Ito's colours, which the colour-blind tell apart; the markers tell the same.
STYLES = {"mixed": ("#0072B2", "o"), "all_to_all": ("#D55E00", "s"), "ring": ("#009E73", "^")}
FIGURES = (  # file, what it shows, sweeps
    ("sensitivity-settings.svg", "Accuracy and overhead over period, watchpoints, board size and budget",
     ("period", "watchpoints", "board", "budget")),
    ("sensitivity-partners.svg", "Accuracy and overhead of each way to find partners and of each estimator", ("partner", "estimator")),
    ("sensitivity-programs.svg", "Accuracy and overhead over threads, share of true sharing and share of shared work",
     ("threads", "true", "shared")),
)
LOGARITHMIC = ("period", "board", "budget", "threads")


def of_words(sweep):
    return isinstance(sweep.values[0], str)


def panels(sweep):
    """(key of a run, title, factor) of each panel of a row."""
    distance = ("distance", f"distance ({'dashes' if of_words(sweep) else 'dotted'}: floor)", 1)
    if sweep.name == "estimator":
        return [distance, ("split_points", "true/false split, error in points", 1),
                ("phantom", "cost in pairs that do not communicate, %", 100)]
    if sweep.name == "true":
        middle = ("split_points", "true/false split, error in points", 1)
    elif sweep.name == "shared":
        middle = ("cost", "cost found, % of CPU time", 100)
    else:
        middle = ("detections_per_s", "detections per CPU second", 1)
    return [distance, middle, ("overhead", "overhead, % of CPU time", 100)]


def series(study, sweep, label, key, factor):
    """(value, Range) of each point that is known."""
    found = [(point.value, model.range_of(value * factor for value in model.column(study.runs(point), key)
                                          if value is not None)) for point in study.of(sweep, label)]
    return [(value, known) for value, known in found if known]


def place(axes, sweep, values):
    """Position of each value on the axis, and its ticks."""
    if of_words(sweep):
        axes.set_xlim(-0.5, len(values) - 0.5)
        axes.set_xticks(range(len(values)), [value.replace("_", "_\n").replace("-", "-\n") for value in values])
        return {value: index for index, value in enumerate(values)}
    if sweep.name in LOGARITHMIC:
        axes.set_xscale("log", base=2)
        margin = (values[-1] / values[0]) ** 0.05
        axes.set_xlim(values[0] / margin, values[-1] * margin)
    else:
        margin = 0.05 * (values[-1] - values[0])
        axes.set_xlim(values[0] - margin, values[-1] + margin)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    return {value: value for value in values}


def shifted(sweep, position, index, count):
    """Programs stand side by side, so that their ranges can be told apart: a little where the axis is one of numbers."""
    step = index - (count - 1) / 2
    if sweep.name in LOGARITHMIC:
        return position * 2 ** (0.06 * step)
    return position + (0.12 if of_words(sweep) else 0.012 * (sweep.values[-1] - sweep.values[0])) * step


def draw_series(axes, sweep, at, known, label, index, count, dotted=False):
    colour, marker = STYLES[label]
    x = [shifted(sweep, at[value], index, count) for value, _ in known]
    medians = [found.median for _, found in known]
    words = of_words(sweep)
    if dotted:
        axes.plot(x, medians, color=colour, linestyle="none" if words else ":", marker="_" if words else None, markersize=9,
                  linewidth=1.2)
        return
    bars = [[found.median - found.low for _, found in known], [found.high - found.median for _, found in known]]
    axes.errorbar(x, medians, yerr=bars, color=colour, marker=marker, markersize=4, linewidth=1.2, elinewidth=1,
                  capsize=2, linestyle="none" if words else "-", label=label, clip_on=False)


def draw_panel(axes, study, sweep, panel):
    key, title, factor = panel
    values = list(dict.fromkeys(point.value for point in study.of(sweep)))
    at = place(axes, sweep, values)
    if sweep.default in at:
        axes.axvline(at[sweep.default], color="0.9", linewidth=32 if of_words(sweep) else 11, zorder=0)
    labels = study.labels(sweep)
    for index, label in enumerate(labels):
        if key == "distance":
            draw_series(axes, sweep, at, series(study, sweep, label, "floor", 1), label, index, len(labels), dotted=True)
        draw_series(axes, sweep, at, series(study, sweep, label, key, factor), label, index, len(labels))
    if key == "overhead" and sweep.name == "budget":
        axes.plot(values, values, color="0.5", linestyle="--", linewidth=1)
    elif key == "overhead":
        axes.axhline(model.DEFAULT_BUDGET, color="0.5", linestyle="--", linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(sweep.title)
    axes.set_title(title, fontsize=8.5, loc="left")
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)


def legend(figure, all_axes, has_default):
    handles = {}
    for axes in all_axes.flat:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    handles["floor"] = matplotlib.lines.Line2D([], [], color="0.4", linestyle=":")
    handles["budget"] = matplotlib.lines.Line2D([], [], color="0.5", linestyle="--")
    if has_default:
        handles["default"] = matplotlib.lines.Line2D([], [], color="0.9", linewidth=7)
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncol=len(handles), frameon=False)


def draw(study, sweeps, path):
    figure, all_axes = pyplot.subplots(len(sweeps), 3, figsize=(10, 2.35 * len(sweeps) + 0.4), squeeze=False)
    for row, sweep in zip(all_axes, sweeps):
        for axes, panel in zip(row, panels(sweep)):
            draw_panel(axes, study, sweep, panel)
    legend(figure, all_axes, any(sweep.default is not None for sweep in sweeps))
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / figure.get_figheight()))
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
    pyplot.close(figure)


def plots(study, folder):
    """Writes a figure for each group of sweeps that was measured; [(file, what it shows)]."""
    written = []
    for file, shows, names in FIGURES:
        sweeps = [sweep for sweep in study.sweeps() if sweep.name in names]
        if sweeps:
            draw(study, sweeps, os.path.join(folder, file))
            written.append((file, shows))
            print(f"written to {os.path.join(folder, file)}")
    return written
