# SPDX-License-Identifier: Apache-2.0
"""Completion for bash: each case is a command line, of which the last word is being typed."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CROSSTALK = os.environ.get("CROSSTALK", "crosstalk")
SOURCE = ROOT / "completions" / "crosstalk.bash"

# Readline parts words at "=" itself, so a case may have it as a word.
ASK = """
set -u
source {source}
[[ $(complete -p crosstalk) == *_crosstalk* ]] || exit 3
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMP_LINE="${{COMP_WORDS[*]}}" COMP_POINT=${{#COMP_LINE}}
_crosstalk
((${{#COMPREPLY[@]}} == 0)) || printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def help_of(*command):
    return subprocess.run([CROSSTALK, *command, "--help"], check=True, capture_output=True, text=True).stdout


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="crosstalk-completion-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name in ("one.db", "two.db", "notes.txt"):
            pathlib.Path(cls.folder, name).touch()
        pathlib.Path(cls.folder, "directory").mkdir()

    def words(self, *typed):
        script = ASK.format(source=shlex.quote(str(SOURCE)), words=shlex.join([CROSSTALK, *typed]))
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1]

    def test_subcommands_are_those_of_the_help(self):
        listed = re.findall(r"^  ([a-z]+)  +[a-z]", help_of().split("Subcommands:")[1].split("Options:")[0], re.MULTILINE)
        self.assertGreater(len(listed), 5)
        self.assertEqual(sorted(self.words("")), sorted([*listed, "help", "-h", "--help", "--version"]))
        self.assertEqual(self.words("rep"), ["report"])
        self.assertEqual(sorted(self.words("help", "")), sorted([*listed, "help"]))
        self.assertEqual(self.words("help", "dif"), ["diff"])

    def test_options_are_those_of_the_subcommands_help(self):
        for command in [word for word in self.words("") if word.isalpha() and word != "help"]:
            with self.subTest(command=command):
                table = help_of(command).split("Options:")[1].split("\n\n")[0]
                names = [name for names in re.findall(r"^  (-\S+)", table, re.MULTILINE) for name in names.split(",")]
                self.assertIn("--help", names)
                self.assertEqual(sorted(self.words(command, "-")), sorted(names))
        self.assertEqual(self.words("record", "--budg"), ["--budget"])

    def test_values(self):
        for typed, expected in {
                ("report", "--view", ""): "summary matrix lines objects loops busy memory threads regions source asm",
                ("report", "--view", "l"): "lines loops",
                ("report", "--view", "="): "summary matrix lines objects loops busy memory threads regions source asm",
                ("report", "--view", "=", "lo"): "loops",
                ("report", "--by", ""): "thread name process start-routine core socket",
                ("report", "--format", ""): "text json csv svg",
                ("report", "--color", ""): "auto always never",
                ("report", "--estimator", "next"): "next_access next_store",
                ("report", "--min-cost", ""): "",
                ("report", "--thread", ""): "",
                ("record", "--method", ""): "watch probe auto",
                ("record", "--source", "ibs"): "ibs ibs-kmod",
                ("record", "--event", ""): "task-clock thread-timer",
                ("record", "--duration", ""): "",
                ("diff", "--unit", ""): "seconds share auto",
                ("roofline", "--model", ""): "carm orm hierarchical irm runtime sparse mansard",
                ("roofline", "--ops", ""): "float fp64 fp32 int",
                ("roofline", "--by", ""): "loop thread",
                ("roofline", "--imbalance", ""): "first last",
                ("service", ""): "status profiles fetch",
                ("service", "profiles", ""): "",
                ("service", "--format", ""): "text json"}.items():
            with self.subTest(typed=typed):
                self.assertEqual(self.words(*typed), expected.split())

    def test_files(self):
        everything = ["directory", "notes.txt", "one.db", "two.db"]
        for typed in (("report", ""), ("report", "-i", ""), ("diff", "one.db", ""), ("import", ""), ("record", "-o", "")):
            with self.subTest(typed=typed):
                self.assertEqual(sorted(self.words(*typed)), everything)
        self.assertEqual(self.words("report", "--sysroot", ""), ["directory"])
        self.assertEqual(self.words("doctor", ""), [])

    def test_process_ids(self):
        with subprocess.Popen(["sleep", "60"]) as one, subprocess.Popen(["sleep", "60"]) as other:
            try:
                self.assertIn(str(one.pid), self.words("record", "-p", ""))
                self.assertEqual(self.words("record", "--pid", f"{one.pid},{other.pid}"), [f"{one.pid},{other.pid}"])
                self.assertIn(f"{one.pid},{other.pid}", self.words("record", "--pid", f"{one.pid},"))
            finally:
                one.kill()
                other.kill()
        self.assertNotIn("2", [pid for pid in self.words("record", "-p", "")
                               if os.path.exists("/proc/2/cmdline") and not pathlib.Path("/proc/2/cmdline").read_bytes()])

    def test_a_recorded_commands_words_are_its_own(self):
        self.assertIn("bash", self.words("record", "bas"))
        self.assertIn("bash", self.words("record", "--", "bas"))
        self.assertIn("bash", self.words("record", "-o", "one.db", "bas"))
        for before in (["sort"], ["--budget", "1", "sort"], ["--", "sort"], ["--method", "=", "probe", "sort"]):
            with self.subTest(before=before):
                self.assertEqual(self.words("record", *before, "on"), ["one.db"])
                self.assertEqual(self.words("record", *before, "--bud"), [])

    def test_a_subcommand_that_there_is_not(self):
        self.assertEqual(self.words("recrod", ""), [])


if __name__ == "__main__":
    unittest.main()
