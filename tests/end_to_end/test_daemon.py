# SPDX-License-Identifier: Apache-2.0
"""crosstalkd records for clients and services: what they get, and how it ends."""

import os
import signal
import socket
import sqlite3
import subprocess

import daemon_harness
import harness
from daemon_harness import children_of, is_alive
from harness import needs_events, wait_until, workload

RECORD = {"request": "record"}


def is_sound(profile):
    database = sqlite3.connect(profile)
    try:
        return database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    finally:
        database.close()


class Answers(daemon_harness.Case):
    def test_status(self):
        self.daemon('[[service]]\nname = "web"\nunit = "none.service"\ninterval = "5s"\nbudget = "2%"\n')
        status = self.client().status()
        self.assertRegex(status["version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(status["sessions"], [])
        expected = {"name": "web", "recording": False, "pids": [], "budget": 0.02, "interval_s": 5,
                    "state": "no process of it runs"}
        # Others than root see services that are open to them only.
        self.assertEqual(status["services"], [expected] if os.geteuid() == 0 else [])

    def test_refusals_are_one_line_and_the_connection_goes_on(self):
        self.daemon()
        client = self.client()
        for request, code in (
                ({**RECORD, "pids": [2 ** 30]}, "not_found"),
                ({"request": "top", "pids": [2]}, "not_found"),  # the kernel's
                ({"request": "stop"}, "not_found"),
                ({"request": "profiles", "service": "none"}, "not_found"),
                ({"request": "fetch", "service": "../..", "profile": "etc/passwd"}, "not_found")):
            reply, descriptors = client.ask(request)
            self.assertEqual((reply["reply"], reply["code"], descriptors), ("refused", code, []), request)
            self.assertNotIn("\n", reply["message"])
        self.assertEqual(client.status()["sessions"], [])

    def test_garbage_ends_the_connection(self):
        self.daemon()
        for garbage in (b"\xff\xfe", b"{", b"[" * 60000, b"GET /metrics HTTP/1.1\r\n\r\n", b"\0" * 65536, b'{"request":7}',
                        b'{"request":"record","pids":"1"}'):
            client = self.client()
            reply, _ = client.ask(garbage)
            self.assertEqual(reply["reply"], "refused", garbage[:40])
            self.assertEqual(client.receive(), (None, []))
        client = self.client()
        client.send(b"a" * 70000)  # more than a message
        self.assertEqual(client.receive(), (None, []))
        self.assertTrue(self.client().status())

    def test_only_one_daemon_has_a_socket_and_a_state(self):
        first = self.daemon()
        command = [daemon_harness.CROSSTALKD, "--config", self.path("c.toml"), "--program", harness.CROSSTALK, "--socket"]
        for path, why in ((self.socket, "another crosstalkd listens"), (self.path("t"), "another crosstalkd has the state")):
            second = harness.run([*command, path])
            self.assertEqual(second.status, 1, second.stderr)
            self.assertIn(why, second.stderr)
            self.assertEqual(second.stderr.count("\n"), 1, second.stderr)
        self.assertTrue(self.client().status())
        self.assertEqual(self.stop(first), 0)
        self.assertFalse(os.path.exists(self.socket))
        first = self.daemon()
        first.kill()  # leaves the socket behind
        first.wait()
        self.daemon()

    def test_command_line_and_configuration_are_checked(self):
        self.configure('[daemon]\nsessions = 5\n')
        check = [daemon_harness.CROSSTALKD, "--check", "--config", self.path("c.toml")]
        self.assertEqual(harness.run(check).stdout, f"crosstalkd: {self.path('c.toml')} is valid: 0 services\n")
        self.configure('[daemon]\nsession = 5\n')
        refused = harness.run(check)
        self.assertEqual(refused.status, 125)
        self.assertIn("c.toml:7: there is no key 'session'", refused.stderr)
        self.configure()
        absent = harness.run([daemon_harness.CROSSTALKD, "--config", self.path("c.toml"), "--program", "/nowhere/crosstalk"])
        self.assertEqual(absent.status, 1)
        self.assertIn("--program /nowhere/crosstalk cannot be executed: No such file or directory", absent.stderr)
        for options in (["--colour"], ["--config"], ["extra"]):
            refused = harness.run([daemon_harness.CROSSTALKD, *options])
            self.assertEqual((refused.status, refused.stderr.count("\n")), (125, 1), refused.stderr)


class Records(daemon_harness.Case):
    """With the real crosstalk."""

    @needs_events
    def test_a_session_gives_a_profile(self):
        daemon = self.daemon()
        target = self.process(workload("false_sharing"), "--seconds", "60")
        client, _ = self.begin({**RECORD, "pids": [target.pid], "options": {"duration_s": 0.7, "budget_percent": 2}})
        self.assertEqual(client.status()["sessions"][0]["pids"], [target.pid])
        reply, descriptors = client.receive()
        self.assertEqual((reply["reply"], reply["exit_status"]), ("ended", 0), reply)
        report = self.report(self.profile_of(descriptors))
        self.assertEqual(report["processes"][0]["pid"], target.pid)
        self.assertGreater(report["sampling"]["samples"], 0)
        self.assertEqual(report["sampling"]["settings"]["budget"], 0.02)
        self.assertEqual((self.sessions_left(), children_of(daemon.pid)), ([], []))
        # The connection may begin another one, which lasts until it is told.
        self.begin({**RECORD, "pids": [target.pid]}, client)
        reply, _ = client.ask({**RECORD, "pids": [target.pid]})
        self.assertEqual((reply["reply"], reply["code"]), ("refused", "refused"))
        self.assertEqual(client.ask({"request": "stop"})[0]["reply"], "ended")

    @needs_events
    def test_recordings_are_whole_at_the_daemons_end(self):
        program = self.service_program("false_sharing")
        target = self.process(program, "--seconds", "60")
        daemon = self.daemon(f'[[service]]\nname = "web"\ncommand = "{program}*"\ninterval = "1h"\n')
        client, _ = self.begin({**RECORD, "pids": [target.pid], "options": {"budget_percent": 1}})
        wait_until(lambda: self.writes("services/web") and self.writes("sessions"))
        workers = children_of(daemon.pid)
        self.assertEqual(len(workers), 2)
        self.assertEqual(self.stop(daemon), 0, self.logged())
        self.assertFalse(any(map(is_alive, workers)))
        reply, descriptors = client.receive()
        self.assertEqual((reply["reply"], reply["exit_status"]), ("ended", 0), reply)
        self.assertTrue(is_sound(self.profile_of(descriptors)))
        (profile,) = self.profiles("web")
        self.assertTrue(self.report(profile)["complete"])
        self.assertEqual(self.sessions_left(), [])

    @needs_events
    def test_recordings_end_by_themselves_if_the_daemon_is_killed(self):
        program = self.service_program("false_sharing")
        target = self.process(program, "--seconds", "60")
        service = f'[[service]]\nname = "web"\ncommand = "{program}*"\ninterval = "1h"\n'
        daemon = self.daemon(service)
        self.begin({**RECORD, "pids": [target.pid]})
        wait_until(lambda: self.writes("services/web") and self.writes("sessions"))
        workers = children_of(daemon.pid)
        self.assertEqual(len(workers), 2)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        wait_until(lambda: not any(map(is_alive, workers)))
        (session,) = self.sessions_left()
        self.assertTrue(self.report(os.path.join(self.state, "sessions", session))["complete"])
        (profile,) = self.profiles("web")
        self.assertTrue(self.report(profile)["complete"])
        daemon = self.daemon(service)
        wait_until(lambda: not self.sessions_left())
        wait_until(lambda: self.writes("services/web") and harness.samples_in(self.newest("web")) > 0)
        self.assertEqual(self.stop(daemon), 0)
        self.assertEqual(len(self.profiles("web")), 2)

    @harness.verify("a killed recorder's profile is left alone for a minute")
    @needs_events
    def test_the_profile_of_a_killed_recorder_can_be_fetched(self):
        program = self.service_program("false_sharing")
        self.process(program, "--seconds", "200")
        daemon = self.daemon(f'[[service]]\nname = "web"\ncommand = "{program}*"\ninterval = "1h"\n')
        wait_until(lambda: self.writes("services/web") and harness.samples_in(self.newest("web")) > 100)
        (worker,) = children_of(daemon.pid)
        left = os.path.basename(self.newest("web"))
        os.kill(worker, signal.SIGKILL)

        def listed():
            with daemon_harness.Client(self.socket) as client:
                reply, _ = client.ask({"request": "profiles", "service": "web"})
            return [each["name"] for each in reply["content"]["profiles"]]

        self.assertNotIn(left, listed())
        wait_until(lambda: left in listed(), 150)
        _, descriptors = self.client().ask({"request": "fetch", "service": "web", "profile": left})
        report = self.report(self.profile_of(descriptors))
        self.assertFalse(report["complete"])
        self.assertGreater(report["sampling"]["samples"], 100)
        self.assertIn(f"web: the recorder of {left} was killed", self.logged())

    @needs_events
    def test_a_client_keeps_its_recording_if_the_daemon_is_killed(self):
        target = self.process(workload("false_sharing"), "--seconds", "60")
        daemon = self.daemon()
        profile = self.path("kept.db")
        client = subprocess.Popen([harness.CROSSTALK, "record", "--daemon", "-o", profile, "-p", str(target.pid)],
                                  env={**os.environ, "CROSSTALK_SOCKET": self.socket}, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        wait_until(lambda: self.sessions_left() and self.writes("sessions"))
        (session,) = (os.path.join(self.state, "sessions", name) for name in self.sessions_left() if name.endswith(".db"))
        wait_until(lambda: session in daemon_harness.open_files(client.pid) and harness.samples_in(session) > 0)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        _, words = client.communicate(timeout=60)
        self.assertEqual(client.returncode, 0, words)
        self.assertIn("crosstalkd has gone, and the recording ended with it", words)
        report = self.report(profile)
        self.assertTrue(report["complete"])
        self.assertGreater(report["sampling"]["samples"], 0)

    @needs_events
    def test_a_service_is_recorded_in_intervals_and_told_by_metrics(self):
        program = self.service_program("private_only")
        target = self.process(program, "--threads", "1", "--seconds", "60")  # reports run while a processor is idle
        self.daemon(f'[[service]]\nname = "web"\ncommand = "{program}*"\ninterval = "1s"\n', metrics=True)
        kind, text = self.scrape()
        self.assertTrue(kind.startswith("application/openmetrics-text; version=1.0.0"))
        self.assertTrue(text.endswith("# EOF\n"))
        wait_until(lambda: (self.metric("crosstalk_intervals_total", service="web") or 0) >= 2)
        self.assertIsNone(self.metric("crosstalk_interval_failures_total", service="other"))
        self.assertEqual(self.metric("crosstalk_interval_failures_total", service="web"), 0, self.logged())
        self.assertGreater(self.metric("crosstalk_cpu_seconds_total", service="web"), 0.1)
        self.assertGreater(self.metric("crosstalk_recorded_seconds_total", service="web"), 1)
        self.assertEqual(self.metric("crosstalk_watched", service="web"), 1)
        self.assertGreaterEqual(self.metric("crosstalk_profiles"), 2)
        client = self.client()
        if os.geteuid() == 0:
            (service,) = client.status()["services"]
            self.assertEqual((service["recording"], service["pids"]), (True, [target.pid]))
            reply, _ = client.ask({"request": "profiles", "service": "web"})
            names = [profile["name"] for profile in reply["content"]["profiles"]]
            self.assertGreaterEqual(len(names), 2)
            self.assertEqual(names, sorted(names))
            for wanted in ({}, {"profile": names[0]}):
                reply, descriptors = client.ask({"request": "fetch", "service": "web", **wanted})
                self.assertEqual(reply["reply"], "profile")
                self.assertTrue(self.report(self.profile_of(descriptors))["complete"])


class Ends(daemon_harness.Case):
    """With a script in the place of crosstalk."""

    def test_a_client_that_vanishes_ends_its_session(self):
        daemon = self.daemon(program=self.script())
        target = self.process()
        client, _ = self.begin({**RECORD, "pids": [target.pid]})
        (worker,) = wait_until(lambda: children_of(daemon.pid))
        wait_until(self.started)
        client.close()
        wait_until(lambda: not is_alive(worker))
        other = self.client()
        wait_until(lambda: not other.status()["sessions"])
        self.assertEqual((self.sessions_left(), children_of(daemon.pid)), ([], []))

    def test_a_session_ends_at_the_longest_time(self):
        self.daemon('[daemon]\nlongest_session = "1s"\n', program=self.script())
        client, _ = self.begin({**RECORD, "pids": [self.process().pid], "options": {"duration_s": 1000}})
        reply, descriptors = client.receive()
        self.assertEqual(reply["reply"], "ended")
        with open(self.profile_of(descriptors), encoding="ascii") as profile:
            self.assertEqual(profile.read(), "content\n")

    @harness.sleeps
    def test_a_worker_that_does_not_end_is_killed_with_its_group(self):
        stubborn = "#!/bin/sh\ntrap '' INT\nsleep 1000 &\necho $! >>\"$(dirname \"$0\")/started\"\nwhile :; do sleep 0.1; done\n"
        daemon = self.daemon(program=self.script(stubborn))
        self.begin({**RECORD, "pids": [self.process().pid]})
        ((child,),) = wait_until(self.started)
        self.assertEqual(self.stop(daemon), 0)
        wait_until(lambda: not is_alive(int(child)))

    def test_the_daemon_ends_while_workers_do_not_write_what_is_asked(self):
        # One that says too much for a pipe that nobody reads, one that closes everything.
        for script in ("exec cat /dev/zero >&2", "trap 'exit 0' INT; exec <&- >&- 2>&-; while :; do sleep 0.1; done"):
            daemon = self.daemon(program=self.script("#!/bin/sh\n" + script + "\n"))
            for kind in ("record", "top"):
                self.begin({"request": kind, "pids": [self.process().pid]})
            self.assertEqual(self.client().status()["sessions"][0]["id"], 1)
            self.assertEqual(self.stop(daemon), 0)


class Reloads(daemon_harness.Case):
    def service(self, name, more=""):
        return f'[[service]]\nname = "{name}"\ncommand = "sleep 1{name}"\n{more}'

    def reload(self, daemon, expected):
        before = self.logged().count(expected)
        daemon.send_signal(signal.SIGHUP)
        wait_until(lambda: self.logged().count(expected) > before)

    def test_what_changed_begins_again_and_the_rest_goes_on(self):
        for name in "001", "002", "003":
            self.process("sleep", "1" + name)
        daemon = self.daemon(self.service("001") + self.service("002"), program=self.script())
        wait_until(lambda: len(self.started()) == 2)
        stays = next(line for line in self.started() if any("001.db" in word for word in line))
        self.configure(self.service("001") + self.service("002", 'budget = "2%"\n') + self.service("003"))
        self.reload(daemon, "read the configuration again: 3 watched services")
        wait_until(lambda: len(self.started()) == 4)
        self.assertTrue(is_alive(int(stays[0])))
        self.assertEqual(len(children_of(daemon.pid)), 3)
        changed = self.started()[2:]
        self.assertEqual(sorted(line[line.index("--budget") + 1] for line in changed), ["1", "2"])
        self.configure(self.service("001"))
        self.reload(daemon, "read the configuration again: 1 watched services")
        wait_until(lambda: len(children_of(daemon.pid)) == 1)
        self.assertTrue(is_alive(int(stays[0])))
        self.assertEqual(self.stop(daemon), 0)

    def test_a_broken_file_changes_nothing(self):
        self.process("sleep", "1001")
        daemon = self.daemon(self.service("001"), program=self.script())
        (line,) = wait_until(self.started)
        with open(self.path("c.toml"), "a", encoding="ascii") as file:
            file.write("sessions = \n")
        self.reload(daemon, "it is not TOML")
        os.remove(self.path("c.toml"))
        self.reload(daemon, "cannot read the configuration")
        os.mkdir(self.path("c.toml"))
        self.reload(daemon, "is it a file?")
        os.rmdir(self.path("c.toml"))
        self.state = self.path("elsewhere")
        self.configure(self.service("001"))
        self.reload(daemon, "change at a restart only")
        self.assertTrue(is_alive(int(line[0])))
        self.assertEqual(len(self.started()), 1)


class Manager(daemon_harness.Case):
    """Under a service manager, as systemd is one: sd_listen_fds(3), sd_notify(3)."""

    def test_it_takes_the_managers_socket_and_tells_its_state(self):
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notified.close)
        notified.bind(self.path("notify"))
        notified.settimeout(60)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.bind(self.path("s"))
        listener.listen()
        self.configure()
        # Descriptor 3 is the socket, and the process that executes the daemon is the one that is meant.
        shell = f'exec 3<&{listener.fileno()} {listener.fileno()}<&-; LISTEN_FDS=1 LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@"'
        daemon = subprocess.Popen(["bash", "-c", shell, "bash", daemon_harness.CROSSTALKD, "--config", self.path("c.toml"),
                                   "--socket", self.path("unused"), "--program", harness.CROSSTALK],
                                  env={**os.environ, "NOTIFY_SOCKET": self.path("notify"), "WATCHDOG_USEC": "600000"},
                                  pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, daemon)
        self.assertEqual(notified.recv(100), b"READY=1")
        self.assertTrue(self.client().status())
        for _ in range(5):  # without anything else to do
            self.assertEqual(notified.recv(100), b"WATCHDOG=1")
        daemon.send_signal(signal.SIGHUP)
        self.expect(notified, b"RELOADING=1")
        self.expect(notified, b"READY=1")
        self.assertEqual(self.stop(daemon), 0)
        self.expect(notified, b"STOPPING=1")
        self.assertTrue(os.path.exists(self.path("s")))  # it is the manager's
        self.assertFalse(os.path.exists(self.path("unused")))

    def expect(self, notified, message):
        while (got := notified.recv(100)) == b"WATCHDOG=1":
            pass
        self.assertEqual(got, message)


if __name__ == "__main__":
    harness.main()
