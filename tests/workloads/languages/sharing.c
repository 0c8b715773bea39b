// SPDX-License-Identifier: Apache-2.0
// Two threads add to neighbouring words of one line: known false sharing, on the lines marked "shared". Argument: seconds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Alignas(64) volatile long hits[8];
static volatile int over;

static void* count(void* mine) {
  volatile long* const word = mine;
  while (!over) {
    *word = *word + 1;  // shared
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, count, (void*)&hits[i]);
  }
  const struct timespec length = {argc > 1 ? atoi(argv[1]) : 5, 0};
  nanosleep(&length, NULL);
  over = 1;
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  printf("%d\n", hits[0] > 0 && hits[1] > 0);
  return 0;
}
