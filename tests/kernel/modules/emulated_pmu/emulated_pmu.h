/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A performance monitoring unit for machines that have none, for tests only: it has the name, the
 * format and the rules of a real one, and emits samples with the same fields. How a sample comes
 * about:
 *
 *   a timer goes off        while the event's thread runs (events.c); the thread is in user mode
 *   -> single steps         a random number of instructions, because an emulator interrupts only
 *                           between blocks of them (stepping.c)
 *   -> an access is found   in the instruction that is executed next, from its operands and the
 *                           registers (access.c)
 *   -> one more step        the instruction retires, as a sampled one has on real hardware
 *   -> perf's own path      perf_event_overflow(): ring, signal, throttling (sample.c)
 */
#ifndef EMULATED_PMU_H
#define EMULATED_PMU_H

#include <linux/hrtimer.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/types.h>

struct insn;

/* What the instruction at `ip` does to memory. */
struct emulated_access {
	u64 ip;
	u64 address;
	u8 bytes;
	bool load, store;	/* both for a read-modify-write; none: no access */
	bool locked;
};

enum emulated_kind {
	EMULATED_OPS,		/* any instruction, with an access or without */
	EMULATED_LOADS,
	EMULATED_STORES,
	EMULATED_COUNT,		/* of anything; no access is looked for */
};

/* An event's part of ours; perf_event.pmu_private. */
struct emulated_event {
	struct perf_event *event;
	struct hrtimer timer;
	enum emulated_kind kind;
	u32 least_latency;	/* cycles: loads that took less are not sampled */

	/* Of EMULATED_COUNT. */
	u64 counted_until;	/* local_clock() */
	u64 parts;		/* of 1024, of a count */

	/* Written by the thread that is stepped, or with interrupts off on its processor. */
	struct task_struct *stepped;	/* compared only; NULL: no sample is under way */
	int steps_left;		/* until an instruction is looked at */
	int tries_left;		/* instructions looked at until one is of the kind */
	bool found;		/* `access` retires with the next step */
	struct emulated_access access;
};

/*
 * A processor's counters: as many events as it can have at once, NULL where one is free. Behind
 * those for any event are those for cycles and for instructions alone.
 */
#define EMULATED_GENERAL 4
#define EMULATED_COUNTERS (EMULATED_GENERAL + 2)
struct emulated_counters {
	struct emulated_event *active[EMULATED_COUNTERS];
};
DECLARE_PER_CPU(struct emulated_counters, emulated_counters);

/* unit.c */
extern unsigned int emulated_rate;	/* units of an event that happen in a microsecond */
extern int emulated_counter_count;	/* for any event, at most EMULATED_GENERAL */
enum { EMULATED_NEVER_COUNTS = 1, EMULATED_NEVER_SAMPLES = 2 };
extern unsigned int emulated_silent;	/* 0: it works; as hypervisors' units may not */
int emulated_check_event(struct perf_event *event, struct emulated_event *ours);

/* events.c */
int emulated_event_init(struct perf_event *event);
int emulated_add(struct perf_event *event, int flags);
void emulated_del(struct perf_event *event, int flags);
void emulated_start(struct perf_event *event, int flags);
void emulated_stop(struct perf_event *event, int flags);
void emulated_read(struct perf_event *event);

/* counting.c; with interrupts off. The last one returns true when the event has been throttled. */
void emulated_begin_counting(struct emulated_event *ours);
void emulated_count(struct emulated_event *ours);
bool emulated_is_fixed(const struct perf_event *event);
bool emulated_emit_reading(struct emulated_event *ours, struct pt_regs *regs);

/* stepping.c; true when the event has been throttled */
bool emulated_interrupted(struct emulated_event *ours, struct pt_regs *regs);
int emulated_stepping_init(void);
void emulated_stepping_exit(void);

/* sample.c; with interrupts off. Both return true when the event has been throttled. */
u32 emulated_latency(const struct emulated_access *access);
bool emulated_emit(struct emulated_event *ours, struct pt_regs *regs);
bool emulated_emit_without_access(struct emulated_event *ours, struct pt_regs *regs);

/* access.c: false where there is no code to read; no access is a find, too. */
bool emulated_find_access(struct pt_regs *regs, struct emulated_access *access);

/* kernel_functions.c: what the kernel has, but does not export. */
struct emulated_kernel_functions {
	int (*perf_event_overflow)(struct perf_event *event, struct perf_sample_data *data,
				   struct pt_regs *regs);
	int (*insn_decode)(struct insn *insn, const void *code, int length, int mode);
	void __user *(*insn_get_addr_ref)(struct insn *insn, struct pt_regs *regs);
	struct idr *pmu_idr; /* units by the types of their events */
};
extern struct emulated_kernel_functions emulated_kernel;
int emulated_find_kernel_functions(void);

#endif
