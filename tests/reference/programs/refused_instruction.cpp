// SPDX-License-Identifier: Apache-2.0
// Executes an AVX-512 instruction, which the emulated processor lacks.
int main() { asm volatile("vaddpd %zmm0, %zmm1, %zmm2"); }
