#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the first finding name what the program's author wrote? Each workload of `./dev bench accuracy` is recorded once at
defaults. Writes a section of docs/advice.md."""

import argparse
import json
import os
import subprocess

import accuracy
import advice
import common
import harness

OWN = ("workload.cpp", "workload.h", "rendezvous.h", "cost_clock.h")  # of every workload


def arguments():
    result = argparse.ArgumentParser(description=__doc__)
    result.add_argument("--only", nargs="*", help="workloads")
    result.add_argument("--print", action="store_true", help="show the table, write nothing")
    return result.parse_args()


def truth_and_report(name, options, folder):
    profile = folder.file(f"{name}.db")
    command = common.recorded([os.path.join(common.WORKLOADS, name), *options], profile)
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    truth = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))
    return truth, common.report(profile)


def lacking(truth, finding):
    own = (truth["file"], *OWN) if truth["file"] else OWN
    lacks = advice.lacking_of(finding, own)
    names = [*truth["data"], *truth.get("sync", [])]
    if names and "object" not in lacks and not any(
            harness.object_named({"name": finding["object"]}, name) or name in finding["object"] for name in names):
        lacks.append("the data's name")
    return lacks


def row(name, options, folder):
    truth, report = truth_and_report(name, options, folder)
    finding = next((each for each in report["findings"] if each["object"]), report["findings"][-1])
    about_nothing = finding["kind"] == "none" and not truth["file"]  # next to nothing is communicated, nowhere in particular
    lacks = [] if about_nothing else lacking(truth, finding)
    print(f"{name}: {finding['sentence']}", flush=True)
    return [f"`{' '.join([name, *options])}`", f"`{finding['kind']}`", f"`{finding['object'] or '-'}`",
            f"{finding['consumer'] or '-'}", "nothing to name" if about_nothing else ", ".join(lacks) or "-"]


def main():
    options = arguments()
    cases = [case for case in accuracy.CASES if not options.only or case[0] in options.only]
    with common.Folder() as folder:
        rows = [row(name, words, folder) for name, words in cases]
    header = ["workload", "first finding", "object", "at", "lacks"]
    named = sum(each[-1] in ("-", "nothing to name") for each in rows)
    text = "\n".join([
        "## First findings of the workloads", "",
        "Each workload of `docs/accuracy.md`, recorded once at defaults: what its first finding names, and what of the",
        "program's own source line, variable and threads it does not. Regenerate with `./dev bench findings`.", "",
        common.table(header, rows), "", f"{named} of {len(rows)} lack nothing."])
    if options.print:
        print(text)
    else:
        common.write_section("advice.md", "findings", text)


if __name__ == "__main__":
    main()
