# SPDX-License-Identifier: Apache-2.0
"""The real programs that `overhead` runs: how to feed each and how to start it."""

import os
import random
import shutil
import socket
import subprocess
import time

import common


def sample_data(path, size):
    """`size` bytes of a tar of this system's own files: text, code and tables, as people compress."""
    if os.path.exists(path):
        return
    with open(path, "wb") as out:
        tar = subprocess.Popen(["tar", "-cf", "-", "--ignore-failed-read", "/usr/share", "/usr/lib/x86_64-linux-gnu"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while size > 0:
            piece = tar.stdout.read(min(size, 1 << 20))
            if not piece:
                break
            out.write(piece)
            size -= len(piece)
        tar.stdout.close()
        tar.wait()


def text_lines(path, count):
    if os.path.exists(path):
        return
    source = random.Random(1)
    with open(path, "w", encoding="ascii") as out:
        for _ in range(count):
            out.write(f"{source.getrandbits(64):016x} {source.randrange(1000)}\n")


def moving_picture(path, frames, width=640, height=360):
    """Raw video (I420): a textured plane that moves and a little noise, so that motion search has work to do."""
    if os.path.exists(path):
        return
    source = random.Random(2)
    plane = bytes((x * y // 7 + source.randrange(24)) & 255 for y in range(height) for x in range(width))
    chroma = bytes(128 for _ in range(width * height // 2))
    with open(path, "wb") as out:
        for frame in range(frames):
            shift = (frame * 3 * width + frame * 5) % len(plane)
            out.write(plane[shift:] + plane[:shift])
            out.write(chroma)


class Program:
    """A command that runs to its end."""

    def __init__(self, name, threads, needs, command, prepare=None, alone=0):
        """`alone`: what a run costs hangs on which processors its threads meet, so that two cannot run at once; so many
        runs of each kind in turns, or more, tell."""
        self.name, self.threads, self.needs, self.alone = name, threads, needs, alone
        self._command, self._prepare = command, prepare

    def available(self):
        return all(shutil.which(tool) or os.path.exists(tool) for tool in self.needs)

    def prepare(self, folder):
        if self._prepare:
            self._prepare(folder)

    def start(self, folder, profile):
        """Bare, or recorded when `profile` is given. The run's finish() gives (Weight, seconds that a user sees)."""
        command = self._command(folder)
        return Run(self.name, common.Weighed(common.recorded(command, profile) if profile else command))


class Run:
    def __init__(self, name, weighed):
        self.name, self.weighed = name, weighed

    def finish(self):
        weight = self.weighed.finish()
        if weight.status != 0:
            raise RuntimeError(f"{self.name} ended with {weight.status}")
        return weight, weight.seconds


class Redis:
    """A server with I/O threads, loaded by redis-benchmark on the loopback. The server's CPU time and the time
    that the load took are what is compared."""

    name, threads, needs = "redis-server --io-threads 2", "6", ["redis-server", "redis-benchmark", "redis-cli"]
    alone = 30  # its I/O threads spin

    def available(self):
        return all(shutil.which(tool) for tool in self.needs)

    def prepare(self, folder):
        pass

    @staticmethod
    def command(folder, port):
        return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--io-threads", "2",
                "--io-threads-do-reads", "yes", "--dir", folder.path]

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def start(self, folder, profile):
        port = str(self.free_port())
        command = self.command(folder, port)
        server = common.Weighed(common.recorded(command, profile) if profile else command)
        self.await_server(port)
        return RedisRun(server, port)

    @staticmethod
    def await_server(port):
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", int(port))) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError("redis-server did not come up")


class RedisRun:
    def __init__(self, server, port, requests=400000):
        self.server, self.port, self.begin = server, port, time.monotonic()
        self.load = subprocess.Popen(["redis-benchmark", "-p", port, "-q", "-n", str(requests), "-c", "20", "-P", "4",
                                      "-t", "set,get"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def finish(self):
        if self.load.wait() != 0:
            raise RuntimeError(f"redis-benchmark ended with {self.load.returncode}")
        seconds = time.monotonic() - self.begin
        subprocess.run(["redis-cli", "-p", self.port, "shutdown", "nosave"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        return self.server.finish(), seconds


def tar(folder, size, name="data.tar"):
    sample_data(folder.file(name), size)


def hackbench(loops=5000):
    return ["hackbench", "-T", "-p", "-g", "2", "-f", "20", "-l", str(loops)]


def pipe_ping_pong(trips):
    """On two processors a hand-over costs a wake-up from idle or none, as it falls, and runs differ threefold."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0))), os.path.join(common.WORKLOADS, "switching"), "--iterations",
            str(trips)]


def all_programs():
    workload = os.path.join(common.WORKLOADS, "switching")
    return [
        Program("pigz -p 4", "6", ["pigz"], lambda f: ["pigz", "-p", "4", "-k", "-c", f.file("data.tar")],
                lambda f: tar(f, 200_000_000)),
        Program("pbzip2 -p2", "5", ["pbzip2"], lambda f: ["pbzip2", "-p2", "-k", "-c", f.file("small.tar")],
                lambda f: tar(f, 48_000_000, "small.tar")),
        Program("zstd -T2 -10", "4", ["zstd"], lambda f: ["zstd", "-q", "-T2", "-10", "-c", f.file("data.tar")],
                lambda f: tar(f, 200_000_000)),
        Program("xz -T2 -2", "3", ["xz"], lambda f: ["xz", "-k", "-T2", "-2", "-c", f.file("small.tar")],
                lambda f: tar(f, 48_000_000, "small.tar")),
        Program("sort --parallel=2", "2", ["sort"],
                lambda f: ["sort", "--parallel=2", "-S", "700M", "-o", os.devnull, f.file("lines.txt")],
                lambda f: text_lines(f.file("lines.txt"), 4_000_000)),
        Program("x264 --threads 3", "5", ["x264"],
                lambda f: ["x264", "--quiet", "--threads", "3", "--input-res", "640x360", "--fps", "25", "-o",
                           os.devnull, f.file("video.yuv")],
                lambda f: moving_picture(f.file("video.yuv"), 1000)),
        Redis(),
        Program("hackbench -T (pipes)", "80", ["hackbench"],
                lambda f: hackbench(), alone=36),
        Program("switching (pipe ping-pong, one processor)", "3", [workload, "taskset"],
                lambda f: pipe_ping_pong(1600000), alone=30),
    ]
