# SPDX-License-Identifier: Apache-2.0
"""Finds figures of a report that are 0 although it says that nothing measured them: such a figure is to be null."""

LEVELS = ("l1d", "l2", "l3", "memory")
STANDING = ("fpu", "data", *LEVELS)  # by samples in loops
COUNTED = ("committing", "frontend", "branch")
OTHERS = ("lock", "barrier", "condition")
OFF_CPU = ("io", "blocked", "runnable")
# By unit, the loop's figure that its busy time is computed from.
WORK = {"fpu": ("rates", "flops_per_s"), "l1d": ("rates", "bytes_per_s"), "l2": ("performance", "lines", "l2"),
        "l3": ("performance", "lines", "l3"), "memory": ("performance", "lines", "memory")}


def zeros_by_default(report):
    """Returns a line for each class of cycle accounting or of waits, and for each busy time, that is 0 and not measured. A view
    that lacks a part says nothing of what that part measured."""
    loops = report.get("loops", [])
    counted = report.get("counters", True) is not None
    calibrated = report["machine"]["calibration"] is not None or counted
    stood = "loops" not in report or report["filter"] is not None or any(loop["waits"] for loop in loops)
    found = []

    def check(place, account, measured):
        for name, seconds in (account or {}).items():
            if seconds == 0 and not measured.get(name, True):
                found.append(f"{place}: {name} is 0, and nothing measured it")

    def by_loops(others, processor, blocked, kernel):
        """What is measured of a time that has a begin and an end."""
        return {**dict.fromkeys(COUNTED, counted), **dict.fromkeys(STANDING, stood), **dict.fromkeys(LEVELS, stood and calibrated),
                **dict.fromkeys(OTHERS, others), "io": False, "blocked": blocked, "runnable": processor, "kernel": kernel}

    check("waits", report["waits"], dict.fromkeys(("threads", "ran_s"), False))
    for thread in report["threads"]:
        check(f"thread {thread['index']}", thread["waits"],
              by_loops(report["waits_measured"], report["waits"] is not None, thread["cpu_s"] is not None,
                       thread["kernel_share"] is not None))
    for region in report.get("regions", []):
        all_measured = all(thread["waited_s"] is not None for thread in region["threads"])
        for place, row, others in (("", region, all_measured),
                                   *((f", thread {thread['thread']}", thread, thread["waited_s"] is not None)
                                     for thread in region["threads"])):
            sampled = row["cpu_s"] is not None and row["samples"] > 0
            check(f"region {region['path']}{place}", row["waits"], by_loops(others, False, row["cpu_s"] is not None, sampled))
    for loop in loops:
        place = f"loop {loop['id']} ({loop['function']})"
        check(place, loop["waits"], in_loop(loop, calibrated))
        check(place + ", waited", loop["waited"], {"count": False})
        for thread in loop["threads"]:
            check(f"{place}, thread {thread['thread']}", thread, {"waiting_s": report["waits_measured"]})
        for unit, work in WORK.items():
            check(f"{place}, busy {unit}", (loop["busy"] or {}).get(unit), {"seconds": at(loop, work) is not None})
    return found


def in_loop(loop, calibrated):
    """What is measured of a loop's CPU time."""
    counters = loop["counters"]
    stood = loop["samples"] > 0 or bool(counters and counters["stalled"])
    return {**dict.fromkeys(COUNTED, counters is not None), **dict.fromkeys(STANDING, stood),
            **dict.fromkeys(LEVELS, stood and calibrated), **dict.fromkeys(OTHERS, loop["waited"] is not None),
            **dict.fromkeys(OFF_CPU, False), "kernel": loop["kernel_s"] is not None}


def at(row, path):
    for name in path:
        row = row and row[name]
    return row
