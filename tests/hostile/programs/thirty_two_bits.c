// SPDX-License-Identifier: Apache-2.0
// A program of 32 bits without a libc of its own to compile against: the dynamic one is loaded by the loader for 32
// bits, which refuses libraries for 64.
static int call(int number, int a, int b, int c) {
  int result = number;
  __asm__ volatile("int $0x80" : "+a"(result) : "b"(a), "c"(b), "d"(c) : "memory");
  return result;
}

void _start(void) {
  static const char text[] = "32 bits\n";
  volatile unsigned n;
  for (n = 0; n < 50u * 1000 * 1000; ++n) {
  }
  call(4, 1, (int)text, sizeof text - 1);
  call(1, 32, 0, 0);
}
