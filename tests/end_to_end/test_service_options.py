# SPDX-License-Identifier: Apache-2.0
"""record -p --pidfd --owner: a service that watches others' processes watches none but those that were meant."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import time

import harness
from harness import CROSSTALK, needs_events, run, workload

USER, OTHER = 65534, 65533


def rows(profile, query):
    with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


class Service(harness.Case):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("a process of another user cannot be started here (run as root)")
        os.chmod(self.folder, 0o755)

    def copy(self, name, mode=0o755):
        path = self.path(name)
        shutil.copy(workload("false_sharing"), path)
        os.chmod(path, mode)
        return path

    def start(self, *command, user=USER):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, user=user, group=user,
                                   extra_groups=[])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(0.3)
        return process

    def pidfd(self, process):
        descriptor = os.pidfd_open(process.pid)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def attach(self, processes, *options, pidfds=()):
        pids = ",".join(str(process.pid) for process in processes)
        if pidfds:
            options = (*options, "--pidfd", ",".join(map(str, pidfds)))
        return run([CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p", pids, *options], pass_fds=pidfds)

    def refused(self, result, words):
        self.assert_one_line_error(result, (125,))
        self.assertIn(words, result.stderr)
        self.assertFalse(os.path.exists(self.path("run.db")))

    def watched(self):
        """By program: how it was observed, and the number of its modules and samples."""
        return {os.path.basename(executable): (observation, modules, samples) for executable, observation, modules, samples
                in rows(self.path("run.db"), "SELECT executable, observation, (SELECT count(*) FROM module WHERE process = p.id),"
                                             " (SELECT count(*) FROM sample JOIN thread ON thread.id = thread"
                                             "  WHERE thread.process = p.id) FROM process AS p ORDER BY observation")}


class Descriptors(Service):
    @needs_events
    def test_of_the_processes_that_run(self):
        program = self.copy("program")
        processes = [self.start(program, "--seconds", "60") for _ in range(2)]
        result = self.attach(processes, "--duration", "0.5", "--owner", str(USER),
                             pidfds=[self.pidfd(process) for process in processes])
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual({pid for (pid,) in rows(self.path("run.db"), "SELECT pid FROM process WHERE observation = 2")},
                         {process.pid for process in processes})

    @needs_events
    def test_of_a_process_that_has_ended(self):
        living, ended = (self.start("sleep", "60") for _ in range(2))
        descriptor = self.pidfd(ended)
        ended.kill()
        ended.wait()
        self.refused(self.attach([living], pidfds=[descriptor]), f"process {living.pid} has ended meanwhile")

    @needs_events
    def test_of_another_process_or_none(self):
        one, other = (self.start("sleep", "60") for _ in range(2))
        self.refused(self.attach([one], pidfds=[self.pidfd(other)]), f"is of process {other.pid} and not of process {one.pid}")
        with open("/dev/null", "rb") as file:
            self.refused(self.attach([one], pidfds=[file.fileno()]), "is no pidfd")
        self.refused(self.attach([one], "--pidfd", "999"), "descriptor 999 is no pidfd")


class Owner(Service):
    @needs_events
    def test_another_one_is_refused(self):
        process = self.start("sleep", "60")
        self.refused(self.attach([process], "--owner", str(OTHER)),
                     f"-p {process.pid}: it belongs to user {USER} and not to user {OTHER} (--owner)")
        mine = self.start("sleep", "60", user=OTHER)
        self.refused(self.attach([mine, process], "--owner", str(OTHER)), f"-p {process.pid}: it belongs to user {USER}")

    @needs_events
    def test_a_program_that_its_user_may_not_read_is_root_s(self):
        process = self.start(self.copy("unreadable", 0o711), "--seconds", "60")
        self.refused(self.attach([process], "--owner", str(USER)), f"it belongs to user 0 and not to user {USER}")

    def attach_then(self, script):
        """A shell of the user that does the first part of `script` until it is watched, and then the second one. Returns
        it and its recorder."""
        program, privileged, go = self.copy("program"), self.copy("privileged", 0o4755), self.path("go")
        before, after = script
        shell = self.start("sh", "-c", f"while [ ! -e {go} ]; do {before}; done; {after}".format(program=program,
                                                                                               privileged=privileged))
        recorder = subprocess.Popen([CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p", str(shell.pid), "--children",
                                     "--owner", str(USER)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.communicate)
        self.addCleanup(recorder.kill)
        harness.wait_until(lambda: harness.samples_in(self.path("run.db")))
        with open(go, "w", encoding="ascii"):
            pass
        return shell, recorder

    @needs_events
    def test_a_child_with_more_rights_is_left_alone(self):
        _, recorder = self.attach_then(("{program} --seconds 0.3", "{privileged} --seconds 2"))
        self.assertEqual((recorder.wait(60), recorder.stderr.read()), (0, ""))
        watched = self.watched()
        self.assertEqual(watched["program"][0], 2)
        self.assertGreater(watched["program"][2], 0)
        self.assert_left_alone(watched)

    @needs_events
    def test_a_process_that_gets_more_rights_is_left(self):
        shell, recorder = self.attach_then(("{program} --seconds 0.3", "exec {privileged} --seconds 60"))
        self.assertEqual((recorder.wait(60), recorder.stderr.read()), (0, ""))
        self.assertIsNone(shell.poll(), "the recording ends before it does")
        self.assert_left_alone(self.watched())

    def assert_left_alone(self, watched):
        """Nothing of the privileged program is in the profile but that it was not watched."""
        self.assertEqual(watched["privileged"], (4, 0, 0))
        self.assertEqual(rows(self.path("run.db"), "SELECT count(*) FROM module WHERE path LIKE '%/privileged'"), [(0,)])
        self.assertEqual(rows(self.path("run.db"), "SELECT count, text FROM message WHERE code = 'processes_not_watched'"),
                         [(1, "1 process could not be watched from outside: it belongs to user 0 and not to user "
                           f"{USER} (--owner)")])


if __name__ == "__main__":
    harness.main()
