# SPDX-License-Identifier: Apache-2.0
"""Debian's kernel for guests, and modules built against its headers.

The headers are installed as a package (docs/dependencies.md, group `kernel`). The kernel's image of the same version is
not: to install one changes what a machine boots, and takes half a gigabyte. It is taken out of the package as
downloaded, once, into FOLDER, with the few modules that guests need. As a program, fetches them: `./dev deps kernel` does.
"""

import contextlib
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.environ.get("CROSSTALK_GUEST_FOLDER") or os.path.join(ROOT, "build", "kernel")
INSTALL = "./dev deps kernel"


class Unavailable(Exception):
    """A guest's requirement is unavailable here; the text names it, and the remedy."""


@contextlib.contextmanager
def _alone(name):
    """Tests run side by side: one of them fetches or builds."""
    try:
        os.makedirs(FOLDER, exist_ok=True)
        lock = open(os.path.join(FOLDER, name + ".lock"), "w", encoding="ascii")  # pylint: disable=consider-using-with
    except OSError as error:
        raise Unavailable(f"{FOLDER} cannot be written ({error.strerror}): CROSSTALK_GUEST_FOLDER names another") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def release():
    """The kernel's release, "6.1.0-13-amd64": what the package linux-headers-amd64 stands for."""
    said = subprocess.run(["dpkg-query", "-W", "-f", "${Depends}", "linux-headers-amd64"],
                          capture_output=True, text=True, check=False)
    match = re.search(r"linux-headers-(\S+-amd64)", said.stdout)
    if said.returncode != 0 or not match:
        raise Unavailable(f"the package linux-headers-amd64 is not installed: {INSTALL}")
    return match.group(1)


def headers():
    folder = f"/usr/src/linux-headers-{release()}"
    if not os.path.isdir(folder):
        raise Unavailable(f"{folder} is missing: {INSTALL}")
    return folder


# ---- the image and the modules that come with it --------------------------------------------------------------

# Modules that mounting a host folder needs (9p by virtio), each after its dependencies; and those for a disk of a guest.
VIRTIO = ("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci")
SHARING = (*VIRTIO, "9pnet", "9pnet_virtio", "netfs", "fscache", "9p")
DISK = (*VIRTIO, "virtio_blk", "crc32c_generic", "crc16", "mbcache", "jbd2", "ext4")


def image():
    """Path of the kernel's image; fetched if need be."""
    installed = f"/boot/vmlinuz-{release()}"
    if os.access(installed, os.R_OK):
        return installed
    _fetch()
    return os.path.join(FOLDER, f"vmlinuz-{release()}")


def sharing_modules():
    """Paths of the modules SHARING, in the order in which they are to be loaded; fetched if need be."""
    return _modules(SHARING)


def disk_modules():
    """The same of the modules DISK."""
    return _modules(DISK)


def _modules(names):
    installed = glob.glob(f"/lib/modules/{release()}/kernel/**/*.ko", recursive=True)
    path_of = {os.path.basename(path).removesuffix(".ko"): path for path in installed}
    if not set(names) <= set(path_of):
        _fetch()
        path_of = {name: os.path.join(FOLDER, f"modules-{release()}", name + ".ko") for name in names}
    return [path_of[name] for name in names]


def _fetch():
    """Brings the image and the modules into FOLDER, once."""
    vmlinuz, modules = (os.path.join(FOLDER, f"{what}-{release()}") for what in ("vmlinuz", "modules"))
    def there():
        return os.path.exists(vmlinuz) and all(os.path.exists(f"{modules}/{name}.ko") for name in {*SHARING, *DISK})
    if there():
        return
    with _alone("image"):
        if there():  # by another test, meanwhile
            return
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            os.mkdir(folder + "/modules")
            wanted = {f"vmlinuz-{release()}": folder + "/vmlinuz",
                      **{name + ".ko": f"{folder}/modules/{name}.ko" for name in {*SHARING, *DISK}}}
            _extract(_download(f"linux-image-{release()}", folder), wanted)
            shutil.rmtree(modules, ignore_errors=True)
            os.rename(folder + "/modules", modules)
            os.rename(folder + "/vmlinuz", vmlinuz)


def _download(package, folder):
    """Path of the package's file."""
    def download():
        return subprocess.run(["apt-get", "download", "-q", package], cwd=folder, capture_output=True, text=True, check=False)
    said = download()
    if said.returncode != 0 and os.geteuid() == 0:  # the lists of packages may be old, or deleted
        subprocess.run(["apt-get", "update", "-q"], capture_output=True, check=False)
        said = download()
    files = glob.glob(os.path.join(folder, "*.deb"))
    if said.returncode != 0 or not files:
        why = (said.stderr.strip().splitlines() or ["apt-get said nothing"])[-1]
        raise Unavailable(f"the package {package} cannot be downloaded ({why}): "
                          "sudo apt-get update && sudo apt-get install linux-headers-amd64")
    return files[0]


def _extract(package, wanted):
    """Takes files out of a package: {name without its folder: path to write}."""
    left = dict(wanted)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as archive:
        try:
            with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
                for entry in files:
                    path = left.pop(os.path.basename(entry.name), None) if entry.isfile() else None
                    if path:
                        with open(path, "wb") as out:
                            shutil.copyfileobj(files.extractfile(entry), out)
                    if not left:
                        return
        finally:
            archive.kill()  # hundreds of modules follow
    raise Unavailable(f"{package} has no {', '.join(sorted(left))}")


# ---- modules --------------------------------------------------------------------------------------------------

class BuildError(Exception):
    pass


def build_module(folder, extra=()):
    """Builds the module whose sources and Kbuild are in `folder`, and returns the path of its .ko file. `extra`: more
    files to be put beside them. Any warning, with W=1, is an error."""
    name = os.path.basename(os.path.abspath(folder))
    build = os.path.join(FOLDER, "modules", name)
    with _alone("module-" + name):
        _copy_sources(folder, extra, build)
        made = subprocess.run(["make", "-s", "-C", headers(), f"M={build}", "W=1", "modules"],
                              capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        said = made.stdout + made.stderr
        if made.returncode != 0 or re.search(r"\bwarning\b", said, re.IGNORECASE):
            for built in glob.glob(os.path.join(build, "*.o")) + glob.glob(os.path.join(build, "*.ko")):
                os.remove(built)  # else the next attempt would not warn again
            raise BuildError(said)
        modules = glob.glob(os.path.join(build, "*.ko"))
        if len(modules) != 1:
            raise BuildError(f"{build} has {len(modules)} modules, not one\n{said}")
        return modules[0]


def _copy_sources(folder, extra, build):
    """Copies what has changed: make goes by the files' times."""
    os.makedirs(build, exist_ok=True)
    sources = [path for pattern in ("*.c", "*.h", "Kbuild") for path in glob.glob(os.path.join(folder, pattern))]
    for source in (*sources, *extra):
        target = os.path.join(build, os.path.basename(source))
        with open(source, "rb") as file:
            content = file.read()
        if os.path.exists(target):
            with open(target, "rb") as file:
                if file.read() == content:
                    continue
        with open(target, "wb") as file:
            file.write(content)


if __name__ == "__main__":
    try:
        print(image(), *sharing_modules(), sep="\n")
    except Unavailable as error:
        sys.exit(str(error))
