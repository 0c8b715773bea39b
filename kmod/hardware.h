/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface to IBS registers, or to their emulation. Everything else in the module is the same for both
 * implementations.
 */
#ifndef CROSSTALK_IBS_HARDWARE_H
#define CROSSTALK_IBS_HARDWARE_H

#include <linux/types.h>

#include "crosstalk_ibs.h"

#define IBS_FLAVOURS 2

/* The part of a context's set-up that the hardware has to know. */
struct ibs_config {
	u32 flavour;
	u32 flags;
	u64 period;
	u64 random;
	u32 load_latency;
};

/* One sample as the hardware has it. data[] as in struct crosstalk_ibs_sample. */
struct ibs_raw {
	u64 ip;
	u64 address;
	u64 physical;
	u64 branch_target;
	u64 data[4];
	bool ip_valid;
	bool branch_target_valid;
	bool user; /* the interrupted mode and, where it is known, the instruction's address agree */
};

enum ibs_collected {
	IBS_NOTHING, /* no interrupt of this flavour */
	IBS_STALE,   /* one of ours, with no sample: swallow it */
	IBS_SAMPLE,
};

struct pt_regs;

/*
 * start, stop, rearm and collect run on the CPU concerned; start and stop with interrupts off, under the scheduler's locks;
 * rearm and collect in NMI context. None of the four allocates, sleeps or takes a lock.
 */
struct ibs_hardware {
	const char *name;
	/* Fills `info` or says in the log why it cannot be used. Process context, once. */
	int (*init)(struct crosstalk_ibs_info *info);
	void (*exit)(void);
	/* On the CPU itself: at load, when it comes up, and after resume. */
	int (*cpu_up)(unsigned int cpu);
	void (*cpu_down)(unsigned int cpu);
	/* Interrupt after `count` events. */
	void (*start)(const struct ibs_config *config, u64 count);
	/* Returns the events counted since start or rearm. */
	u64 (*stop)(const struct ibs_config *config);
	/* The same as start, after collect() returned IBS_SAMPLE. */
	void (*rearm)(const struct ibs_config *config, u64 count);
	enum ibs_collected (*collect)(u32 flavour, struct pt_regs *regs, struct ibs_raw *raw);
};

extern const struct ibs_hardware ibs_msr_hardware;
extern const struct ibs_hardware ibs_emulation;

/* The one in use, and what it can do; set before the device exists, then constant. */
extern const struct ibs_hardware *ibs_hw;
extern struct crosstalk_ibs_info ibs_info;

#endif
