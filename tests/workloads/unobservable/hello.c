// SPDX-License-Identifier: Apache-2.0
// Built in ways in which it cannot be observed: says hello, after SECONDS where they are given, and ends with 3.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1) {
    sleep((unsigned)atoi(argv[1]));
  }
  puts("hello");
  return 3;
}
