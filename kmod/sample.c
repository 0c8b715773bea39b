// SPDX-License-Identifier: GPL-2.0
#include "sample.h"

#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "context.h"
#include "describe.h"
#include "hardware.h"
#include "ring.h"

/* Interrupts of both flavours on this CPU in the current window. Written by its NMI only. */
struct ibs_window {
	u64 begin;
	u32 interrupts;
};

#define IBS_WINDOW_NS (10 * NSEC_PER_MSEC)

static DEFINE_PER_CPU(struct ibs_window, ibs_window);

static u64 ibs_period_min(const struct ibs_context *ctx)
{
	return ctx->config.flavour == CROSSTALK_IBS_OP ? ibs_info.op_period_min : ibs_info.fetch_period_min;
}

static u64 ibs_period_max(const struct ibs_context *ctx)
{
	return ctx->config.flavour == CROSSTALK_IBS_OP ? ibs_info.op_period_max : ibs_info.fetch_period_max;
}

/* Marsaglia's xorshift: three shifts, good enough to keep off the rhythm of loops. The state is never 0. */
static u32 ibs_random(struct ibs_context *ctx)
{
	u32 x = ctx->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	ctx->random = x;
	return x;
}

/* Uniform in period - random .. period + random; SETUP keeps both ends within the hardware's bounds. */
static u64 ibs_draw_interval(struct ibs_context *ctx)
{
	u64 spread = 2 * ctx->config.random + 1;

	return ctx->config.period - ctx->config.random + ((spread * ibs_random(ctx)) >> 32);
}

static u64 ibs_next_interval(struct ibs_context *ctx)
{
	ctx->interval = ibs_draw_interval(ctx);
	ctx->armed = ctx->interval;
	return ctx->armed;
}

/*
 * An interval goes on where the thread left off: a thread that always runs for less than a period would otherwise never be
 * sampled. A rest that is too short for the hardware is made longer, and the sample's period shows that.
 */
u64 ibs_sample_begin(struct ibs_context *ctx)
{
	if (!ctx->left)
		return ibs_next_interval(ctx);
	ctx->armed = max(ctx->left, ibs_period_min(ctx));
	ctx->interval += ctx->armed - ctx->left;
	return ctx->armed;
}

void ibs_sample_end(struct ibs_context *ctx, u64 counted)
{
	ctx->left = ctx->armed - min(counted, ctx->armed - 1);
}

static bool ibs_is_storm(u64 now)
{
	struct ibs_window *window = this_cpu_ptr(&ibs_window);

	if (now - window->begin >= IBS_WINDOW_NS) {
		window->begin = now;
		window->interrupts = 0;
	}
	return ++window->interrupts > ibs_info.samples_per_cpu / (NSEC_PER_SEC / IBS_WINDOW_NS);
}

/* No address in the upper half, whatever the hardware left in a register. */
static bool ibs_is_user_only(const struct crosstalk_ibs_sample *sample)
{
	return (s64)sample->ip >= 0 && (s64)sample->address >= 0 && (s64)sample->branch_target >= 0;
}

/*
 * The event belongs to the thread, so that `current` is it. The address space may be another one (between execve() and the
 * event's removal; on kernels before 5.13 for good), or none: then the sample is none of the opener's.
 */
static bool ibs_is_wanted(const struct ibs_context *ctx, const struct ibs_raw *raw,
			  const struct crosstalk_ibs_sample *sample)
{
	if (current != ctx->task || current->mm != ctx->mm)
		return false;
	if (!(ctx->config.flags & CROSSTALK_IBS_KERNEL) && !(raw->user && ibs_is_user_only(sample)))
		return false;
	if ((ctx->config.flags & CROSSTALK_IBS_MEMORY_ONLY) && !(sample->flags & CROSSTALK_IBS_S_ADDRESS))
		return false;
	return true;
}

static void ibs_store(struct ibs_context *ctx, const struct crosstalk_ibs_sample *sample)
{
	struct crosstalk_ibs_sample *record = ibs_ring_reserve(ctx->ring);

	if (!record) {
		ctx->counts.lost++;
		return;
	}
	*record = *sample;
	ctx->counts.samples++;
	/* Only this and del() queue it; a queue that holds it already says so, and nothing is lost: the count is in the ring. */
	if (ibs_ring_commit(ctx->ring) >= ctx->watermark)
		irq_work_queue(&ctx->work);
}

u64 ibs_sample_take(struct ibs_context *ctx, const struct ibs_raw *raw)
{
	u64 now = ktime_get_mono_fast_ns();
	struct crosstalk_ibs_sample sample = {
		.version = CROSSTALK_IBS_VERSION,
		.size = sizeof(sample),
		.time = now,
		.tsc = rdtsc(),
		.pid = ctx->pid,
		.tid = ctx->tid,
		.cpu = raw_smp_processor_id(),
		.flavour = ctx->config.flavour,
		.period = ctx->interval,
	};
	u64 next;

	ctx->counts.counted += ctx->interval;
	if (ibs_is_storm(now)) {
		/* The longest interval until the window is over: bounded, and no timer has to end it. */
		ctx->counts.throttled++;
		ctx->interval = ibs_period_max(ctx);
		ctx->armed = ctx->interval;
		return ctx->armed;
	}
	ibs_describe(&ctx->config, raw, &sample);
	if (ibs_is_wanted(ctx, raw, &sample))
		ibs_store(ctx, &sample);
	else
		ctx->counts.filtered++;
	next = ibs_next_interval(ctx);
	ctx->counts.handler_ns += ktime_get_mono_fast_ns() - now;
	return next;
}
