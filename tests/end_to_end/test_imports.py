# SPDX-License-Identifier: Apache-2.0
"""libcrosstalk.so lives in other people's processes: what it takes from them is on a list, and nothing else."""

import os
import re

import harness
from harness import COLLECTOR, run

LIST = os.path.join(os.path.dirname(__file__), "..", "in_target", "allowed_symbols.txt")


def allowed():
    with open(LIST, encoding="ascii") as file:
        return {line.split("#")[0].strip() for line in file} - {""}


@harness.together
class Imports(harness.Case):
    def symbols(self, *options):
        result = run(["nm", "-D", *options, COLLECTOR])
        self.assertEqual(result.status, 0, result.stderr)
        return {line.split()[-1].split("@")[0] for line in result.stdout.splitlines()}

    def test_imports_are_on_the_list(self):
        self.assertEqual(self.symbols("--undefined-only") - allowed(), set(), f"not in {os.path.normpath(LIST)}")

    def test_list_is_no_longer_than_needed(self):
        self.assertEqual(allowed() - self.symbols("--undefined-only"), set(), f"unused in {os.path.normpath(LIST)}")

    def test_needs_nothing_but_the_c_library_and_the_decoder(self):
        """No C++ runtime above all: once in a target it is never unmapped."""
        result = run(["objdump", "-p", COLLECTOR])
        needed = set(re.findall(r"NEEDED\s+(\S+)", result.stdout))
        self.assertLessEqual(needed, {"libc.so.6", "ld-linux-x86-64.so.2", "libZydis.so.4.0", "libZycore.so.1.4"})

    def test_exports_only_what_it_interposes(self):
        operators_new = re.compile(r"^_Zn[wa]")
        strange = {name for name in self.symbols("--defined-only")
                   if name.startswith("_Z") and not operators_new.match(name)}
        self.assertEqual(strange, set(), "C++ symbols are visible")

    def test_little_static_tls(self):
        """A large block of static TLS keeps the library from being loaded late."""
        result = run(["readelf", "-lW", COLLECTOR])
        for size in re.findall(r"^\s+TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)", result.stdout, re.M):
            self.assertLessEqual(int(size, 16), 1024)


if __name__ == "__main__":
    harness.main()
