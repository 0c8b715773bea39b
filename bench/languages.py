# SPDX-License-Identifier: Apache-2.0
"""Attaches from outside to a small program of each language, two of whose threads (of Python: processes) share a line
in a known way: is it found, with its source line, or with the best name that there is?"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import common

SOURCES = os.path.join(common.TOP, "tests", "workloads", "languages")


class Program:
    """`build` and `run` are commands in which {source} and {program} stand for paths. `where`: the marked line is to be
    found; else a function whose name it matches. `thing`: a word in the name of the dearest object; None: it has none."""

    def __init__(self, name, source, build, run, where=None, thing="hits", options=(), needs=None, names=None):
        self.name, self.source, self.build_command, self.run_command = name, source, build, run
        self.where, self.thing, self.options = where, thing, list(options)
        self.needs = needs or (build or run)[0]
        self.names_command = names  # has the process {pid} write down the names of what it has compiled

    @property
    def path(self):
        return os.path.join(SOURCES, self.source)

    def marked(self):
        with open(self.path, encoding="utf-8") as file:
            return {number for number, line in enumerate(file, 1) if re.search(r"(//|#) shared$", line.rstrip())}

    def build(self, folder):
        """None when it cannot be built here."""
        if shutil.which(self.needs) is None:
            return None
        program = folder.file(self.name.replace(" ", "_").replace(",", ""))
        names = {"source": self.path, "program": program, "folder": folder.path}
        if self.build_command:
            built = subprocess.run([word.format(**names) for word in self.build_command], capture_output=True, text=True,
                                   check=False, env={**os.environ, "GOCACHE": folder.file("go"), "GO111MODULE": "off"})
            if built.returncode != 0:
                print(f"{self.name}: {built.stderr.strip()}", file=sys.stderr)
                return None
        return [word.format(**names) for word in self.run_command]


PROGRAMS = [
    Program("C, static", "sharing.c", ["gcc", "-O2", "-g", "-static", "-pthread", "{source}", "-o", "{program}"], ["{program}"]),
    Program("C, musl", "sharing.c", ["musl-gcc", "-O2", "-g", "{source}", "-o", "{program}"], ["{program}"]),
    Program("C, musl, static", "sharing.c", ["musl-gcc", "-O2", "-g", "-static", "{source}", "-o", "{program}"], ["{program}"]),
    Program("Go", "sharing.go", ["go", "build", "-o", "{program}", "{source}"], ["{program}"]),
    Program("Rust", "sharing.rs", ["rustc", "-O", "-g", "{source}", "-o", "{program}"], ["{program}"], thing="HITS"),
    Program("Java", "Sharing.java", ["javac", "-d", "{folder}", "{source}"], ["java", "-cp", "{folder}", "Sharing"],
            where=r"Sharing\.count", thing=None, needs="javac", names=["jcmd", "{pid}", "Compiler.perfmap"]),
    Program("Python", "sharing.py", None, ["python3", "{source}"], where=".", thing="anonymous shared memory", options=["--children"]),
]


def source_lines(report):
    """(file, line) of both sides of the pairs that cost most, dearest first."""
    return [(os.path.basename(side.get("file") or ""), side.get("line"), side.get("function") or "")
            for pair in report["line_pairs"][:3] for side in (pair["producer"], pair["consumer"])]


def judge(program, report):
    """(found, what is named): the marked line where there is a source; else communication of two threads, and the name."""
    cells = report["communication"]["cells"]
    sides = source_lines(report)
    thing = report["objects"][0]["name"] if report["objects"] else ""
    lines = sorted({f"{file}:{line}" for file, line, _ in sides if file == program.source and line in program.marked()})
    best = lines or sorted({function for _, _, function in sides if function})[:2]
    named = program.thing is None or program.thing in thing
    found = bool(cells) and named and bool(lines or program.where and any(re.search(program.where, name) for name in best))
    return found, ", ".join(best) or "no name", thing


def attach(program, command, seconds, profile):
    process = subprocess.Popen([*command, str(seconds + 3)], stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    if program.names_command:
        subprocess.run([word.format(pid=process.pid) for word in program.names_command], capture_output=True, check=True)
    recorder = subprocess.run([common.CROSSTALK, "record", "-q", "-o", profile, "-p", str(process.pid), "--duration",
                               str(seconds), *program.options], capture_output=True, text=True, check=False)
    out, _ = process.communicate(timeout=60)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"/tmp/perf-{process.pid}.map")
    if recorder.returncode != 0 or process.returncode != 0 or out.strip().lower() not in ("1", "true"):
        raise RuntimeError(f"{program.name}: recorder {recorder.returncode} {recorder.stderr.strip()}, program "
                           f"{process.returncode} {out.strip()}")
    return common.report(profile)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="attached to each [5]")
    parser.add_argument("--only", default="", help="names, separated by / [all]")
    parser.add_argument("--required", action="store_true", help="fail where one cannot be built")
    arguments = parser.parse_args()
    rows, wrong = [], []
    with common.Folder() as folder:
        for program in PROGRAMS:
            if arguments.only and program.name not in arguments.only.split("/"):
                continue
            command = program.build(folder)
            if command is None:
                print(f"{program.name}: cannot be built here")
                wrong += [program.name] if arguments.required else []
                continue
            found, best, thing = judge(program, attach(program, command, arguments.seconds, folder.file("run.db")))
            rows.append([program.name, "found" if found else "**not found**", best, thing])
            wrong += [] if found else [program.name]
            print(rows[-1], flush=True)
    text = common.table(["program", "its sharing", "line, else function", "object"], rows)
    print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
