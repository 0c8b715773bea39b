# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server under pgbench, attached to with all of its processes: it answers as without, and the report has them."""

import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import needs_events

CLIENTS, SECONDS = 4, 8


def programs():
    """The folder of the newest server's programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"), key=lambda path: int(path.split("/")[-3]))
    if not found:
        raise unittest.SkipTest("no PostgreSQL here: apt-get install postgresql")
    return os.path.dirname(found[-1])


class PostgreSQL(harness.Case):
    """The server does not run as root, and its files belong to its user."""

    def setUp(self):
        super().setUp()
        self.bin = programs()
        if os.getuid() != 0:
            raise unittest.SkipTest("another user is needed, to be the server's: run as root")
        self.user = pwd.getpwnam("postgres")
        self.folder = tempfile.mkdtemp(prefix="crosstalk-postgresql-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.as_server("initdb", "-A", "trust", "-N", self.data())
        self.server = subprocess.Popen([os.path.join(self.bin, "postgres"), "-D", self.data(), "-k", self.folder, "-c", "listen_addresses="],
                                       user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        harness.wait_until(lambda: self.ran("pg_isready", "-h", self.folder).returncode == 0)
        self.as_server("pgbench", "-h", self.folder, "-i", "-s", "5", "-q", "postgres")

    def data(self):
        return os.path.join(self.folder, "data")

    def ran(self, program, *arguments):
        return subprocess.run([os.path.join(self.bin, program), *arguments], user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[],
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def as_server(self, program, *arguments):
        result = self.ran(program, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def stop(self):
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0, "the server ends as it does without a recorder")

    def transactions_a_second(self):
        said = self.as_server("pgbench", "-h", self.folder, "-S", "-c", str(CLIENTS), "-j", "2", "-T", str(SECONDS), "postgres")
        self.assertIn("number of failed transactions: 0", said)
        return float(re.search(r"tps = ([0-9.]+)", said)[1])

    @needs_events
    @harness.verify("needs PostgreSQL, and compares rates")
    def test_a_busy_server_is_attached_to(self):
        bare = self.transactions_a_second()
        profile = self.path("postgresql.db")
        recorder = subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", profile, "-p", str(self.server.pid), "--children"],
                                    stdin=subprocess.DEVNULL)
        attached = self.transactions_a_second()
        recorder.send_signal(2)
        self.assertEqual(recorder.wait(), 0)
        report = self.report(profile)
        busy = [thread for thread in report["threads"] if (thread["cpu_s"] or 0) > 0.1]
        print(f"transactions a second: bare {bare:.0f}, attached to {attached:.0f}; {len(report['processes'])} processes, "
              f"{harness.cpu_seconds(report):.1f} s of CPU time, first: {report['findings'][0]['sentence']}")
        self.assertGreater(attached, bare / 2)
        self.assertGreaterEqual(len(busy), CLIENTS, "a process for each client")
        self.assertGreater(report["sampling"]["samples"], 100)
        self.assertFalse({"threads_not_watched", "processes_not_watched"} & {warning["code"] for warning in report["warnings"]})


if __name__ == "__main__":
    harness.main()
