// SPDX-License-Identifier: GPL-2.0
/*
 * Single steps from where the timer interrupted a thread to the instruction that is sampled. The
 * trap flag of the thread's saved registers does them, and this notifier takes the traps before
 * anything else sees them. A thread whose flag is left over (its event has gone, or a clone has
 * copied it) loses it at its next step.
 *
 * Never while a hardware breakpoint is armed: qemu 7.2 raises a step and a data breakpoint of one
 * instruction one after the other, the second one on the first instruction of the first one's
 * handler, in which the kernel then loops for ever. So steps end where a breakpoint is installed,
 * and a thread that has one is sampled at the instruction that it was interrupted at. They end at a
 * signal, too: its frame would keep the flag, and bring it back once the handler is done, which may
 * have installed a breakpoint.
 */
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/debugreg.h>
#include <asm/processor-flags.h>

#include "emulated_pmu.h"

#define MOST_STEPS 16		/* to the first instruction that is looked at */
#define MOST_TRIES 64		/* instructions that are looked at */

static bool is_of_kind(const struct emulated_event *ours, const struct emulated_access *access)
{
	switch (ours->kind) {
	case EMULATED_LOADS:
		return access->load && emulated_latency(access) >= ours->least_latency;
	case EMULATED_STORES:
		return access->store;
	default:
		return true;
	}
}

/* The instruction that is executed next, if it is of the kind. */
static bool look(struct emulated_event *ours, struct pt_regs *regs)
{
	return emulated_find_access(regs, &ours->access) && is_of_kind(ours, &ours->access);
}

bool emulated_interrupted(struct emulated_event *ours, struct pt_regs *regs)
{
	if (hw_breakpoint_active())
		return look(ours, regs) && emulated_emit(ours, regs);
	ours->stepped = current;
	ours->steps_left = 1 + get_random_u32() % MOST_STEPS;
	ours->tries_left = MOST_TRIES;
	ours->found = false;
	regs->flags |= X86_EFLAGS_TF;
	return false;
}

/* An instruction of the thread has been executed. */
static void on_step(struct emulated_event *ours, struct pt_regs *regs)
{
	if (ours->found) {
		ours->stepped = NULL;
		if (emulated_emit(ours, regs))
			emulated_stop(ours->event, 0);
		return;
	}
	if (ours->steps_left > 0 && --ours->steps_left > 0)
		return;
	ours->found = look(ours, regs);
	if (!ours->found && --ours->tries_left == 0)
		ours->stepped = NULL;
}

/* Steps all events of this processor that follow the current thread. True: one needs more steps. */
static bool step_all(struct pt_regs *regs)
{
	struct emulated_counters *counters = this_cpu_ptr(&emulated_counters);
	bool more = false;
	int i;

	for (i = 0; i < EMULATED_COUNTERS; ++i) {
		struct emulated_event *ours = counters->active[i];

		if (!ours || ours->stepped != current)
			continue;
		on_step(ours, regs);
		more |= ours->stepped == current;
	}
	return more;
}

static int on_debug_trap(struct notifier_block *block, unsigned long kind, void *data)
{
	struct die_args *args = data;
	const unsigned long *dr6 = (const unsigned long *)args->err;

	if (kind != DIE_DEBUG || !user_mode(args->regs) || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	if (test_thread_flag(TIF_SINGLESTEP))	/* a debugger's */
		return NOTIFY_DONE;
	if (!step_all(args->regs))
		args->regs->flags &= ~X86_EFLAGS_TF;
	return NOTIFY_STOP;
}

static struct notifier_block debug_traps = { .notifier_call = on_debug_trap };

/* The current thread is stepped no longer, on this processor. */
static int end_steps(struct kprobe *probe, struct pt_regs *unused)
{
	struct emulated_counters *counters = this_cpu_ptr(&emulated_counters);
	int i;

	for (i = 0; i < EMULATED_COUNTERS; ++i)
		if (counters->active[i] && counters->active[i]->stepped == current)
			counters->active[i]->stepped = NULL;
	if (!(current->flags & PF_KTHREAD) && !test_thread_flag(TIF_SINGLESTEP))
		task_pt_regs(current)->flags &= ~X86_EFLAGS_TF;
	return 0;
}

/* A breakpoint is about to be installed on this processor, for the current thread. */
static struct kprobe breakpoints = {
	.symbol_name = "arch_install_hw_breakpoint",
	.pre_handler = end_steps,
};

/* The current thread is on its way back to user mode, and there are signals for it. */
static struct kprobe signals = {
	.symbol_name = "arch_do_signal_or_restart",
	.pre_handler = end_steps,
};

int emulated_stepping_init(void)
{
	int ret = register_kprobe(&breakpoints);

	if (ret)
		return ret;
	ret = register_kprobe(&signals);
	if (ret)
		goto no_signals;
	ret = register_die_notifier(&debug_traps);
	if (!ret)
		return 0;
	unregister_kprobe(&signals);
no_signals:
	unregister_kprobe(&breakpoints);
	return ret;
}

void emulated_stepping_exit(void)
{
	unregister_die_notifier(&debug_traps);
	unregister_kprobe(&signals);
	unregister_kprobe(&breakpoints);
}
