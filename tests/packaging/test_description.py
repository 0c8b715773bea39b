# SPDX-License-Identifier: Apache-2.0
"""What is said twice agrees: Debian's description of the packages with the build's, the unit with the daemon."""

import configparser
import os
import re
import subprocess
import tempfile
import unittest

import debian_root

ROOT = debian_root.ROOT
# Debian's own build environment has a compiler; a cache of it is not for its builders.
NOT_NAMED = {"g++", "ccache"}


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def unit(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(text_of(f"packaging/{name}"))
    return parser


class Description(unittest.TestCase):
    def test_build_dependencies_are_those_of_the_group_build(self):
        group = set(re.findall(r"^\| `([^`]+)` \| build \|", text_of("docs/dependencies.md"), re.MULTILINE))
        field = re.search(r"^Build-Depends:\n((?: .*\n)+)", text_of("debian/control"), re.MULTILINE).group(1)
        named = {re.match(r"\s*([^ ,]+)", line).group(1) for line in field.splitlines()}
        self.assertEqual({name for name in named if not re.match("debhelper|dh-", name)}, group - NOT_NAMED)

    def test_versions(self):
        version = re.search(r"^project\(crosstalk VERSION (\S+)", text_of("CMakeLists.txt"), re.MULTILINE).group(1)
        self.assertEqual(re.match(r"crosstalk \(([^)]*)\)", text_of("debian/changelog")).group(1), version)
        module = re.search(r'^PACKAGE_VERSION="(.*)"', text_of("kmod/dkms.conf"), re.MULTILINE).group(1)
        for line in text_of("debian/crosstalk-ibs-dkms.install").splitlines():
            self.assertIn(line.split()[-1], (f"usr/src/crosstalk-ibs-{module}", "lib/udev/rules.d"))

    def test_socket_and_configuration_are_where_the_daemon_looks(self):
        socket = unit("crosstalkd.socket")["Socket"]["ListenSequentialPacket"]
        self.assertIn(f'"{socket}"', text_of("daemon/service/messages.h"))
        self.assertIn('"/etc/crosstalk/crosstalkd.toml"', text_of("daemon/service/main.cpp"))
        self.assertIn("packaging/crosstalkd.toml etc/crosstalk", text_of("debian/crosstalkd.install"))
        service = unit("crosstalkd.service")["Service"]
        self.assertEqual(service["StateDirectory"], "crosstalk")
        self.assertEqual(service["ExecStart"], "/usr/sbin/crosstalkd")

    def check(self, text):
        """(status, words) of the daemon's own check of a configuration."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([os.environ["CROSSTALKD"], "--check", "--config", file.name], capture_output=True, text=True,
                                  check=False)
        return done.returncode, done.stdout + done.stderr

    def test_the_default_configuration_is_valid_and_teaches_every_key(self):
        text = text_of("packaging/crosstalkd.toml")
        status, said = self.check(text)
        self.assertEqual((status, said.endswith(" 0 services\n")), (0, True), said)
        # With each commented key taken, it is valid as well, and has the service.
        status, said = self.check(re.sub(r"(?m)^#(?=\[\[service\]\]|\w+ = )", "", text))
        self.assertEqual((status, said.endswith(" 1 services\n")), (0, True), said)
        taught = set(re.findall(r"(?m)^#(?:  +)?(\w+) = ", text))
        known = set(re.findall(r"(?m)^\.It Cm (.*)$", text_of("man/crosstalkd.toml.5")))
        self.assertEqual(taught, {key for keys in known for key in keys.split(" , ")})


if __name__ == "__main__":
    unittest.main()
