# SPDX-License-Identifier: Apache-2.0
"""A picture of each roofline model, of programs of the tests on this machine, and what crosstalk says of them."""

import argparse
import json
import os
import subprocess

import common

PLAIN, SPARSE, TRIAD = "numeric_loops", "numeric_loops --only sparse_product", "busy_loops --only far_triad"
PICTURES = (
    ("carm", PLAIN, "Each loop is one point, at the bytes that its instructions load and store. Slanted roofs are the "
                    "bandwidths that a core gets from each level, the horizontal one is the peak of the first loop's mix "
                    "of operations; dotted ones are of the machine, but not for this loop."),
    ("orm", TRIAD, "The point is at the bytes that memory moves. Dashed ceilings are what a loop may lack: independent "
                   "operations, vectors, multiply-adds; `14 % FP` is the ceiling of this loop's part of floating-point "
                   "instructions."),
    ("hierarchical", PLAIN, "A loop has a point for each level, at the bytes that it moves, and a line joins them. The "
                            "level whose point is nearest to its own roof is the bottleneck."),
    ("irm", PLAIN, "The same points, below the bandwidths that a core gets from each level by loads."),
    ("runtime", SPARSE, "Ceilings of this loop: what it could reach if it lacked nothing but one feature."),
    ("sparse", SPARSE, "Loops that gather, below roofs of products with dense matrices in one level and vectors in another."),
    ("mansard", PLAIN, "Instructions a cycle over other instructions for each memory instruction: a hill for each level, "
                       "horizontals of retirement, the mixed region shaded. The hills are those of the first loop's kind of "
                       "instructions; the verdicts on the others use their own."),
)

EXPLANATION = """## Pictures

Written by `./dev bench roofline_pictures`: programs of the tests, {seconds:g} s each. Machine: {machine}, calibrated
{measured_at}{quick}. Below each picture is what `crosstalk roofline` says of its first loop.

{pictures}
"""


def roofline(profile, *options):
    return subprocess.run([common.CROSSTALK, "roofline", "--no-pager", *options, profile], check=True, text=True,
                          capture_output=True).stdout


def record(scratch, program, seconds):
    profile = scratch.file("".join(c if c.isalnum() else "_" for c in program) + ".db")
    if not os.path.exists(profile):
        name, *arguments = program.split()
        command = [f"./{name}", *arguments, "--seconds", f"{seconds:g}"]
        subprocess.run(common.recorded(command, profile), check=True, stdout=subprocess.DEVNULL, cwd=common.WORKLOADS)
    return profile


def picture(scratch, model, program, words, options):
    profile = record(scratch, program, options.seconds)
    name = f"roofline-{model}.svg"
    roofline(profile, "--model", model, "--format", "svg", "-o", os.path.join(common.TOP, "docs", name))
    report = json.loads(roofline(profile, "--model", model, "--format", "json"))
    said = report["loops"][0] if report["loops"] else None
    verdict = f"`{said['function']}`: {said['verdict']}" if said else report["unplaced"][0]["why"]
    return f"### `--model {model}`\n\n{words} `{program}`:\n\n![{model}]({name})\n\n> {verdict}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6, help="of each recording [6]")
    parser.add_argument("--quick", action="store_true", help="calibrate in seconds, not in minutes")
    parser.add_argument("--machine", help="take this calibration instead of measuring one")
    parser.add_argument("--write", action="store_true", help="also write the section of docs/rooflines.md")
    options = parser.parse_args()
    with common.Folder() as scratch:
        os.environ["XDG_CONFIG_HOME"] = scratch.path
        machine = os.path.join(scratch.path, "crosstalk", "machine.json")
        os.makedirs(os.path.dirname(machine))
        if options.machine:
            with open(options.machine, encoding="utf-8") as source, open(machine, "w", encoding="utf-8") as copy:
                copy.write(source.read())
        else:
            subprocess.run([common.CROSSTALK, "calibrate", "-q", *(["--quick"] if options.quick else [])], check=True)
        with open(machine, encoding="utf-8") as source:
            measured = json.load(source)
        pictures = [picture(scratch, model, program, words, options) for model, program, words in PICTURES]
        text = EXPLANATION.format(seconds=options.seconds, machine=common.machine(), measured_at=measured["measured_at"],
                                  quick=" (`--quick`)" if measured["quick"] else "", pictures="\n".join(pictures))
    print(text)
    if options.write:
        common.write_section("rooflines.md", "pictures", text)


if __name__ == "__main__":
    main()
