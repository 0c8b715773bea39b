# SPDX-License-Identifier: Apache-2.0
"""Write protection of a page by userfaultfd: how a store is told, and at what price. Writes a section of docs/reasons.md."""

import argparse
import json
import os
import subprocess
import sys

import common

PROGRAM = os.path.join(common.BUILD, "bench", "page_protection")

TEXT = """## Protecting pages was measured and left out

Written by `./dev bench page_protection`. A page that is write-protected by userfaultfd stops the next store to it, and the message
names the thread and the byte: an exact order without debug registers. The bench protects a page of its own; one of two
threads stores to a random byte of it, {rounds} times:

{table}

The message named the right thread in {right_thread} and the right byte in {right_byte} of {rounds}. It does not earn its place
as `--method page`:

- It stops stores to a page, not to a line: all threads that store to one of 64 lines stop for the time above, and the page
  must be protected anew for each. A probe takes some microseconds of one thread, and stops no other.
- Loads are {loads}, so that it tells who stored, not who waited for it.
- A huge page is split: one of {huge_before} KiB was {huge_after} KiB afterwards. So watching would change the program's own speed.
- Initialised global variables lie in private mappings of a file, and these are {file_pages}.
- The descriptor must be made in the process that is watched, by a privileged user: where `vm.unprivileged_userfaultfd` is 0 and
  `/dev/userfaultfd` is root's, as by default, a plain user has only the kind for user mode, under which a system call that
  stores to the page fails (here: "{user_mode_only}"). With privilege the call {kernel}.
- A range belongs to one descriptor, so a program that uses userfaultfd itself (a Java machine, an emulator) must be left alone.

The threads that a probe names are those known by their samples to store there. A second source would check that on machines
where root records and debug registers do not fire. Watches do it if they fire: pairs that probes see are the same
([accuracy](accuracy.md), "By watchpoints and by probes").

Machine: {machine}.
"""


def quantiles(values):
    values = sorted(values)
    return [f"{values[int(part * (len(values) - 1))]:.1f}" for part in (0.1, 0.5, 0.9)]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench page_protection", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="stores (default 500)")
    wanted = parser.parse_args()
    found = json.loads(subprocess.run([PROGRAM, str(wanted.rounds)], check=True, capture_output=True, text=True).stdout)
    if "failed" in found:
        sys.exit(f"bench: pages cannot be protected here: {found['failed']}")
    rows = [[name, *quantiles(found[key])] for name, key in
            (("protecting the page", "arm_us"), ("from the store to the message", "message_us"),
             ("from the release to the end of the store", "resume_us"))]
    text = TEXT.format(table=common.table(["us", "a tenth is below", "median", "a tenth is above"], rows).rstrip("\n"),
                       loads="told, too" if found["loads"] else "not told", huge_before=found["huge_kb"][0],
                       huge_after=found["huge_kb"][1], file_pages="taken" if found["file_pages"] else "refused",
                       user_mode_only=found["kernel_user_mode_only"],
                       kernel="waits for the release" if found["kernel"] == "waits" else f"ends with '{found['kernel']}'",
                       machine=common.machine(), **{key: found[key] for key in ("rounds", "right_thread", "right_byte")})
    common.write_section("reasons.md", "page-protection", text)


if __name__ == "__main__":
    main()
