# SPDX-License-Identifier: Apache-2.0
"""Runs crosstalkd in a temporary folder, and speaks with it as a client does (docs/daemon.md)."""

import array
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.request

import harness

CROSSTALKD = os.environ.get("CROSSTALKD", "crosstalkd")
LONGEST_MESSAGE = 64 * 1024

# In the place of crosstalk, for tests of the daemon alone. Its profiles are one line of text.
SCRIPT = """#!/bin/sh
for last; do :; done
case "$1" in
report) echo '{"schema":"crosstalk.report/1"}'; exit ;;
esac
[ "$1" = record ] && output=$last || output=/dev/null
echo "$$ $*" >>"$(dirname "$0")/started"
trap 'echo content >"$output"; exit 0' INT
while :; do sleep 0.05; done
"""


class Client:
    """A connection. Not for threads."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.socket.settimeout(60)
        self.begun = []

    def drop_begun(self):
        for number in self.begun:
            os.close(number)
        self.begun = []

    def close(self):
        self.drop_begun()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, request):
        self.socket.send(request if isinstance(request, bytes) else json.dumps(request).encode())

    def receive(self):
        """The next reply and its descriptors; None if the connection is over. Keeps the profile of `begun`."""
        reply, numbers = self.receive_any()
        while reply and reply["reply"] == "begun":
            self.drop_begun()
            self.begun = numbers
            reply, numbers = self.receive_any()
        return reply, numbers

    def receive_any(self):
        numbers = array.array("i")
        message, control, _, _ = self.socket.recvmsg(LONGEST_MESSAGE, socket.CMSG_SPACE(16 * numbers.itemsize))
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers.frombytes(data)
        return (json.loads(message) if message else None), list(numbers)

    def ask(self, request):
        self.send(request)
        return self.receive()

    def status(self):
        reply, _ = self.ask({"request": "status"})
        return reply["content"]


def children_of(pid):
    """Pids of a process's children, zombies included."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            return [int(child) for child in children.read().split()]
    except OSError:
        return []


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def open_files(pid):
    files = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            files.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return files


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.socket = self.path("s")
        self.state = self.path("state")

    def script(self, text=SCRIPT):
        """A program in the place of crosstalk."""
        path = self.path("crosstalk")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def started(self):
        """The command lines of the script, without the program's name; the first word is its pid."""
        try:
            with open(self.path("started"), encoding="ascii") as lines:
                return [line.split() for line in lines]
        except FileNotFoundError:
            return []

    def configure(self, text="", metrics=False, state=""):
        with open(self.path("c.toml"), "w", encoding="utf-8") as file:
            address = '"127.0.0.1"' if metrics else '""'
            file.write(f'[state]\ndirectory = "{self.state}"\n{state}[metrics]\naddress = {address}\nport = 0\n{text}')

    def daemon(self, text="", program=None, metrics=False, state="", **more):
        """Starts a daemon with this configuration; `state`: more for that table. Its log is in the file `log`."""
        self.configure(text, metrics, state)
        self.log = self.path("log")
        with open(self.log, "ab") as log:
            process = subprocess.Popen([CROSSTALKD, "--config", self.path("c.toml"), "--socket", self.socket, "--program",
                                        program or harness.CROSSTALK], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       **more)
        self.addCleanup(self.end, process)
        harness.wait_until(lambda: process.poll() is not None or self.answers())
        self.assertIsNone(process.poll(), self.logged())
        return process

    def answers(self):
        try:
            client = Client(self.socket)
        except OSError:
            return False
        client.close()
        return True

    def end(self, process):
        """Nothing of a test outlives it."""
        workers = children_of(process.pid)
        process.kill()
        process.wait()
        for worker in workers:
            harness.wait_until(lambda: not is_alive(worker))  # pylint: disable=cell-var-from-loop

    def stop(self, process):
        """Ends it as the service manager does; its exit status."""
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=60)

    def logged(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def client(self):
        client = Client(self.socket)
        self.addCleanup(client.close)
        return client

    def begin(self, request, client=None):
        """A client whose session has begun, and the read ends of its worker's pipes."""
        client = client or self.client()
        reply, descriptors = client.ask(request)
        self.assertEqual(reply["reply"], "started", reply)
        for descriptor in descriptors:
            self.addCleanup(os.close, descriptor)
        return client, descriptors

    def profile_of(self, descriptors, name="received.db"):
        """Copies a profile that was sent as a descriptor; its path."""
        self.assertEqual(len(descriptors), 1)
        with open(descriptors[0], "rb") as file, open(self.path(name), "wb") as copy:
            copy.write(file.read())
        return self.path(name)

    def service_program(self, name):
        """A copy of a workload: other tests run the workload itself meanwhile, and would belong to the service."""
        return shutil.copy(harness.workload(name), self.path(f"{name}-service"))

    def process(self, *command):
        """A process to record. It does not outlive the test."""
        process = subprocess.Popen(command or ["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def writes(self, folder):
        """A recorder has a profile in this folder of the state open."""
        path = os.path.join(self.state, folder)
        return os.path.isdir(path) and any(name.endswith("-shm") for name in os.listdir(path))

    def sessions_left(self):
        try:
            return os.listdir(os.path.join(self.state, "sessions"))
        except FileNotFoundError:
            return []

    def profiles(self, service):
        """Finished profiles of a service, oldest first."""
        folder = os.path.join(self.state, "services", service)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return [os.path.join(folder, name) for name in sorted(names)
                if re.fullmatch(re.escape(service) + r"\.db(\.\d+)?", name) and name + "-wal" not in names]

    def metrics_address(self):
        return harness.wait_until(lambda: re.search(r"metrics are at (\S+)", self.logged())).group(1)

    def newest(self, service):
        """The profile that is being written, or was last."""
        folder = os.path.join(self.state, "services", service)
        return os.path.join(folder, max(name for name in os.listdir(folder) if not name.endswith(("-wal", "-shm"))))

    def scrape(self):
        """The text of the metrics."""
        with urllib.request.urlopen(self.metrics_address(), timeout=60) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def metric(self, name, **labels):
        """The value of a sample; None if there is none."""
        wanted = name + ("{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else "")
        for line in self.scrape()[1].splitlines():
            sample, _, value = line.rpartition(" ")
            if sample == wanted:
                return float(value)
        return None
