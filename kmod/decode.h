/* SPDX-License-Identifier: GPL-2.0 */
/* Finds the memory that an instruction is about to access: enough of x86-64 for the emulation. */
#ifndef CROSSTALK_IBS_DECODE_H
#define CROSSTALK_IBS_DECODE_H

#include <linux/types.h>

struct pt_regs;

struct ibs_access {
	u64 address;
	u8 width; /* bytes */
	bool load;
	bool store;
	bool locked;
};

#define IBS_CODE_MAX 15

/*
 * False: no memory operand, or an instruction that is not known here (VEX, x87, string instructions, the rarer ones).
 * `code` are the bytes at regs->ip. Any context; no memory but `code` is read.
 */
bool ibs_decode(const u8 *code, unsigned int size, const struct pt_regs *regs, struct ibs_access *access);

#endif
