// SPDX-License-Identifier: Apache-2.0
// A program for bench/capabilities.py, whose work is in a library beside it.
#include <thread>

void share_a_line(int word);

int main() {
  std::thread other(share_a_line, 1);
  share_a_line(0);
  other.join();
}
