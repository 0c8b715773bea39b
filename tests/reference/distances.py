# SPDX-License-Identifier: Apache-2.0
"""Measures the distance of a report from a reference. Pure functions of the two."""

import os

SORTS = ("true", "false")


def bare(name):
    """`(anonymous namespace)::ball`, `ball` and `ball[3]` are all the variable `ball`."""
    return name.split("[")[0].split(".")[0].rsplit("::", 1)[-1]


# ---- matrices: {(producer, consumer, sort): weight} -----------------------------------------------------------

def collect(rows_of_cells, weight):
    matrix = {}
    for cells in rows_of_cells:
        for cell in cells:
            for sort in SORTS:
                amount = weight(cell, sort)
                if amount:
                    key = (cell["producer"], cell["consumer"], sort)
                    matrix[key] = matrix.get(key, 0.0) + amount
    return matrix


def chosen_cells(whole, objects, names):
    """The whole matrix, or the cells of the objects with these names."""
    if not names:
        return [whole]
    return [row["cells"] for row in objects if bare(row["name"]) in names or row["name"] in names]


def reference_matrix(reference, names=()):
    return collect(chosen_cells(reference["cells"], reference["objects"], names), lambda cell, sort: cell[sort])


def unit_of(report):
    """`count` where the profile's source counts, else `cost_s`."""
    cells = report["communication"]["cells"]
    return "count" if any((cell.get(sort) or {}).get("count") is not None for cell in cells for sort in SORTS) else "cost_s"


def report_matrix(report, unit, names=()):
    return collect(chosen_cells(report["communication"]["cells"], report["objects"], names),
                   lambda cell, sort: (cell.get(sort) or {}).get(unit) or 0.0)


def by_pair(matrix):
    pairs = {}
    for (producer, consumer, _), amount in matrix.items():
        pairs[producer, consumer] = pairs.get((producer, consumer), 0.0) + amount
    return pairs


def shape_distance(one, other):
    """Half the sum of absolute differences of two matrices by pair, each normalised to a sum of 1: 0..1. None when
    one of them is empty."""
    first, second = by_pair(one), by_pair(other)
    first_sum, second_sum = sum(first.values()), sum(second.values())
    if first_sum <= 0 or second_sum <= 0:
        return None
    return 0.5 * sum(abs(first.get(key, 0.0) / first_sum - second.get(key, 0.0) / second_sum)
                     for key in set(first) | set(second))


def true_share(matrix):
    total = sum(matrix.values())
    return sum(amount for (_, _, sort), amount in matrix.items() if sort == "true") / total if total > 0 else None


def pairs_only_in(one, other):
    """Pairs of `one` that have nothing in `other`, with their share of `one`, largest first."""
    mine, total = by_pair(one), sum(one.values())
    others = by_pair(other)
    rows = [{"producer": producer, "consumer": consumer, "share": amount / total}
            for (producer, consumer), amount in mine.items() if not others.get((producer, consumer))]
    return sorted(rows, key=lambda row: (-row["share"], row["producer"], row["consumer"]))


# ---- what comes first -----------------------------------------------------------------------------------------

def first_names(rows, key, most):
    names = []
    for row in rows:
        name = key(row)
        if name is not None and name not in names:
            names.append(name)
    return names[:most]


def first_compared(reference_rows, report_rows, key, most):
    """The first names of both, whether the very first agree, and how many of the reference's are in the report's."""
    known, found = first_names(reference_rows, key, most), first_names(report_rows, key, most)
    return {
        "reference": known,
        "found": found,
        "first_equal": None if not known or not found else known[0] == found[0],
        "shared": len(set(known) & set(found)),
    }


def source_line(row):
    return None if row["file"] is None or row["line"] is None else f"{os.path.basename(row['file'])}:{row['line']}"


def lines_compared(reference, report, role, most):
    return first_compared([row for row in reference["lines"] if row["role"] == role],
                          [row for row in report["lines"] if row["role"] == role], source_line, most)


# ---- loops ----------------------------------------------------------------------------------------------------

PER_ITERATION = {"loads": "loads_per_s", "stores": "stores_per_s", "flops": "flops_per_s",
                 "instructions": "instructions_per_s"}


def loop_key(row):
    return (bare(row["function"] or ""), os.path.basename(row["file"] or ""), row["line_begin"], row["line_end"],
            row["depth"])


def found_per_iteration(row):
    """From a report's rates; None for what it does not know."""
    rates = (row or {}).get("rates") or {}
    iterations = rates.get("iterations_per_s")
    return {name: rates[rate] / iterations if iterations and rates.get(rate) is not None else None
            for name, rate in PER_ITERATION.items()}


def loops_compared(reference, report, most):
    """The reference's loops with lines, most instructions first, and the report's figures for them."""
    found = {}
    for row in report.get("loops") or []:
        found.setdefault(loop_key(row), row)
    rows = []
    for row in reference["loops"]:
        if row["line_begin"] is None or not row["iterations"]:
            continue
        work, iterations = row["work"], row["iterations"]
        rows.append({
            "function": row["function"], "file": row["file"], "line_begin": row["line_begin"],
            "line_end": row["line_end"], "depth": row["depth"], "iterations": iterations,
            "instruction_share": work["instructions"] / reference["work"]["instructions"],
            "per_iteration": {name: work[name] / iterations
                              for name in ("instructions", "flops", "loads", "stores", "load_bytes", "store_bytes")},
            "found_share": (found.get(loop_key(row)) or {}).get("share"),
            "found_per_iteration": found_per_iteration(found.get(loop_key(row))),
        })
    return rows[:most]


# ---- all of it --------------------------------------------------------------------------------------------------

def compare(reference, report, names=(), most=5):
    unit = unit_of(report)
    known, found = reference_matrix(reference, names), report_matrix(report, unit, names)
    known_share, found_share = true_share(known), true_share(found)
    objects_known, objects_found = reference["objects"], report["objects"]
    if names:
        objects_known = [row for row in objects_known if bare(row["name"]) in names or row["name"] in names]
        objects_found = [row for row in objects_found if bare(row["name"]) in names or row["name"] in names]
    return {
        "schema": "crosstalk.compare/1",
        "command": reference.get("command"),
        "objects_chosen": list(names),
        "unit": unit,
        "communications": sum(known.values()),
        "matrix_distance": shape_distance(known, found),
        "true_share": {"reference": known_share, "found": found_share,
                       "difference_points": None if known_share is None or found_share is None
                       else 100 * (found_share - known_share)},
        "pairs": {"silent_reported": pairs_only_in(found, known), "missed": pairs_only_in(known, found)},
        "objects": first_compared(objects_known, objects_found, lambda row: bare(row["name"]), most),
        "lines": {role: lines_compared(reference, report, role, most) for role in ("producer", "consumer")},
        "loops": loops_compared(reference, report, most),
        "warnings": warnings(reference, report, known, found, names),
    }


def warnings(reference, report, known, found, names):
    words = []
    first_process = min((process["pid"] for process in report.get("processes") or []), default=None)
    threads = [thread for thread in report["threads"] if first_process in (None, thread["pid"])]
    if len(threads) != reference["threads"]:
        words.append(f"the reference has {reference['threads']} threads and the profile {len(threads)}: "
                     "threads are compared by the order in which they began")
    where = " on " + ", ".join(names) if names else ""
    if not known:
        words.append(f"the reference has no communication{where}, so there is no distance")
    if not found:
        words.append(f"the profile has no communication{where}, so there is no distance")
    if reference["stolen_turns"]:
        words.append(f"{reference['stolen_turns']} times two threads ran at once under the emulator: so many "
                     "accesses may be counted in another order")
    return words
