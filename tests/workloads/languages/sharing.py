# SPDX-License-Identifier: Apache-2.0
"""One process fills memory that another searches: known true sharing, in the interpreter's loop over the bytes of the one
and in the C library's copy of the other. A store of a single element would be one of hundreds of instructions that the
interpreter executes for it, and be found by chance only. Argument: seconds."""

import mmap
import os
import sys
import time

BYTES = 1024  # so few are copied by instructions that store a vector each
memory = mmap.mmap(-1, BYTES)
texts = [bytes([filler]) * BYTES for filler in b"ab"]
end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 5)


def fill():
    while time.monotonic() < end:
        for text in texts * 100:
            memory[:] = text  # shared


def search():
    while time.monotonic() < end:
        for _ in range(100):
            if memory.find(b"c") >= 0:  # shared
                return False
    return True


child = os.fork()
if child == 0:
    fill()
    os._exit(0)
clean = search()
status = os.waitpid(child, 0)[1]
print(status == 0 and clean and memory[0] in b"ab")
