# SPDX-License-Identifier: Apache-2.0
"""crosstalkd among clients that do not behave, users that may not do what they ask, and without what it needs."""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

import daemon_harness
import harness
from daemon_harness import Client, cpu_seconds, open_files
from harness import wait_until

RECORD = {"request": "record"}
NOBODY, SOMEBODY = 65534, 65533
LONELY = 54321  # has no processes


def as_user(user, work, groups=()):
    """Does it in a process of this user; what it returns, as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.write(write, str(work()).encode())
        finally:
            os._exit(0)  # pylint: disable=protected-access
    os.close(write)
    with open(read, encoding="utf-8") as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def needs_root(test):
    return unittest.skipUnless(os.geteuid() == 0, "root: only root can be several users")(test)


class Crowds(daemon_harness.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        with open(self.path("started"), "w", encoding="ascii"):  # for all to read
            pass

    def ask_as(self, user, request, groups=()):
        """The reply to a user's request; if that begins a session, it has started its worker."""
        def work():
            started = self.started()
            with Client(self.socket) as client:
                reply, _ = client.ask(request)
                if reply["reply"] == "started":
                    wait_until(lambda: self.started() != started)
            return json.dumps(reply)
        return json.loads(as_user(user, work, groups))

    @needs_root
    def test_a_thousand_connections_of_one_user(self):
        daemon = self.daemon()
        before = open_files(daemon.pid)

        def crowd():
            clients = []
            for _ in range(1000):
                clients.append(Client(self.socket))
            refused = 0
            for client in clients:
                client.socket.settimeout(0.001)
                try:
                    reply, _ = client.receive()
                    refused += reply is not None and reply["reply"] == "refused"
                except TimeoutError:
                    pass
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            for client in clients:
                client.close()
            return refused

        ready, go = os.pipe(), os.pipe()
        runner = os.fork()
        if runner == 0:
            with open(self.path("refused"), "w", encoding="ascii") as file:
                file.write(as_user(NOBODY, crowd))
            os._exit(0)  # pylint: disable=protected-access
        os.read(ready[0], 1)  # while they are open, another user and root are answered
        self.assertEqual(self.ask_as(SOMEBODY, {"request": "status"})["reply"], "status")
        self.assertTrue(self.client().status())
        os.write(go[1], b"x")
        os.waitpid(runner, 0)
        with open(self.path("refused"), encoding="ascii") as file:
            self.assertEqual(int(file.read()), 1000 - 57)
        wait_until(lambda: len(open_files(daemon.pid)) <= len(before) + 1)

    def test_a_client_that_never_reads(self):
        daemon = self.daemon()
        greedy = self.client()
        greedy.socket.settimeout(0.2)
        asked = 0
        try:
            for asked in range(100000):
                greedy.send({"request": "status"})
        except OSError:
            pass
        self.assertLess(asked, 99999)
        self.assertTrue(self.client().status())
        greedy.close()
        wait_until(lambda: sum("socket" in name for name in open_files(daemon.pid)) <= 3)

    @harness.sleeps
    def test_a_client_that_says_nothing_is_left(self):
        self.daemon()
        silent = self.client()
        self.assertEqual(silent.receive(), (None, []))

    def test_a_session_whose_pipes_nobody_reads(self):
        self.daemon(program=self.script("#!/bin/sh\nexec cat /dev/zero\n"))
        client, _ = self.begin({"request": "top", "pids": [self.process().pid]})
        self.assertTrue(self.client().status())
        self.assertEqual(client.ask({"request": "stop"})[0], {"reply": "ended", "session": 1, "exit_status": 130})

    @needs_root
    def test_users_record_their_own_processes_only(self):
        daemon = self.daemon(program=self.script())
        own = self.process("setpriv", "--reuid", str(NOBODY), "--clear-groups", "sleep", "1000")
        wait_until(lambda: os.stat(f"/proc/{own.pid}/stat").st_uid == NOBODY and self.command(own.pid) == "sleep 1000")
        foreign = self.process()
        for user, pids, code in ((NOBODY, [foreign.pid], "permission"), (SOMEBODY, [own.pid], "permission"),
                                 (NOBODY, [own.pid, foreign.pid], "permission"), (NOBODY, [1], "permission"),
                                 (NOBODY, [daemon.pid], "permission")):
            for kind in ("record", "top"):
                reply = self.ask_as(user, {"request": kind, "pids": pids})
                self.assertEqual((reply["reply"], reply.get("code")), ("refused", code), (user, pids))
        self.assertEqual(self.started(), [])
        self.assertEqual(self.ask_as(NOBODY, {**RECORD, "pids": [own.pid]})["reply"], "started")
        (line,) = self.started()
        self.assertEqual(line[line.index("--owner") + 1], str(NOBODY))

    @needs_root
    def test_processes_with_more_rights_than_their_user_are_not_the_users(self):
        # Such as programs with the set-user-id bit that have gone back to the user for a while, and agents.
        self.daemon(program=self.script())
        become = ("import ctypes, os, time; os.setresuid({0}, {0}, {1}); ctypes.CDLL(None).prctl(4, {2}); print(flush=True); "
                  "time.sleep(1000)")
        for saved, dumpable, expected in ((0, 0, "refused"), (0, 1, "refused"), (NOBODY, 0, "refused"), (NOBODY, 1, "started")):
            target = subprocess.Popen(["python3", "-c", become.format(NOBODY, saved, dumpable)], stdout=subprocess.PIPE)
            self.addCleanup(target.communicate)
            self.addCleanup(target.kill)
            target.stdout.readline()
            self.assertEqual(os.stat(f"/proc/{target.pid}").st_uid, NOBODY)
            reply = self.ask_as(NOBODY, {**RECORD, "pids": [target.pid]})
            self.assertEqual(reply["reply"], expected, (saved, dumpable, reply))

    @needs_root
    def test_members_of_the_group_record_open_services(self):
        for name in "1001", "1002":
            self.process("sleep", name)
        self.daemon('[daemon]\ngroup = "nogroup"\n[[service]]\nname = "open"\ncommand = "sleep 1001"\naccess = true\n'
                    'watch = false\n[[service]]\nname = "closed"\ncommand = "sleep 1002"\nwatch = false\n',
                    program=self.script())
        pids = {name: next(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.command(pid) == f"sleep {name}")
                for name in ("1001", "1002")}
        for pid, groups, expected in ((pids["1001"], [65534], "started"), (pids["1001"], [], "refused"),
                                      (pids["1002"], [65534], "refused")):
            self.assertEqual(self.ask_as(SOMEBODY, {**RECORD, "pids": [pid]}, groups)["reply"], expected, (pid, groups))
        for service, groups, why in (("open", [65534], "there is no finished profile"), ("open", [], "there is no service"),
                                     ("closed", [65534], "there is no service")):
            reply = self.ask_as(SOMEBODY, {"request": "fetch", "service": service}, groups)
            self.assertIn(why, reply["message"])

    @staticmethod
    def command(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""

    @needs_root
    @harness.sleeps
    def test_a_pid_that_is_used_again_is_not_recorded(self):
        # The daemon's list of processes may be a minute old.
        self.daemon('[[service]]\nname = "web"\ncommand = "sleep 1001"\n',
                    program=self.script('#!/bin/sh\necho "$$" >>"$(dirname "$0")/started"\nexec sleep 1000\n'))
        first = self.process("sleep", "1001")
        wait_until(self.started)
        first.kill()
        first.wait()
        for _ in range(200):
            with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as last:
                last.write(str(first.pid - 1))
            second = self.process("sleep", "999")
            if second.pid == first.pid:
                break
            second.kill()
        else:
            self.skipTest("pids: this machine is too busy to give a process a chosen pid")
        os.kill(int(self.started()[0][0]), signal.SIGKILL)  # the recorder: the daemon looks for processes again
        time.sleep(6)  # every 5 s
        self.assertEqual(len(self.started()), 1)


class Shortages(daemon_harness.Case):
    @harness.sleeps
    def test_without_descriptors_clients_wait_and_the_daemon_sleeps(self):
        daemon = self.daemon(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        clients = [self.client() for _ in range(60)]
        wait_until(lambda: "cannot accept a connection: Too many open files" in self.logged())
        before = cpu_seconds(daemon.pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(daemon.pid) - before, 0.5)
        self.assertLess(len(self.logged().splitlines()), 20)
        for client in clients:
            client.close()
        wait_until(lambda: len(open_files(daemon.pid)) < 20)
        self.assertTrue(self.client().status())

    @needs_root
    def test_without_processes_sessions_are_refused(self):
        os.chmod(self.folder, 0o777)
        self.daemon(program=self.script(), user=LONELY, group=LONELY, extra_groups=[],
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        target = self.process()
        reply, _ = self.client().ask({**RECORD, "pids": [target.pid]})
        self.assertEqual((reply["reply"], reply["code"]), ("refused", "system"), reply)
        self.assertIn("cannot start a process", reply["message"])
        self.assertEqual(self.client().status()["sessions"], [])

    def test_a_full_disk(self):
        os.mkdir(self.state)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.state], capture_output=True, text=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("a file system cannot be mounted here (run as root): " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", self.state], check=False)
        self.process("sleep", "1001")
        daemon = self.daemon('[[service]]\nname = "web"\ncommand = "sleep 1001"\n')
        with open(os.path.join(self.state, "ballast"), "wb") as ballast:
            try:
                ballast.write(b"x" * 65536)
                ballast.flush()
            except OSError:
                pass
        wait_until(lambda: "cannot be recorded" in self.logged())
        client, _ = self.begin({**RECORD, "pids": [self.process().pid], "options": {"duration_s": 0.2}})
        reply, descriptors = client.receive()
        self.assertEqual((reply["reply"], descriptors), ("ended", []), reply)
        self.assertNotEqual(reply["exit_status"], 0)
        os.remove(os.path.join(self.state, "ballast"))
        self.assertTrue(self.client().status())
        self.assertEqual(self.stop(daemon), 0)


class Retention(daemon_harness.Case):
    def keep(self, name, size, age_s, log=False):
        folder = os.path.join(self.state, "services", "web")
        os.makedirs(folder, exist_ok=True)
        for end in ("", "-wal") if log else ("",):
            path = os.path.join(folder, name + end)
            with open(path, "wb") as file:
                file.write(b"x" * size)
            os.utime(path, (time.time() - age_s, time.time() - age_s))

    def kept(self):
        return [os.path.basename(path) for path in self.profiles("web")]

    def test_profiles_go_by_age(self):
        self.keep("web.db.1", 10, 3700)
        self.keep("web.db.2", 10, 3500)
        self.keep("web.db.3", 10, -5000)  # a clock that was put back
        self.keep("web.db.4", 10, 9999, log=True)  # a killed recorder's
        self.keep("web.db.2.pb.gz", 10, 3500)
        self.daemon(state='max_age = "1h"\n')
        wait_until(lambda: self.kept() == ["web.db.2", "web.db.3"])
        self.assertEqual(len(os.listdir(os.path.join(self.state, "services", "web"))), 3)

    def test_profiles_go_by_size(self):
        self.keep("web.db.1", 20000, 1000)
        self.keep("web.db.2", 20000, 900, log=True)  # a killed recorder's, twice as large
        self.keep("web.db.3", 20000, 800)
        self.keep("web.db.4", 20000, 0, log=True)  # somebody is about to write to it
        self.daemon(state='max_size = "61K"\n', metrics=True)
        wait_until(lambda: self.kept() == ["web.db.3"])
        self.assertEqual(self.metric("crosstalk_profiles"), 2)
        self.assertEqual(self.metric("crosstalk_profile_bytes"), 60000)


if __name__ == "__main__":
    harness.main()
