# SPDX-License-Identifier: Apache-2.0
"""Two processes add to neighbouring words of memory that they share: known false sharing, in the interpreter's code for
`words[mine] += 1`. Argument: seconds."""

import mmap
import os
import sys
import time

memory = mmap.mmap(-1, 4096)
words = memoryview(memory).cast("q")
end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 5)


def count(mine):
    while time.monotonic() < end:
        for _ in range(1000):
            words[mine] += 1  # shared


child = os.fork()
count(0 if child else 1)
if child == 0:
    os._exit(0)
status = os.waitpid(child, 0)[1]
print(status == 0 and words[0] > 0 and words[1] > 0)
