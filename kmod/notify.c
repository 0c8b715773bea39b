// SPDX-License-Identifier: GPL-2.0
#include "notify.h"

#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "context.h"

/*
 * One signal at a time: while one is pending, another would tell the thread nothing new, and a queue of them could take all
 * of its RLIMIT_SIGPENDING. The look at the set takes no lock: a stale answer costs one signal more or less.
 */
static bool ibs_signal_is_pending(const struct ibs_context *ctx)
{
	return sigismember(&ctx->task->pending.signal, ctx->signal);
}

/*
 * To the context's own thread, by its task, whichever thread this interrupt finds: the reference is held until release,
 * which waits for this work. A thread that is past exit has no signal handlers any more; then nothing is sent. One that has
 * executed another program gets nothing either.
 */
static void ibs_send_signal(struct ibs_context *ctx)
{
	struct kernel_siginfo info;

	if (READ_ONCE(ctx->task->mm) != ctx->mm || ibs_signal_is_pending(ctx))
		return;
	clear_siginfo(&info);
	info.si_signo = ctx->signal;
	info.si_code = SI_ASYNCIO;
	info.si_pid = ctx->pid;
	info.si_uid = ctx->visible_uid;
	info.si_value.sival_ptr = (void __user *)(unsigned long)ctx->cookie;
	if (send_sig_info(ctx->signal, &info, ctx->task))
		ctx->counts.signals_lost++;
	else
		ctx->counts.signals++;
}

void ibs_notify(struct irq_work *work)
{
	struct ibs_context *ctx = container_of(work, struct ibs_context, work);

	wake_up_interruptible_all(&ctx->wait);
	if (ctx->signal && !READ_ONCE(ctx->ended))
		ibs_send_signal(ctx);
}
