// SPDX-License-Identifier: Apache-2.0
// A small program that is built in ways in which nothing can be loaded into it: with another C library, statically,
// with sanitizers. Two threads burn for a moment.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long shared;

static void* body(void* unused) {
  struct timespec now;
  (void)unused;
  do {
    int n;
    for (n = 0; n < 1000; ++n) {
      pthread_mutex_lock(&mutex);
      ++shared;
      pthread_mutex_unlock(&mutex);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec == 0 && now.tv_nsec < 50 * 1000 * 1000);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[2];
  const char* slash = strrchr(argv[0], '/');
  char* block = malloc(1000);
  int n;
  for (n = 0; n < 2; ++n) {
    pthread_create(&threads[n], NULL, body, NULL);
  }
  for (n = 0; n < 2; ++n) {
    pthread_join(threads[n], NULL);
  }
  memset(block, 1, 1000);
  printf("%s: counted: %s, %d arguments\n", slash != NULL ? slash + 1 : argv[0], shared > 0 ? "yes" : "no", argc);
  free(block);
  return 31;
}
