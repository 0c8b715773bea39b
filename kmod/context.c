// SPDX-License-Identifier: GPL-2.0
#include "context.h"

#include <linux/cred.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/signal.h>
#include <linux/slab.h>

#include "account.h"
#include "follow.h"
#include "notify.h"
#include "permission.h"
#include "ring.h"
#include "target.h"

/* Contexts that are set up, to refuse a thread's second one of a flavour. */
static LIST_HEAD(ibs_contexts);
static DEFINE_MUTEX(ibs_contexts_lock);

struct ibs_context *ibs_context_open(void)
{
	struct ibs_context *ctx;

	if (!current->mm)
		return ERR_PTR(-EPERM);
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	get_task_struct(current);
	ctx->opener = ctx->task = current;
	mmgrab(current->mm);
	ctx->owner = ctx->mm = current->mm;
	ctx->uid = current_uid();
	ctx->visible_uid = from_kuid_munged(current_user_ns(), ctx->uid);
	ctx->pid = task_tgid_vnr(current);
	ctx->tid = task_pid_vnr(current);
	ctx->random = ctx->tid * 2654435761U | 1;
	mutex_init(&ctx->lock);
	mutex_init(&ctx->read_lock);
	INIT_LIST_HEAD(&ctx->list);
	init_irq_work(&ctx->work, ibs_notify);
	init_waitqueue_head(&ctx->wait);
	return ctx;
}

static void ibs_context_unlist(struct ibs_context *ctx)
{
	mutex_lock(&ibs_contexts_lock);
	list_del_init(&ctx->list);
	mutex_unlock(&ibs_contexts_lock);
}

static void ibs_context_uncharge(struct ibs_context *ctx, unsigned int pages)
{
	atomic64_sub(pages, &ctx->owner->pinned_vm);
	ibs_uncharge(ctx->uid, pages);
}

/*
 * First the event, then the work that its last samples may have queued: after these two nothing but this function knows the
 * context.
 */
void ibs_context_release(struct ibs_context *ctx)
{
	if (ctx->event)
		ibs_follow_destroy(ctx->event);
	irq_work_sync(&ctx->work);
	ibs_context_unlist(ctx);
	if (ctx->ring) {
		ibs_context_uncharge(ctx, ctx->ring->pages);
		ibs_ring_destroy(ctx->ring);
	}
	if (ctx->follows) {
		mmdrop(ctx->mm);
		put_task_struct(ctx->task);
	}
	mmdrop(ctx->owner);
	put_task_struct(ctx->opener);
	kfree(ctx);
}

bool ibs_context_is_ours(const struct ibs_context *ctx)
{
	return current->mm == ctx->owner;
}

/*
 * A thread that has executed another program is another one: not even its running time is reported. Its mm_struct is
 * compared, never followed. `task` and `mm` stay what they are once the ring is there; before, the caller has the lock.
 */
bool ibs_context_has_ended(const struct ibs_context *ctx)
{
	const struct task_struct *task = ctx->task;

	return READ_ONCE(ctx->ended) || (READ_ONCE(task->flags) & PF_EXITING) || READ_ONCE(task->mm) != ctx->mm;
}

struct ibs_ring *ibs_context_ring(struct ibs_context *ctx)
{
	/* Acquire: all that SETUP wrote before. */
	return smp_load_acquire(&ctx->ring);
}

int ibs_context_follow(struct ibs_context *ctx, const struct crosstalk_ibs_follow *follow)
{
	struct task_struct *task;
	struct mm_struct *mm;
	int err = ibs_target_find(follow, &task, &mm);

	if (err)
		return err;
	if (mutex_lock_interruptible(&ctx->lock)) {
		err = -ERESTARTSYS;
		goto put;
	}
	if (ctx->ring || ctx->follows) {
		err = -EBUSY;
	} else {
		ctx->mm = mm;
		ctx->pid = task_tgid_vnr(task);
		ctx->tid = task_pid_vnr(task);
		ctx->random = ctx->tid * 2654435761U | 1;
		ctx->follows = true;
		ctx->task = task;
	}
	mutex_unlock(&ctx->lock);
	if (!err)
		return 0;
put:
	mmdrop(mm);
	put_task_struct(task);
	return err;
}

static bool ibs_period_fits(u64 period, u64 random, u64 min, u64 max)
{
	if (period < min || period > max)
		return false;
	return random <= period - min && random <= max - period;
}

static int ibs_check_features(const struct crosstalk_ibs_setup *setup)
{
	const bool op = setup->flavour == CROSSTALK_IBS_OP;
	u32 needed = op ? CROSSTALK_IBS_HAS_OP : CROSSTALK_IBS_HAS_FETCH;

	if (!op && ((setup->flags & CROSSTALK_IBS_COUNT_OPS) || setup->load_latency))
		return -EINVAL;
	if (setup->flags & CROSSTALK_IBS_COUNT_OPS)
		needed |= CROSSTALK_IBS_HAS_COUNT_OPS;
	if (setup->flags & CROSSTALK_IBS_L3_MISS)
		needed |= CROSSTALK_IBS_HAS_L3_MISS;
	if (setup->load_latency)
		needed |= CROSSTALK_IBS_HAS_LOAD_LATENCY;
	return (ibs_info.features & needed) == needed ? 0 : -EOPNOTSUPP;
}

static bool ibs_period_fits_flavour(u32 flavour, u64 period, u64 random)
{
	const bool op = flavour == CROSSTALK_IBS_OP;

	return ibs_period_fits(period, random, op ? ibs_info.op_period_min : ibs_info.fetch_period_min,
			       op ? ibs_info.op_period_max : ibs_info.fetch_period_max);
}

static int ibs_check_numbers(const struct crosstalk_ibs_setup *setup)
{
	if (!ibs_period_fits_flavour(setup->flavour, setup->period, setup->random))
		return -ERANGE;
	if (setup->load_latency && (setup->load_latency < ibs_info.load_latency_min ||
				    setup->load_latency > ibs_info.load_latency_max))
		return -ERANGE;
	if (setup->records < IBS_RECORDS_MIN || setup->records > IBS_RECORDS_MAX)
		return -ERANGE;
	return setup->watermark > setup->records ? -ERANGE : 0;
}

static int ibs_check_setup(const struct crosstalk_ibs_setup *setup)
{
	const u32 flags = CROSSTALK_IBS_COUNT_OPS | CROSSTALK_IBS_MEMORY_ONLY | CROSSTALK_IBS_L3_MISS |
			  CROSSTALK_IBS_KERNEL | CROSSTALK_IBS_PHYSICAL;
	int err;

	if (setup->size != sizeof(*setup) || setup->flavour >= IBS_FLAVOURS || (setup->flags & ~flags))
		return -EINVAL;
	if (setup->reserved0 || memchr_inv(setup->reserved, 0, sizeof(setup->reserved)))
		return -EINVAL;
	if (setup->signal && (!valid_signal(setup->signal) || setup->signal == SIGKILL || setup->signal == SIGSTOP))
		return -EINVAL;
	if (!is_power_of_2(setup->records))
		return -EINVAL;
	err = ibs_check_features(setup);
	return err ? err : ibs_check_numbers(setup);
}

static int ibs_context_list(struct ibs_context *ctx)
{
	struct ibs_context *other;
	int err = 0;

	mutex_lock(&ibs_contexts_lock);
	list_for_each_entry(other, &ibs_contexts, list) {
		if (other->task == ctx->task && other->config.flavour == ctx->config.flavour)
			err = -EBUSY;
	}
	if (!err)
		list_add(&ctx->list, &ibs_contexts);
	mutex_unlock(&ibs_contexts_lock);
	return err;
}

static void ibs_context_configure(struct ibs_context *ctx, const struct crosstalk_ibs_setup *setup)
{
	ctx->config.flavour = setup->flavour;
	ctx->config.flags = setup->flags;
	ctx->config.period = setup->period;
	ctx->config.random = setup->random;
	ctx->config.load_latency = setup->load_latency;
	ctx->signal = setup->signal;
	ctx->cookie = setup->cookie;
	ctx->watermark = setup->watermark ? setup->watermark : 1;
}

/* Takes a context's resources; releases them in reverse if a later part fails, so that SETUP can be tried again. */
static int ibs_context_acquire(struct ibs_context *ctx, u32 records)
{
	const unsigned int pages = ibs_ring_pages(records);
	struct perf_event *event;
	struct ibs_ring *ring;
	int err = ibs_context_list(ctx);

	if (err)
		return err;
	err = ibs_charge(ctx->uid, pages);
	if (err)
		goto unlist;
	atomic64_add(pages, &ctx->owner->pinned_vm);
	ring = ibs_ring_create(records);
	if (!ring) {
		err = -ENOMEM;
		goto uncharge;
	}
	event = ibs_follow_create(ctx);
	if (IS_ERR(event)) {
		err = PTR_ERR(event);
		goto destroy;
	}
	/*
	 * The thread may have executed a program meanwhile. An event that was there before perf removes those of the old program
	 * is gone; one that came after it is of a thread that has its new memory, which this sees.
	 */
	if (ibs_context_has_ended(ctx)) {
		ibs_follow_destroy(event);
		err = -ESRCH;
		goto destroy;
	}
	ctx->event = event;
	/* Release: a reader that sees the ring sees the whole context. */
	smp_store_release(&ctx->ring, ring);
	return 0;

destroy:
	ibs_ring_destroy(ring);
uncharge:
	ibs_context_uncharge(ctx, pages);
unlist:
	ibs_context_unlist(ctx);
	return err;
}

int ibs_context_setup(struct ibs_context *ctx, const struct crosstalk_ibs_setup *setup)
{
	int err = ibs_check_setup(setup);

	if (err)
		return err;
	err = ibs_permission(setup->flags);
	if (err)
		return err;
	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	if (ctx->ring) {
		err = -EBUSY;
	} else if (ibs_context_has_ended(ctx)) {
		err = -ESRCH;
	} else if (ctx->follows && setup->signal) {
		err = -EINVAL;
	} else {
		ibs_context_configure(ctx, setup);
		err = ibs_context_acquire(ctx, setup->records);
	}
	mutex_unlock(&ctx->lock);
	return err;
}

static int ibs_context_switch_on(struct ibs_context *ctx)
{
	if (!ctx->ring)
		return -ENXIO;
	if (ibs_context_has_ended(ctx))
		return -ESRCH;
	if (!ctx->enabled)
		ibs_follow_enable(ctx->event);
	ctx->enabled = true;
	return 0;
}

static int ibs_context_switch_off(struct ibs_context *ctx)
{
	if (!ctx->ring)
		return -ENXIO;
	if (ctx->enabled)
		ibs_follow_disable(ctx->event);
	ctx->enabled = false;
	return 0;
}

/* Off the CPU meanwhile: the NMI reads both numbers. The rest of the interval that has begun is still counted. */
static void ibs_context_change_period(struct ibs_context *ctx, const struct crosstalk_ibs_period *period)
{
	if (ctx->enabled)
		ibs_follow_disable(ctx->event);
	ctx->config.period = period->period;
	ctx->config.random = period->random;
	if (ctx->enabled)
		ibs_follow_enable(ctx->event);
}

int ibs_context_set_period(struct ibs_context *ctx, const struct crosstalk_ibs_period *period)
{
	int err = 0;

	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	if (!ctx->ring)
		err = -ENXIO;
	else if (!ibs_period_fits_flavour(ctx->config.flavour, period->period, period->random))
		err = -ERANGE;
	else
		ibs_context_change_period(ctx, period);
	mutex_unlock(&ctx->lock);
	return err;
}

static int ibs_context_clear(struct ibs_context *ctx)
{
	if (!ctx->ring)
		return -ENXIO;
	if (ctx->enabled)
		return -EBUSY;
	/* The last samples' work counts signals. */
	irq_work_sync(&ctx->work);
	memset(&ctx->counts, 0, sizeof(ctx->counts));
	ctx->left = 0;
	ibs_ring_reset(ctx->ring);
	return 0;
}

static int ibs_context_locked(struct ibs_context *ctx, int (*action)(struct ibs_context *))
{
	int err;

	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	err = action(ctx);
	mutex_unlock(&ctx->lock);
	return err;
}

int ibs_context_enable(struct ibs_context *ctx)
{
	return ibs_context_locked(ctx, ibs_context_switch_on);
}

int ibs_context_disable(struct ibs_context *ctx)
{
	return ibs_context_locked(ctx, ibs_context_switch_off);
}

int ibs_context_reset(struct ibs_context *ctx)
{
	int err;

	/* Not under a reader's copy. */
	if (mutex_lock_interruptible(&ctx->read_lock))
		return -ERESTARTSYS;
	err = ibs_context_locked(ctx, ibs_context_clear);
	mutex_unlock(&ctx->read_lock);
	return err;
}

static void ibs_context_describe(struct ibs_context *ctx, struct crosstalk_ibs_status *status)
{
	const struct ibs_ring *ring = ctx->ring;

	memset(status, 0, sizeof(*status));
	if (ring) {
		status->state |= CROSSTALK_IBS_SET_UP;
		status->ring_bytes = (u64)ring->pages << PAGE_SHIFT;
		status->running_ns = ibs_follow_running_ns(ctx->event);
	}
	if (ctx->enabled)
		status->state |= CROSSTALK_IBS_ENABLED;
	if (ibs_context_has_ended(ctx))
		status->state |= CROSSTALK_IBS_ENDED;
	status->samples = READ_ONCE(ctx->counts.samples);
	status->filtered = READ_ONCE(ctx->counts.filtered);
	status->lost = READ_ONCE(ctx->counts.lost);
	status->throttled = READ_ONCE(ctx->counts.throttled);
	status->signals = READ_ONCE(ctx->counts.signals);
	status->signals_lost = READ_ONCE(ctx->counts.signals_lost);
	status->handler_ns = READ_ONCE(ctx->counts.handler_ns);
	status->counted = READ_ONCE(ctx->counts.counted);
}

int ibs_context_status(struct ibs_context *ctx, struct crosstalk_ibs_status *status)
{
	if (mutex_lock_interruptible(&ctx->lock))
		return -ERESTARTSYS;
	ibs_context_describe(ctx, status);
	mutex_unlock(&ctx->lock);
	return 0;
}
