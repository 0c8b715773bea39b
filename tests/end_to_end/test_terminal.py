# SPDX-License-Identifier: Apache-2.0
"""A terminal's actions on its programs reach the command as without an observer."""

import contextlib
import os
import pty
import signal
import sqlite3
import time

import harness
from harness import CROSSTALK


class Terminal(harness.Case):
    def on_terminal(self, act, command, recorded):
        """Runs the command on a terminal of its own, as the session's leader; `act` gets the terminal once it is ready.
        Returns its status as a shell has it."""
        ready = self.path("ready")
        with contextlib.suppress(FileNotFoundError):
            os.remove(ready)
        script = command.replace("READY", f": > {ready}")
        words = ["sh", "-c", script]
        if recorded:
            words = [CROSSTALK, "record", "-q", "-o", self.path("run.db"), "--", *words]
        child, terminal = pty.fork()
        if child == 0:
            os.execvp(words[0], words)
        deadline = time.monotonic() + 60
        while not os.path.exists(ready):
            self.assertLess(time.monotonic(), deadline, "the command did not start")
            time.sleep(0.02)
        act(terminal)
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                self.fail("it did not end")
            time.sleep(0.02)
        return harness.shell_status(os.waitstatus_to_exitcode(ended[1]))

    def same(self, act, command, status):
        self.assertEqual(self.on_terminal(act, command, False), status)
        self.assertEqual(self.on_terminal(act, command, True), status)
        with contextlib.closing(sqlite3.connect(self.path("run.db"))) as profile:
            meta = dict(profile.execute("SELECT key, value FROM meta"))
        self.assertEqual((meta["complete"], meta["exit_status"]), (1, status))

    def test_hang_up_ends_the_command(self):
        self.same(os.close, "READY; while :; do sleep 0.05; done", 128 + signal.SIGHUP)

    def test_hang_up_is_handled_by_the_command(self):
        self.same(os.close, "trap 'exit 5' HUP; READY; while :; do sleep 0.05; done", 5)

    def test_hang_up_is_ignored_by_the_command(self):
        self.same(os.close, "trap '' HUP; READY; sleep 1; exit 6", 6)

    def test_interrupt(self):
        self.same(lambda terminal: os.write(terminal, b"\x03"), "trap 'exit 7' INT; READY; while :; do sleep 0.05; done", 7)


if __name__ == "__main__":
    harness.main()
