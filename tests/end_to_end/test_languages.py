# SPDX-License-Identifier: Apache-2.0
"""Attaches from outside to programs that no library can be loaded into, or that an interpreter runs: their known
sharing is found, with its line or the best available name. For languages with heavy compilers: `./dev bench
languages`."""

import os
import re
import shutil
import subprocess
import time
import unittest

import harness
from harness import needs_watchpoints

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", "languages")


def source(name):
    return os.path.join(SOURCES, name)


def shared_lines(path):
    with open(path, encoding="utf-8") as file:
        return {number for number, line in enumerate(file, 1) if re.search(r"// shared$", line.rstrip())}


@harness.verify("how much was seen decides whether the matrix is close")
class Attached(harness.Case):
    def build(self, compiler, *options):
        if shutil.which(compiler) is None:
            self.skipTest(f"there is no {compiler}: sudo apt install {'musl-tools' if compiler == 'musl-gcc' else 'gcc'}")
        program = self.path("sharing")
        subprocess.run([compiler, "-O2", "-g", *options, source("sharing.c"), "-o", program], check=True, timeout=60)
        return [program]

    def attach(self, command, seconds, options):
        with subprocess.Popen([*command, str(seconds + 2)], stdout=subprocess.PIPE, text=True) as process:
            time.sleep(0.7)
            result = harness.run([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p", str(process.pid),
                                  "--duration", str(seconds), *options])
            out, _ = process.communicate(timeout=60)
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertEqual((process.returncode, out.strip().lower() in ("1", "true")), (0, True), out)
        return self.report(self.path("run.db"))

    def found(self, command, kind, options=()):
        """The report of the first attachment, of two, that has seen an exchange of that kind both sides of which have names."""
        for seconds in (3, 9):
            report = self.attach(command, seconds, options)
            cells = {(cell["producer"], cell["consumer"]) for cell in report["communication"]["cells"] if cell[kind]["seen"]}
            if cells and report["line_pairs"]:
                return report, cells
        return self.fail(f"no sharing of two was found: {report['communication']}")

    def check_lines(self, command):
        report, cells = self.found(command, "false")
        self.assertEqual(len({thread for cell in cells for thread in cell}), 2, "the first thread only waits")
        self.assertEqual(report["objects"][0]["name"], "hits")
        sides = [report["line_pairs"][0][side] for side in ("producer", "consumer")]
        for side in sides:
            self.assertEqual(os.path.basename(side["file"]), "sharing.c")
            self.assertIn(side["line"], shared_lines(source("sharing.c")))

    @needs_watchpoints
    def test_static_c(self):
        self.check_lines(self.build("gcc", "-static", "-pthread"))

    @needs_watchpoints
    def test_musl(self):
        self.check_lines(self.build("musl-gcc"))

    @needs_watchpoints
    def test_static_musl(self):
        self.check_lines(self.build("musl-gcc", "-static"))

    @needs_watchpoints
    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "there is no /usr/bin/python3: sudo apt install python3")
    def test_python(self):
        report, cells = self.found(["/usr/bin/python3", source("sharing.py")], "true", ["--children"])
        self.assertEqual(len(report["processes"]), 2)
        self.assertEqual({thread for cell in cells for thread in cell}, {0, 1})
        self.assertEqual(report["objects"][0]["name"], "anonymous shared memory")
        names = {pair[side]["function"] for pair in report["line_pairs"] for side in ("producer", "consumer")}
        self.assertTrue(names - {None, ""}, report["line_pairs"])


if __name__ == "__main__":
    harness.main()
