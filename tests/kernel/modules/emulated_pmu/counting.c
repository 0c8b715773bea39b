// SPDX-License-Identifier: GPL-2.0
/*
 * Events that count. An emulator has no caches and no pipeline: what happens in a cycle is what the
 * program says of itself, in register r15, while it does it (struct emulated_truth). So what is
 * counted is known, whatever the host does meanwhile; how long it is counted, in which loop, and
 * what comes of it is the kernel's and the profiler's own affair.
 */
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/task_stack.h>

#include "emulated_pmu.h"

#define CYCLES_PER_NS 1
/* r15, from the highest bits on: a mark; 4 bits: how many of 16 instructions are branches; then in 1024 cycles 10
 * bits each of: cycles without anything executed that wait for memory, misses of the last level, fills of the
 * first, loads; and 12 of instructions.
 */
#define TRUTH_MARK 0xc7
#define TRUTH_BITS 10
#define BRANCHES_AT 52
#define UNMARKED_INSTRUCTIONS 512

enum { STALLS = 3, L3_MISSES = 2, L1D_FILLS = 1, LOADS = 0 };

static u64 field(u64 truth, int number)
{
	return truth >> (12 + number * TRUTH_BITS) & ((1 << TRUTH_BITS) - 1);
}

/* How often the event happens in 1024 cycles. */
static u64 per_1024(const struct perf_event *event)
{
	u64 truth = current->flags & PF_KTHREAD ? 0 : task_pt_regs(current)->r15;
	bool marked = truth >> 56 == TRUTH_MARK;
	u64 instructions = marked ? truth & 0xfff : UNMARKED_INSTRUCTIONS;

	switch (event->attr.config) {
	case 0x003c:	/* cycles */
		return 1024;
	case 0x00c0:	/* instructions */
	case 0x02c2:	/* micro-operations retired, */
	case 0x010e:	/* and issued: one each */
		return instructions;
	}
	if (!marked)
		return 0;
	switch (event->attr.config) {
	case 0x00c4:
		return instructions * (truth >> BRANCHES_AT & 0xf) / 16;
	case 0x81d0:
		return field(truth, LOADS);
	case 0x0151:
	case 0x1ff1:	/* and into the second level: what the first lacks, it lacks, too */
		return field(truth, L1D_FILLS);
	case 0x412e:
		return field(truth, L3_MISSES);
	case 0x140014a3:
	case 0x0c000ca3:
	case 0x050005a3:
	case 0x060006a3:
		return field(truth, STALLS);
	default:	/* it never happens */
		return 0;
	}
}

void emulated_count(struct emulated_event *ours)
{
	u64 now = local_clock();
	u64 cycles = (now - ours->counted_until) * CYCLES_PER_NS;

	ours->counted_until = now;
	if (emulated_silent == EMULATED_NEVER_COUNTS)
		return;
	ours->parts += cycles * per_1024(ours->event);
	local64_add(ours->parts >> 10, &ours->event->count);
	ours->parts &= 1023;
}

/*
 * What happens is looked at when it is counted: all events of a processor are counted together, so
 * that those of one thread agree.
 */
static void count_all(void)
{
	struct emulated_counters *counters = this_cpu_ptr(&emulated_counters);
	int i;

	for (i = 0; i < EMULATED_COUNTERS; ++i) {
		struct emulated_event *ours = counters->active[i];

		if (ours && ours->kind == EMULATED_COUNT && !(ours->event->hw.state & PERF_HES_STOPPED))
			emulated_count(ours);
	}
}

void emulated_begin_counting(struct emulated_event *ours)
{
	ours->counted_until = local_clock();
}

/* Cycles and instructions have counters of their own. */
bool emulated_is_fixed(const struct perf_event *event)
{
	return event->attr.config == 0x003c || event->attr.config == 0x00c0;
}

bool emulated_emit_reading(struct emulated_event *ours, struct pt_regs *regs)
{
	struct perf_event *event = ours->event;
	struct perf_sample_data data;

	count_all();
	event->hw.last_period = event->hw.sample_period;
	perf_sample_data_init(&data, 0, event->hw.last_period);
	return emulated_kernel.perf_event_overflow(event, &data, regs) != 0;
}
