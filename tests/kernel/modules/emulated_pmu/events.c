// SPDX-License-Identifier: GPL-2.0
/*
 * An event's life: it takes a counter of the processor that its thread runs on, and a timer while
 * it is started.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <asm/irq_regs.h>

#include "emulated_pmu.h"

/* A timer that goes off more often leaves an emulated processor no time. */
#define LEAST_INTERVAL_NS 100000

DEFINE_PER_CPU(struct emulated_counters, emulated_counters);

static bool is_count(const struct perf_event *event)
{
	const struct emulated_event *ours = event->pmu_private;

	return ours->kind == EMULATED_COUNT;
}

/* Of what is counted, only cycles are sampled: one each nanosecond. */
static unsigned int rate_of(const struct perf_event *event)
{
	return is_count(event) ? NSEC_PER_USEC : emulated_rate;
}

static ktime_t interval_of(const struct perf_event *event, u64 period)
{
	u64 ns = div_u64(period * NSEC_PER_USEC, rate_of(event));

	return ns_to_ktime(max_t(u64, ns, LEAST_INTERVAL_NS));
}

/*
 * A counter keeps what is left of its period while its thread is not on the processor. Perf takes
 * that away where it sets another period.
 */
static ktime_t first_interval(struct perf_event *event)
{
	s64 left = local64_read(&event->hw.period_left);

	return interval_of(event, left > 0 ? left : event->hw.sample_period);
}

static void keep_what_is_left(struct emulated_event *ours)
{
	s64 ns = ktime_to_ns(hrtimer_get_remaining(&ours->timer));

	local64_set(&ours->event->hw.period_left,
		    ns > 0 ? div_u64(ns * rate_of(ours->event), NSEC_PER_USEC) : 0);
}

static bool counts_kernel(const struct perf_event *event)
{
	return !event->attr.exclude_kernel && !is_idle_task(current);
}

/*
 * As a counter does, whether or not a sample comes of it: the next one stands for this one, too, and
 * for those for which the host gave the processor no time.
 */
static void count_periods(struct perf_event *event, u64 periods)
{
	local64_add(event->hw.sample_period * max_t(u64, periods, 1), &event->count);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct emulated_event *ours = container_of(timer, struct emulated_event, timer);
	struct perf_event *event = ours->event;
	struct pt_regs *regs = get_irq_regs();
	bool throttled = false;
	u64 periods;

	if (event->state != PERF_EVENT_STATE_ACTIVE || event->hw.state & PERF_HES_STOPPED)
		return HRTIMER_NORESTART;
	periods = hrtimer_forward_now(timer, interval_of(event, event->hw.sample_period));
	if (emulated_silent) {
		if (emulated_silent == EMULATED_NEVER_SAMPLES && ours->kind != EMULATED_COUNT)
			count_periods(event, periods);
		return HRTIMER_RESTART;
	}
	if (ours->kind == EMULATED_COUNT) {
		throttled = regs && user_mode(regs) && emulated_emit_reading(ours, regs);
	} else if (regs && user_mode(regs) && !event->attr.exclude_user) {
		count_periods(event, periods);
		throttled = emulated_interrupted(ours, regs);
	} else if (regs && !user_mode(regs) && counts_kernel(event) && ours->kind == EMULATED_OPS) {
		count_periods(event, periods);
		throttled = emulated_emit_without_access(ours, regs);
	}
	if (throttled) {
		event->hw.state |= PERF_HES_STOPPED;
		return HRTIMER_NORESTART;
	}
	return HRTIMER_RESTART;
}

static void free_event(struct perf_event *event)
{
	kfree(event->pmu_private);
}

int emulated_event_init(struct perf_event *event)
{
	struct emulated_event *ours;
	int ret;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (event->attr.branch_sample_type)
		return -EOPNOTSUPP;
	ours = kzalloc(sizeof(*ours), GFP_KERNEL);
	if (!ours)
		return -ENOMEM;
	ret = emulated_check_event(event, ours);
	if (ret) {
		kfree(ours);
		return ret;
	}
	ours->event = event;
	hrtimer_init(&ours->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	ours->timer.function = on_timer;
	event->pmu_private = ours;
	event->destroy = free_event;
	return 0;
}

void emulated_start(struct perf_event *event, int flags)
{
	struct emulated_event *ours = event->pmu_private;

	event->hw.state = 0;
	if (is_count(event))
		emulated_begin_counting(ours);
	if (is_sampling_event(event))
		hrtimer_start(&ours->timer, first_interval(event), HRTIMER_MODE_REL_PINNED_HARD);
}

void emulated_stop(struct perf_event *event, int flags)
{
	struct emulated_event *ours = event->pmu_private;

	if (is_sampling_event(event) && hrtimer_active(&ours->timer))
		keep_what_is_left(ours);
	hrtimer_cancel(&ours->timer);
	if (is_count(event) && !(event->hw.state & PERF_HES_STOPPED))
		emulated_count(ours);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

/* Cycles and instructions take the counters of their own first. Negative where none is free. */
static int free_counter(const struct emulated_counters *counters, const struct perf_event *event)
{
	int own = EMULATED_GENERAL + (event->attr.config == 0x00c0);
	int i;

	if (is_count(event) && emulated_is_fixed(event) && !counters->active[own])
		return own;
	for (i = 0; i < emulated_counter_count; ++i)
		if (!counters->active[i])
			return i;
	return -ENOSPC;
}

int emulated_add(struct perf_event *event, int flags)
{
	struct emulated_counters *counters = this_cpu_ptr(&emulated_counters);
	int i = free_counter(counters, event);

	if (i < 0)
		return i;
	counters->active[i] = event->pmu_private;
	event->hw.idx = i;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		emulated_start(event, PERF_EF_RELOAD);
	return 0;
}

void emulated_del(struct perf_event *event, int flags)
{
	emulated_stop(event, PERF_EF_UPDATE);
	this_cpu_ptr(&emulated_counters)->active[event->hw.idx] = NULL;
	perf_event_update_userpage(event);
}

void emulated_read(struct perf_event *event)
{
	struct emulated_event *ours = event->pmu_private;

	/* That of a sampled access is brought up to date each time that the timer goes off. */
	if (is_count(event) && !(event->hw.state & PERF_HES_STOPPED))
		emulated_count(ours);
}
