/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From an interrupt to a record: the intervals between samples, the threads that may be sampled, filters, throttling.
 * All of it runs on the CPU that runs the thread, in NMI context or with interrupts off.
 */
#ifndef CROSSTALK_IBS_SAMPLE_H
#define CROSSTALK_IBS_SAMPLE_H

#include <linux/types.h>

struct ibs_context;
struct ibs_raw;

/* The thread gets a CPU: returns how many events from now the next sample is due. */
u64 ibs_sample_begin(struct ibs_context *ctx);
/* It leaves the CPU, after `counted` events. */
void ibs_sample_end(struct ibs_context *ctx, u64 counted);
/* A sample: into the ring, or counted otherwise. Returns the events to the next one. NMI context. */
u64 ibs_sample_take(struct ibs_context *ctx, const struct ibs_raw *raw);

#endif
