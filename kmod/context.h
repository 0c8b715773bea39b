/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A sampling context: the state of an open file.
 *
 * Writers: `opener` to `visible_uid` are set at open and never change; `task` to `tid` are, too, but for one FOLLOW
 * before SETUP, under `lock`: a reader without the lock must have seen the ring. `config`, `ring`, `signal` to
 * `watermark` and `event` are set by SETUP under `lock`, before `ring` is published; PERIOD changes `config` while no CPU
 * has the event. Fields marked "CPU" are written only by the CPU that runs the thread (in NMI context, or with interrupts
 * off while the context is being switched), or by RESET while disabled.
 *
 * References: a context holds one on each of its tasks and mm_structs (not on the address spaces), from open to release. So
 * no such pointer can be reused by another thread or program while a context compares them with `current`.
 */
#ifndef CROSSTALK_IBS_CONTEXT_H
#define CROSSTALK_IBS_CONTEXT_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>

#include "crosstalk_ibs.h"
#include "hardware.h"

struct ibs_ring;
struct mm_struct;
struct perf_event;
struct task_struct;

struct ibs_counts {
	u64 samples;
	u64 filtered;
	u64 lost;
	u64 throttled;
	u64 signals;
	u64 signals_lost;
	u64 handler_ns;
	u64 counted;
};

struct ibs_context {
	struct task_struct *opener;
	struct mm_struct *owner; /* address space that may use the file, and is charged with the ring */
	kuid_t uid;		 /* the user that is charged */
	u32 visible_uid;	 /* the same, and the two numbers below, as the opener's namespaces have them */
	struct task_struct *task; /* the sampled thread, while it runs in this address space */
	struct mm_struct *mm;
	u32 pid;
	u32 tid;

	struct mutex lock;	/* all ioctls but INFO; nested outside of mmap_lock's users: copy before */
	struct mutex read_lock; /* one reader at a time; faults may happen under it */
	struct list_head list;	/* ibs_contexts; by SETUP, under its own lock */

	struct ibs_config config;
	struct ibs_ring *ring; /* store-release by SETUP; lives until the file is released */
	struct perf_event *event;
	u32 signal;
	u64 cookie;
	u32 watermark;
	bool enabled; /* lock */
	bool follows; /* lock: FOLLOW was called; `task` and `mm` have references of their own */

	u64 left;	 /* CPU: events to the next interrupt; 0: draw a new interval */
	u64 armed;	 /* CPU: events that the hardware was told */
	u64 interval;	 /* CPU: the interval that is being counted */
	u32 random;	 /* CPU: state of the generator */
	struct ibs_counts counts; /* CPU; the two counts of signals: the irq_work */

	struct irq_work work;
	wait_queue_head_t wait;
	bool ended; /* the thread, or its program, ended while enabled: readers were woken for the last time */
};

struct ibs_context *ibs_context_open(void);
void ibs_context_release(struct ibs_context *ctx);

/* True if the caller runs in the opener's address space. */
bool ibs_context_is_ours(const struct ibs_context *ctx);
/* True if no sample can come any more: the thread has ended, or executed a program. After SETUP, or under `lock`. */
bool ibs_context_has_ended(const struct ibs_context *ctx);
/* NULL before SETUP. */
struct ibs_ring *ibs_context_ring(struct ibs_context *ctx);

/* Once, before SETUP. */
int ibs_context_follow(struct ibs_context *ctx, const struct crosstalk_ibs_follow *follow);
int ibs_context_setup(struct ibs_context *ctx, const struct crosstalk_ibs_setup *setup);
int ibs_context_enable(struct ibs_context *ctx);
int ibs_context_disable(struct ibs_context *ctx);
int ibs_context_set_period(struct ibs_context *ctx, const struct crosstalk_ibs_period *period);
int ibs_context_reset(struct ibs_context *ctx);
int ibs_context_status(struct ibs_context *ctx, struct crosstalk_ibs_status *status);

#endif
