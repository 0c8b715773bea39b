# SPDX-License-Identifier: Apache-2.0
"""Real programs of the bench of usefulness, built twice from Debian's sources: as they are, and with a patch of ours
(bench/advice/*.patch) that does what is advised. Sources and builds are kept below the build folder."""

import glob
import os
import shutil
import socket
import subprocess
import sys
import time

import common

HERE = os.path.join(common.TOP, "bench", "advice")
FOLDER = os.path.join(common.BUILD, "bench", "sources")
FORMS = ("found", "advised")
FLAGS = "-O2 -g"


def run(command, **options):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed: {done.stdout.strip().splitlines()[-1:]}")


def apt(*words, **options):
    """apt-get with the sources of this release, and with lists of its own: what the machine has set up stays as it is."""
    run(["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={FOLDER}/sources.list", "-o", "Dir::Etc::SourceParts=-", "-o",
         f"Dir::State::Lists={FOLDER}/lists", "-o", f"Dir::Cache={FOLDER}/cache", *words], **options)


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        facts = dict(line.strip().split("=", 1) for line in file if "=" in line)
    return facts["VERSION_CODENAME"].strip('"')


def source(package):
    """The folder of the package's source, unpacked with Debian's patches."""
    place = os.path.join(FOLDER, package)
    found = [path for path in glob.glob(os.path.join(place, "*")) if os.path.isdir(path)]
    if found:
        return found[0]
    os.makedirs(place, exist_ok=True)
    for each in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(FOLDER, each), exist_ok=True)
    name = release()
    with open(os.path.join(FOLDER, "sources.list"), "w", encoding="ascii") as file:
        file.write(f"deb-src http://deb.debian.org/debian {name} main\n"
                   f"deb-src http://deb.debian.org/debian-security {name}-security main\n")
    apt("update")
    apt("source", "--only-source", package, cwd=place)
    return [path for path in glob.glob(os.path.join(place, "*")) if os.path.isdir(path)][0]


def copies(package, patch):
    """By form, a copy of the source to build in, and whether it is new."""
    result = {}
    for form in FORMS:
        place = os.path.join(FOLDER, f"{package}-{form}")
        fresh = not os.path.isdir(place)
        if fresh:
            part = place + ".part"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(source(package), part, symlinks=True)
            if form == "advised":
                run(["patch", "-p1", "-i", os.path.join(HERE, patch)], cwd=part)
            os.rename(part, place)
        result[form] = place
    return result


class RedisBenchmark:
    """Threads of a load generator count requests on the line of what all of them read. The server is Debian's own."""
    requests = 5_000_000

    def __init__(self):
        self.programs = {}
        for form, place in copies("redis", "redis-benchmark.patch").items():
            program = os.path.join(place, "src", "redis-benchmark")
            if not os.path.exists(program):
                run(["make", "-C", "src", "-j2", "redis-benchmark", "MALLOC=libc", f"REDIS_CFLAGS={FLAGS}"], cwd=place)
            self.programs[form] = program
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = str(listener.getsockname()[1])
        self.server = subprocess.Popen(["redis-server", "--port", self.port, "--save", "", "--appendonly", "no"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(self.port))) == 0:
                    return
            time.sleep(0.1)
        sys.exit("bench: redis-server does not answer")

    def command(self, form, permille):
        return [self.programs[form], "-p", self.port, "--threads", "2", "-c", "8", "-P", "32", "-q", "-t", "ping_mbulk",
                "-n", str(self.requests * permille // 1000)]

    def end(self):
        self.server.terminate()
        self.server.wait()


class BerkeleyDb:
    """Threads read records of one tree in memory: each read counts in the headers of the pages on its way."""

    def __init__(self):
        self.programs = {}
        for form, place in copies("db5.3", "berkeley-db.patch").items():
            build = os.path.join(place, "build_unix")
            library = os.path.join(build, "libdb-5.3.a")
            program = os.path.join(build, "berkeley_db")
            if not os.path.exists(program):
                run([os.path.join(place, "dist", "configure"), "--disable-shared", "--disable-replication", f"CFLAGS={FLAGS}"],
                    cwd=build)
                run(["make", "-j2", "libdb-5.3.a"], cwd=build)
                run(["cc", *FLAGS.split(), "-I", build, os.path.join(HERE, "berkeley_db.c"), library, "-lpthread", "-o",
                     program])
            self.programs[form] = program

    def command(self, form, permille):
        return [self.programs[form], str(permille)]

    def end(self):
        pass


PROGRAMS = {"redis_benchmark": RedisBenchmark, "berkeley_db": BerkeleyDb}
