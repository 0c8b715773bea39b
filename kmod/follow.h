/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Following threads: a PMU registered with the perf core, whose events only this module can create.
 *
 * The perf core calls add and del when a thread with one of our events gets and leaves a CPU, and drops the event for
 * good when the thread ends or executes a program. docs/kmod.md compares this with the alternatives.
 */
#ifndef CROSSTALK_IBS_FOLLOW_H
#define CROSSTALK_IBS_FOLLOW_H

#include <linux/types.h>

struct ibs_context;
struct perf_event;

int ibs_follow_init(void);
void ibs_follow_exit(void);

/* A disabled event for the context's thread, or an ERR_PTR; -ESRCH: the thread has ended. */
struct perf_event *ibs_follow_create(struct ibs_context *ctx);
/* When it returns, no CPU and no NMI uses the context any more. */
void ibs_follow_destroy(struct perf_event *event);
void ibs_follow_enable(struct perf_event *event);
void ibs_follow_disable(struct perf_event *event);
/* Returns how long the thread ran while the event was enabled. May sleep. */
u64 ibs_follow_running_ns(struct perf_event *event);

#endif
