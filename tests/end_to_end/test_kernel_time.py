# SPDX-License-Identifier: Apache-2.0
"""Time in the kernel is told as such, also where a thread enters it without a system call."""

import harness
from harness import run

# Touches fresh memory in one loop, works in it in another; says what of its time the kernel had.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec * 1e-6; }
__attribute__((noinline)) void touch(char* memory, long bytes) {
  for (long i = 0; i < bytes; i += 4096) memory[i] = 1;
}
__attribute__((noinline)) void work(char* memory, long bytes) {
  for (long i = 0; i < bytes; i++) memory[i % 4096] += i;
}
int main(void) {
  const long bytes = 8 << 20;
  struct rusage used;
  do {
    char* memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    touch(memory, bytes);
    work(memory, bytes / 2);
    munmap(memory, bytes);
    getrusage(RUSAGE_SELF, &used);
  } while (seconds(used.ru_utime) + seconds(used.ru_stime) < 1.5);
  printf("{\"share\": %f}\n", seconds(used.ru_stime) / (seconds(used.ru_utime) + seconds(used.ru_stime)));
}
"""


@harness.together
class PageFaults(harness.Case):
    def setUp(self):
        super().setUp()
        with open(self.path("faults.c"), "w", encoding="ascii") as file:
            file.write(PROGRAM)
        self.assertEqual(run(["gcc", "-O1", "-g", "-o", self.path("faults"), self.path("faults.c")]).status, 0)

    def test_they_are_the_kernels_time(self):
        result = self.record([self.path("faults")])
        report = self.report(result.profile)
        truth = result.truth["share"]
        found = report["threads"][0]["kernel_share"]
        self.assertTrue(truth / 2 < found < truth + (1 - truth) / 2, (found, truth))
        (loop,) = (loop for loop in report["loops"] if loop["function"] == "touch")
        self.assertGreater(loop["waits"]["kernel"], loop["cpu_s"] / 2, loop)


if __name__ == "__main__":
    harness.main()
