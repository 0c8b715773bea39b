// SPDX-License-Identifier: GPL-2.0
#include "follow.h"

#include <linux/err.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/version.h>
#include <asm/nmi.h>

#include "context.h"
#include "hardware.h"
#include "sample.h"

/*
 * The contexts that this CPU samples, by flavour. Written by this CPU only: by add and del with interrupts off, read by
 * its NMI. `ctx` is set before the hardware is started and cleared after it is stopped.
 */
struct ibs_slot {
	struct ibs_context *ctx;
	bool running;
};

static DEFINE_PER_CPU(struct ibs_slot[IBS_FLAVOURS], ibs_slots);

/* Never called: marks our own events, since events of perf_event_open() may not use this PMU. */
static void ibs_event_marker(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
}

static struct ibs_context *ibs_event_context(struct perf_event *event)
{
	return event->overflow_handler_context;
}

static struct ibs_slot *ibs_event_slot(struct perf_event *event)
{
	return this_cpu_ptr(&ibs_slots[event->attr.config]);
}

static int ibs_event_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type || event->overflow_handler != ibs_event_marker)
		return -ENOENT;
	return 0;
}

static void ibs_event_start(struct perf_event *event, int flags)
{
	struct ibs_context *ctx = ibs_event_context(event);

	event->hw.state = 0;
	WRITE_ONCE(ibs_event_slot(event)->running, true);
	barrier(); /* the NMI may come as soon as the hardware runs */
	ibs_hw->start(&ctx->config, ibs_sample_begin(ctx));
}

static void ibs_event_stop(struct perf_event *event, int flags)
{
	struct ibs_context *ctx = ibs_event_context(event);
	struct ibs_slot *slot = ibs_event_slot(event);

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	ibs_sample_end(ctx, ibs_hw->stop(&ctx->config));
	barrier(); /* the NMI finds the slot running until the hardware has stopped */
	WRITE_ONCE(slot->running, false);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int ibs_event_add(struct perf_event *event, int flags)
{
	struct ibs_slot *slot = ibs_event_slot(event);

	/* SETUP allows one context of a flavour for a thread, and a CPU runs one thread. */
	if (WARN_ON_ONCE(slot->ctx))
		return -EAGAIN;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	WRITE_ONCE(slot->ctx, ibs_event_context(event));
	if (flags & PERF_EF_START)
		ibs_event_start(event, flags);
	return 0;
}

static void ibs_event_del(struct perf_event *event, int flags)
{
	struct ibs_context *ctx = ibs_event_context(event);

	ibs_event_stop(event, flags);
	WRITE_ONCE(ibs_event_slot(event)->ctx, NULL);
	if (current != ctx->task || ctx->ended)
		return;
	/* The last time: at the thread's end, or when perf removes the events of the program that it was. */
	if ((current->flags & PF_EXITING) || current->mm != ctx->mm) {
		WRITE_ONCE(ctx->ended, true);
		irq_work_queue(&ctx->work);
	}
}

static void ibs_event_read(struct perf_event *event)
{
}

/*
 * A software context: the perf core multiplexes nothing there, every kernel has it for modules, and events of the CPU's own
 * PMU are not disturbed. Events have no sampling period of perf's: intervals, throttling and records are this module's.
 */
static struct pmu ibs_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_sw_context,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT,
	.event_init = ibs_event_init,
	.add = ibs_event_add,
	.del = ibs_event_del,
	.start = ibs_event_start,
	.stop = ibs_event_stop,
	.read = ibs_event_read,
};

/*
 * The slot is this CPU's and nothing but this NMI changes it now; the context in it stays until del() has run on this CPU.
 * No lock is taken, here or in what is called.
 */
static int ibs_nmi_flavour(u32 flavour, struct pt_regs *regs)
{
	struct ibs_slot *slot = this_cpu_ptr(&ibs_slots[flavour]);
	struct ibs_context *ctx = READ_ONCE(slot->ctx);
	struct ibs_raw raw;

	switch (ibs_hw->collect(flavour, regs, &raw)) {
	case IBS_NOTHING:
		return 0;
	case IBS_STALE:
		return 1;
	case IBS_SAMPLE:
		break;
	}
	if (ctx && READ_ONCE(slot->running))
		ibs_hw->rearm(&ctx->config, ibs_sample_take(ctx, &raw));
	return 1;
}

static int ibs_nmi_handler(unsigned int cmd, struct pt_regs *regs)
{
	int handled = 0;
	u32 flavour;

	for (flavour = 0; flavour < IBS_FLAVOURS; flavour++)
		handled += ibs_nmi_flavour(flavour, regs);
	return handled;
}

struct perf_event *ibs_follow_create(struct ibs_context *ctx)
{
	struct perf_event_attr attr = {
		.type = ibs_pmu.type,
		.size = sizeof(attr),
		.config = ctx->config.flavour,
		.disabled = 1,
		.exclude_kernel = !(ctx->config.flags & CROSSTALK_IBS_KERNEL),
		.exclude_hv = 1,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0)
		.remove_on_exec = 1, /* before: the event stays, and takes no sample of another address space */
#endif
	};

	return perf_event_create_kernel_counter(&attr, -1, ctx->task, ibs_event_marker, ctx);
}

void ibs_follow_destroy(struct perf_event *event)
{
	perf_event_release_kernel(event);
}

void ibs_follow_enable(struct perf_event *event)
{
	perf_event_enable(event);
}

void ibs_follow_disable(struct perf_event *event)
{
	perf_event_disable(event);
}

u64 ibs_follow_running_ns(struct perf_event *event)
{
	u64 enabled, running;

	perf_event_read_value(event, &enabled, &running);
	return running;
}

int ibs_follow_init(void)
{
	int err = register_nmi_handler(NMI_LOCAL, ibs_nmi_handler, 0, "crosstalk_ibs");

	if (err)
		return err;
	err = perf_pmu_register(&ibs_pmu, "crosstalk_ibs", -1);
	if (err)
		unregister_nmi_handler(NMI_LOCAL, "crosstalk_ibs");
	return err;
}

void ibs_follow_exit(void)
{
	perf_pmu_unregister(&ibs_pmu);
	unregister_nmi_handler(NMI_LOCAL, "crosstalk_ibs");
}
