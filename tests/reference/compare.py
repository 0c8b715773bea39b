# SPDX-License-Identifier: Apache-2.0
"""./dev compare: a program's exact communication under the emulator against what crosstalk reports of it."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import distances
import reference
from reference import ReferenceError

CROSSTALK = os.environ.get("CROSSTALK", os.path.join(reference.TOP, "build", "release", "driver", "crosstalk"))

INTERLEAVING = ("The emulator runs one thread at a time and hands over every few hundred instructions, so how often threads\n"
                "meet differs from a native run wherever the program does not force it; the shape of what it forces is the same.")


def parser():
    result = argparse.ArgumentParser(
        prog="./dev compare", usage="./dev compare [options] [--] [PROGRAM ARG...]",
        description="Runs PROGRAM under the emulator, records it with crosstalk, and prints how far the report is from "
                    "the exact counts.",
        epilog="-i and --reference replace a run; with both no PROGRAM is needed. docs/reference.md")
    result.add_argument("-i", dest="profile", metavar="FILE", help="an existing profile, in place of a recording")
    result.add_argument("--reference", metavar="FILE", help="an existing reference, in place of a run under the emulator")
    result.add_argument("-o", dest="save", metavar="FILE", help="keep the reference, as JSON")
    result.add_argument("--save-profile", metavar="FILE", help="keep the recorded profile")
    result.add_argument("--object", action="append", default=[], metavar="NAME",
                        help="compare the cells of this variable only; may be given more than once")
    result.add_argument("--top", type=positive, default=5, metavar="N", help="how many objects, lines and loops (5)")
    result.add_argument("--quantum", type=positive, default=100, metavar="N",
                        help="instructions between hand-overs under the emulator, on average (100)")
    result.add_argument("--seed", type=positive, default=1, metavar="N", help="of the hand-overs (1)")
    result.add_argument("--memory", type=positive, default=4096, metavar="MIB", help="limit of the reference (4096)")
    result.add_argument("--no-heap", action="store_true", help="leave heap blocks without names")
    result.add_argument("--timeout", type=positive, metavar="S", help="limit of the run under the emulator, seconds")
    result.add_argument("--record-option", action="append", default=[], metavar="WORD",
                        help="passed to crosstalk record, for example --record-option=--seed=7")
    result.add_argument("--format", choices=("text", "json"), default="text")
    result.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM ARG...")
    return result


def positive(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return value


def the_reference(options, command):
    if options.reference:
        return reference.load_reference(options.reference)
    return reference.make_reference(command, options.quantum, options.seed, options.memory, not options.no_heap,
                                    timeout=options.timeout, stdout=sys.stderr)


def record(options, command, profile):
    line = [CROSSTALK, "record", "-q", "-o", profile, *options.record_option, "--", *command]
    try:
        status = subprocess.run(line, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
    except OSError as error:
        raise ReferenceError(f"{CROSSTALK} cannot be run: {error.strerror}; build it with ./dev build") from error
    if not os.path.exists(profile):
        raise ReferenceError(f"crosstalk record ended with {status} and left no profile")


def the_report(options, command):
    with tempfile.TemporaryDirectory(prefix="crosstalk-compare-") as folder:
        profile = options.profile or options.save_profile or os.path.join(folder, "run.db")
        if not options.profile:
            record(options, command, profile)
        shown = subprocess.run([CROSSTALK, "report", "-i", profile, "--format", "json"], check=False,
                               capture_output=True, text=True)
    if shown.returncode != 0:
        raise ReferenceError(f"the report of {profile} failed: {shown.stderr.strip()}")
    return json.loads(shown.stdout)


# ---- text -------------------------------------------------------------------------------------------------------

def number(value, form="{:.3f}"):
    return "unknown" if value is None else form.format(value)


def pair_words(rows):
    return ", ".join(f"{row['producer']} -> {row['consumer']} ({100 * row['share']:.2f} %)" for row in rows[:8]) or "none"


def first_words(title, compared):
    same = {True: "the same first", False: "another first", None: "nothing to compare"}[compared["first_equal"]]
    return [f"{title}: {same}; {compared['shared']} of the reference's first {len(compared['reference'])} are found",
            "  reference: " + (", ".join(compared["reference"]) or "none"),
            "  report:    " + (", ".join(compared["found"]) or "none")]


def loop_words(row):
    each = row["per_iteration"]
    found = row["found_per_iteration"]
    parts = [f"{each[name]:.2f} {name}" + (f" (report: {found[name]:.2f})" if found.get(name) is not None else "")
             for name in ("loads", "stores", "flops", "instructions")]
    return (f"  {row['function'] or '?'} {os.path.basename(row['file'])}:{row['line_begin']}-{row['line_end']}, "
            f"{row['iterations']} iterations; each: " + ", ".join(parts))


def text(result):
    split = result["true_share"]
    lines = [
        f"communications counted: {result['communications']:.0f}" +
        (f", on {', '.join(result['objects_chosen'])}" if result["objects_chosen"] else ""),
        f"matrix distance (0 equal, 1 nothing in common; report by {result['unit']}): {number(result['matrix_distance'])}",
        f"true sharing: reference {number(split['reference'])}, report {number(split['found'])}, "
        f"difference {number(split['difference_points'], '{:+.1f}')} points",
        "pairs reported that do not communicate: " + pair_words(result["pairs"]["silent_reported"]),
        "pairs that communicate and are not reported: " + pair_words(result["pairs"]["missed"]),
        *first_words("objects", result["objects"]),
        *first_words("producing lines", result["lines"]["producer"]),
        *first_words("consuming lines", result["lines"]["consumer"]),
        "loops, by instructions:",
        *[loop_words(row) for row in result["loops"]],
        *["warning: " + words for words in result["warnings"]],
        INTERLEAVING,
    ]
    return "\n".join(lines)


def main():
    the_parser = parser()
    options = the_parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command and not (options.profile and options.reference):
        the_parser.error("a PROGRAM is needed unless both -i and --reference are given")
    try:
        exact = the_reference(options, command)
        if options.save:
            with open(options.save, "w", encoding="utf-8") as file:
                json.dump(exact, file, indent=1)
        result = distances.compare(exact, the_report(options, command), options.object, options.top)
    except ReferenceError as error:
        print(f"crosstalk: {error}", file=sys.stderr)
        sys.exit(error.status)
    except OSError as error:
        print(f"crosstalk: {error.filename} cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(reference.REFUSED)
    print(json.dumps(result, indent=1) if options.format == "json" else text(result))


if __name__ == "__main__":
    main()
