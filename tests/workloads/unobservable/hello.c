// SPDX-License-Identifier: Apache-2.0
// Built in ways in which it can not be observed: says hello and ends with 3.
#include <stdio.h>

int main(void) {
  puts("hello");
  return 3;
}
