// SPDX-License-Identifier: Apache-2.0
// Built with LLVM's OpenMP, which has room for one tool: with OWN_TOOL the program has its own. It reports if there is
// a tool, computes with barriers, critical and ordered sections, locks and tasks, and can fork.
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef OWN_TOOL
#include "openmp_tool.h"
#endif

enum { threads = 2, rounds = 60 };

/// Stores to a line of its own until the thread has used so much CPU time more.
static void burn(double seconds) {
  volatile long words[16] = {0};
  struct timespec begin, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    for (int i = 0; i < 1000; ++i) {
      words[i % 16] = words[i % 16] + i;
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) * 1e-9 < seconds);
}

static long compute(void) {
  long sum = 0, locked = 0, in_order = 0, by_tasks = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(threads)
    {
      burn(0.003);
#pragma omp barrier
#pragma omp critical
      sum += round;
      omp_set_lock(&lock);
      locked += 1;
      omp_unset_lock(&lock);
#pragma omp for ordered schedule(static, 1)
      for (int i = 0; i < 8; ++i) {
#pragma omp ordered
        in_order = in_order * 3 % 1000003 + i;
      }
#pragma omp single
      {
        for (int i = 0; i < 6; ++i) {
#pragma omp task
          {
            burn(0.0002);
#pragma omp task
#pragma omp atomic
            by_tasks += 1;
#pragma omp taskwait
          }
        }
#pragma omp taskwait
      }
#pragma omp task
#pragma omp atomic
      by_tasks += 1;
    }
  }
  omp_destroy_lock(&lock);
  return sum * 1000003 + locked * 7 + in_order + by_tasks;
}

static int nested(void) {
  int sum = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
      burn(0.02);
      sum += 1;
    }
  }
  return sum;
}

/// In a task, which a thread executes that waits at a barrier. The library serves no child.
static void fork_in_task(void) {
  int status = -1;
#pragma omp parallel num_threads(threads)
#pragma omp single
#pragma omp task shared(status)
  {
    const pid_t child = fork();
    if (child == 0) {
      burn(0.1);
      _exit(7);
    }
    waitpid(child, &status, 0);
  }
  printf("child: %#x\n", (unsigned)status);
}

int main(int argc, char** argv) {
  printf("computed: %ld\n", compute());
  printf("control: %d\n", omp_control_tool(omp_control_tool_start, 0, NULL));
  printf("nested: %d\n", nested());
  fflush(stdout);
  if (argc > 1 && strcmp(argv[1], "forks") == 0) {
    fork_in_task();
    printf("computed: %ld\n", compute());
  }
  return 0;
}
