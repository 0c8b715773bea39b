# SPDX-License-Identifier: Apache-2.0
"""Our packages in a bare Debian 12: installed, upgraded, removed and purged by dpkg, as an administrator would."""

import os
import pathlib
import re
import shutil
import stat
import sys
import tempfile
import unittest

import debian_root

sys.path.insert(0, str(debian_root.ROOT / "tests" / "end_to_end"))
import harness  # noqa: E402

OURS = ("crosstalk", "crosstalkd")
CONFIGURATION = "/etc/crosstalk/crosstalkd.toml"


def raised(deb, folder, edit=""):
    """A copy of a package of a higher version, with a default configuration that is longer by `edit`."""
    parts = os.path.join(folder, "parts")
    debian_root.said("dpkg-deb", "--raw-extract", deb, parts)
    control = pathlib.Path(parts, "DEBIAN", "control")
    version = re.search(r"^Version: (.*)$", control.read_text(encoding="utf-8"), re.MULTILINE).group(1)
    control.write_text(control.read_text(encoding="utf-8").replace(version, version + "+later"), encoding="utf-8")
    if os.path.exists(parts + CONFIGURATION):
        with open(parts + CONFIGURATION, "a", encoding="utf-8") as file:
            file.write(edit)
    made = os.path.join(folder, os.path.basename(deb).replace("_" + version, "_" + version + "+later"))
    debian_root.said("dpkg-deb", "--root-owner-group", "--build", parts, made)
    shutil.rmtree(parts)
    return made


class Case(unittest.TestCase):
    def folder(self, *names):
        try:
            made = debian_root.Folder(debian_root.dependencies(*names))
            debs = [debian_root.package(name) for name in names]
        except debian_root.Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(made.__exit__)
        return made.__enter__(), debs

    def well(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def refuted(self, root, script):
        self.assertNotEqual(root.run(script).returncode, 0, script)


@harness.verify("makes a Debian, which takes a network and minutes")
@harness.together
class Packages(Case):
    def setUp(self):
        self.root, self.debs = self.folder(*OURS)
        self.before = self.root.files()
        self.well(self.root.install(*self.debs))

    def enabled(self):
        return [self.root.run(f"systemctl is-enabled crosstalkd.{kind}").stdout.strip() for kind in ("socket", "service")]

    def test_it_is_installed_whole(self):
        self.assertEqual(self.well(self.root.run("dpkg --audit; dpkg --verify crosstalk crosstalkd")), "")
        self.assertRegex(self.well(self.root.run("crosstalk --version")), r"^crosstalk \d")
        self.assertIn("is valid", self.well(self.root.run(f"crosstalkd --check --config {CONFIGURATION}")))
        user = self.well(self.root.run("getent passwd crosstalk; getent group crosstalk"))
        self.assertRegex(user, r"(?s)^crosstalk:[^:]*:(\d+):(\d+):[^:]*:/var/lib/crosstalk:/usr/sbin/nologin\ncrosstalk:[^:]*:\2:\n$")
        self.assertLess(int(user.split(":")[2]), 1000)
        self.assertEqual(self.enabled(), ["enabled", "enabled"])
        self.assertEqual(self.well(self.root.run("systemd-analyze verify --man=no crosstalkd.service crosstalkd.socket 2>&1")), "")
        # The library that `record` loads into programs is found by the program in its place.
        self.assertIn("/usr/lib/x86_64-linux-gnu/crosstalk/libcrosstalk.so", self.root.run("crosstalk doctor").stdout)
        files = self.root.files()
        for path in ("/usr/share/bash-completion/completions/crosstalk", "/usr/share/man/man1/crosstalk.1.gz",
                     "/usr/share/man/man8/crosstalkd.8.gz", "/usr/share/man/man5/crosstalkd.toml.5.gz",
                     "/usr/include/crosstalk/region.h", "/usr/share/doc/crosstalk/CHANGELOG.md", "/usr/lib/sysctl.d/60-crosstalkd.conf"):
            self.assertIn(path, files)

    def test_nothing_has_more_rights_than_it_needs(self):
        for path, (mode, owner, _) in self.root.files().items():
            if path not in self.before:
                self.assertEqual(owner, 0, path)
                self.assertFalse(not stat.S_ISLNK(mode) and mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH), path)

    def test_an_upgrade_keeps_what_the_administrator_decided(self):
        with tempfile.TemporaryDirectory(dir=debian_root.FOLDER) as folder:
            later = [raised(deb, folder, "# more\n") for deb in self.debs]
            # Untouched, the configuration follows the package.
            self.well(self.root.run("systemctl disable crosstalkd.service"))
            self.well(self.root.install(*later))
            self.assertEqual(self.enabled()[1], "disabled")
            self.assertIn("# more", self.well(self.root.run(f"cat {CONFIGURATION}")))
            # Edited, it stays; the new one lies beside it.
            self.well(self.root.run(f"echo '[daemon]' >{CONFIGURATION}; mkdir -p /var/lib/crosstalk/services; "
                                    "chown -R crosstalk: /var/lib/crosstalk"))
            self.well(self.root.install(*self.debs))
            self.assertEqual(self.well(self.root.run(f"cat {CONFIGURATION}")), "[daemon]\n")
            self.assertIn(CONFIGURATION + ".dpkg-dist", self.root.files())
            self.assertIn("/var/lib/crosstalk/services", self.root.files())

    def test_removed_it_leaves_configuration_and_profiles(self):
        self.well(self.root.run("mkdir -p /var/lib/crosstalk/services && chown -R crosstalk: /var/lib/crosstalk"))
        self.well(self.root.run("dpkg --remove crosstalkd crosstalk"))
        left = {path for path in self.root.files() if path not in self.before}
        self.assertEqual(left & {CONFIGURATION, "/var/lib/crosstalk/services"}, {CONFIGURATION, "/var/lib/crosstalk/services"})
        self.assertEqual([path for path in left if path.startswith(("/usr", "/lib"))], [])
        # Installed again, it is enabled again.
        self.well(self.root.install(*self.debs))
        self.assertEqual(self.enabled(), ["enabled", "enabled"])

    def test_purged_it_leaves_its_user_alone(self):
        self.well(self.root.run("mkdir -p /var/lib/crosstalk/services && chown -R crosstalk: /var/lib/crosstalk"))
        self.well(self.root.run("dpkg --purge crosstalkd crosstalk"))
        after = self.root.files()
        self.assertEqual({path: facts for path, facts in after.items() if self.before.get(path) != facts}, {})
        self.assertEqual([path for path in self.before if path not in after], [])
        self.well(self.root.run("getent passwd crosstalk"))  # whose files might go to another user else
        self.refuted(self.root, "systemctl cat crosstalkd.service")

    def test_the_command_alone_is_enough(self):
        root, debs = self.folder("crosstalk")
        self.well(root.install(*debs))
        self.well(root.run("crosstalk --version"))
        self.refuted(root, "getent passwd crosstalk")


@harness.verify("installs a compiler and headers")
@harness.together
class Module(Case):
    def test_dkms_builds_it_for_the_installed_headers(self):
        try:
            root = debian_root.Folder([*debian_root.dependencies("crosstalk-ibs-dkms"), "linux-headers-amd64"])
            deb = debian_root.package("crosstalk-ibs-dkms")
        except debian_root.Unavailable as reason:
            self.skipTest(str(reason))
        with root:
            self.well(root.install(deb))
            status = self.well(root.run("dkms status"))
            self.assertRegex(status, r"^crosstalk-ibs/1, 6\.1\.0-\d+-amd64, x86_64: installed\n$")
            self.well(root.run("find /lib/modules -name 'crosstalk_ibs.ko*' | grep -q . && getent group crosstalk"))
            self.well(root.run("dpkg --purge crosstalk-ibs-dkms"))
            self.refuted(root, "find /lib/modules /usr/src /var/lib/dkms -name 'crosstalk*' | grep .")


if __name__ == "__main__":
    harness.main()
