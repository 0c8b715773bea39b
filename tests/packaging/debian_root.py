# SPDX-License-Identifier: Apache-2.0
"""Debian 12 with what our packages depend on and no more, as an archive that mmdebstrap makes once, and folders of it in
which the tests install the packages. Everything is below build/package."""

import fcntl
import glob
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "package"
ALWAYS = ("dbus", "procps", "systemd", "systemd-sysv", "udev")


class Unavailable(Exception):
    """The tests cannot be run here; the text says why, and the remedy."""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, errors="replace",
                          **options)


def said(*command):
    """What a command prints that must succeed."""
    done = run(*command)
    if done.returncode != 0:
        raise Unavailable(f"{command[0]} fails: {(done.stderr.strip().splitlines() or ['it does not say why'])[-1]}")
    return done.stdout


def package(name):
    """Path of one of our packages."""
    found = [path for path in glob.glob(f"{FOLDER}/{name}_*.deb") if f"/{name}_" in path]
    if len(found) != 1:
        raise Unavailable(f"build/package has {len(found)} packages {name}: ./dev package builds them")
    return found[0]


def dependencies(*names):
    """Names of Debian's packages that ours depend on: of alternatives the first."""
    needed = set()
    for name in names:
        fields = said("dpkg-deb", "--field", package(name), "Depends")
        needed |= {re.split(r"[ (|]", clause.strip())[0] for clause in fields.split(",")}
    return sorted(name for name in needed if not name.startswith("crosstalk"))


def archive(packages):
    """Path of the archive of a Debian with these packages."""
    wanted = sorted({*ALWAYS, *packages})
    key = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12]
    path = FOLDER / f"debian-{key}.tar"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "debian.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if not path.exists():
            _make(path, wanted)
    return path


def _make(path, packages):
    if shutil.which("mmdebstrap") is None:
        raise Unavailable("mmdebstrap is missing: ./dev deps package")
    mirrors = said("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages",
                   "Origin: Debian").splitlines()
    part = path.with_suffix(".part.tar")
    done = run("mmdebstrap", "--variant=minbase", "--include=" + ",".join(packages), "bookworm", part, *sorted(set(mirrors)))
    if done.returncode != 0:
        part.unlink(missing_ok=True)
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines() or ["no word"]
        raise Unavailable(f"no Debian can be made here; mmdebstrap: {lines[-1]}")
    os.rename(part, path)


class Folder:
    """A Debian in a folder of its own, which is taken away at the end of the `with`."""

    def __init__(self, packages):
        if os.geteuid() != 0:
            raise Unavailable("only root may install packages in another root; sudo ./dev verify packages")
        self._archive = archive(packages)

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="root-", dir=FOLDER))
        self.path.chmod(0o755)
        said("tar", "--extract", "--file", self._archive, "--directory", self.path)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def run(self, script):
        """Runs a script of the shell in it, without network; its processes end with it."""
        inside = f"mount -t proc proc {shlex.quote(str(self.path))}/proc && exec chroot {shlex.quote(str(self.path))} " \
                 f"/usr/bin/env -i PATH=/usr/sbin:/usr/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 " \
                 f"/bin/sh -ec {shlex.quote(script)}"
        return run("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", inside, stdin=subprocess.DEVNULL)

    def install(self, *debs):
        """Installs packages: dpkg alone, so every dependency must be there."""
        (self.path / "packages").mkdir(exist_ok=True)
        for deb in debs:
            shutil.copy(deb, self.path / "packages")
        done = self.run("dpkg --force-confdef --force-confold --install " +
                        " ".join("/packages/" + os.path.basename(deb) for deb in debs))
        shutil.rmtree(self.path / "packages")
        return done

    def files(self):
        """{path: (type and mode, owner, size or link)} of all but what every installation changes."""
        changes = re.compile(r"^/(proc|dev|sys|tmp|packages|run|var/(log|cache|lib/dpkg|backups)|"
                             r"etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd\.lock)-?$)")
        found = {}
        for folder, folders, names in os.walk(self.path):
            inside = folder.removeprefix(str(self.path)) or "/"
            folders[:] = [name for name in folders if not changes.match(os.path.join(inside, name))]
            for name in (*folders, *names):
                path = os.path.join(inside, name)
                if not changes.match(path):
                    facts = os.lstat(os.path.join(folder, name))
                    found[path] = (facts.st_mode, facts.st_uid, facts.st_gid)
        return found
