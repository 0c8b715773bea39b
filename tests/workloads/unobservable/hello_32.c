// SPDX-License-Identifier: Apache-2.0
// hello.c for 32 bits, without any library.
void _start(void) {
  static const char text[] = "hello\n";
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(4), "b"(1), "c"(text), "d"(sizeof text - 1) : "memory");
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(1), "b"(3));
}
