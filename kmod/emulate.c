// SPDX-License-Identifier: GPL-2.0
/*
 * emulate=1: samples without IBS. A timer of this CPU decides when, sends the CPU an NMI, and the NMI takes the sample, by
 * the same way as with hardware, from the registers that the timer has interrupted. The data address is that of the
 * instruction which the thread will execute next, where decode.c knows it.
 */
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <asm/apic.h>
#include <asm/irq_regs.h>
#include <asm/irq_vectors.h>

#include "compat.h"
#include "decode.h"
#include "hardware.h"
#include "registers.h"

/*
 * The timer of one CPU and flavour. It sets `regs`, and the NMI that it sends takes them; `late`: an NMI is on its way
 * that no timer waits for any more.
 */
struct ibs_timer {
	struct hrtimer timer;
	struct pt_regs *regs;
	u64 armed;
	bool late;
};

#define IBS_EMULATED_PERIOD_MIN (20 * NSEC_PER_USEC)
#define IBS_EMULATED_PERIOD_MAX (100 * NSEC_PER_MSEC)
/* An NMI to oneself comes within a microsecond, under a hypervisor within some more. */
#define IBS_NMI_SPINS 20000

static DEFINE_PER_CPU(struct ibs_timer[IBS_FLAVOURS], ibs_timers);

static void ibs_send_nmi(struct ibs_timer *emulated, struct pt_regs *regs)
{
	unsigned int spins;

	WRITE_ONCE(emulated->regs, regs);
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
	for (spins = 0; spins < IBS_NMI_SPINS && READ_ONCE(emulated->regs); spins++)
		cpu_relax();
	/* It must not read registers that are gone. */
	if (xchg(&emulated->regs, NULL))
		WRITE_ONCE(emulated->late, true);
}

static enum hrtimer_restart ibs_timer_fires(struct hrtimer *timer)
{
	struct ibs_timer *emulated = container_of(timer, struct ibs_timer, timer);
	struct pt_regs *regs = get_irq_regs();

	if (regs)
		ibs_send_nmi(emulated, regs);
	hrtimer_forward_now(timer, ns_to_ktime(emulated->armed));
	return HRTIMER_RESTART;
}

static int ibs_emulation_init(struct crosstalk_ibs_info *info)
{
	unsigned int cpu, flavour;

	for_each_possible_cpu(cpu) {
		for (flavour = 0; flavour < IBS_FLAVOURS; flavour++)
			ibs_hrtimer_setup(&per_cpu(ibs_timers, cpu)[flavour].timer, ibs_timer_fires);
	}
	info->features = CROSSTALK_IBS_HAS_OP | CROSSTALK_IBS_HAS_FETCH | CROSSTALK_IBS_EMULATED;
	info->op_period_min = info->fetch_period_min = IBS_EMULATED_PERIOD_MIN;
	info->op_period_max = info->fetch_period_max = IBS_EMULATED_PERIOD_MAX;
	return 0;
}

static void ibs_emulation_exit(void)
{
}

static int ibs_emulation_cpu_up(unsigned int cpu)
{
	return 0;
}

static void ibs_emulation_cpu_down(unsigned int cpu)
{
}

static void ibs_emulation_start(const struct ibs_config *config, u64 count)
{
	struct ibs_timer *emulated = this_cpu_ptr(&ibs_timers[config->flavour]);

	emulated->armed = count;
	hrtimer_start(&emulated->timer, ns_to_ktime(count), HRTIMER_MODE_REL_PINNED_HARD);
}

/* The timer is pinned to this CPU and interrupts are off: it is not in its function now, so that this does not wait. */
static u64 ibs_emulation_stop(const struct ibs_config *config)
{
	struct ibs_timer *emulated = this_cpu_ptr(&ibs_timers[config->flavour]);
	s64 rest = ktime_to_ns(hrtimer_get_remaining(&emulated->timer));

	hrtimer_cancel(&emulated->timer);
	return emulated->armed - clamp_t(s64, rest, 0, emulated->armed);
}

/* The timer that waits for this NMI starts itself again. */
static void ibs_emulation_rearm(const struct ibs_config *config, u64 count)
{
	this_cpu_ptr(&ibs_timers[config->flavour])->armed = count;
}

/* As IBS_OP_DATA3 would have it. */
static u64 ibs_emulation_data3(const struct ibs_access *access)
{
	u64 data3 = IBS_DATA3_LINEAR_VALID;

	if (access->load)
		data3 |= IBS_DATA3_LOAD;
	if (access->store)
		data3 |= IBS_DATA3_STORE;
	if (access->locked)
		data3 |= IBS_DATA3_LOCKED;
	if (access->address & (access->width - 1))
		data3 |= IBS_DATA3_MISALIGNED;
	return data3 | (u64)(ilog2(access->width) + 1) << IBS_DATA3_WIDTH_SHIFT;
}

static void ibs_emulate_op(struct pt_regs *regs, struct ibs_raw *raw)
{
	struct ibs_access access;
	u8 code[IBS_CODE_MAX];
	unsigned long left;

	if (!raw->user || !user_64bit_mode(regs))
		return;
	/* Takes no fault: a page that is not there leaves bytes uncopied. */
	left = copy_from_user_nmi(code, (void __user *)regs->ip, sizeof(code));
	if (!ibs_decode(code, sizeof(code) - left, regs, &access))
		return;
	raw->address = access.address;
	raw->data[2] = ibs_emulation_data3(&access);
}

static enum ibs_collected ibs_emulation_collect(u32 flavour, struct pt_regs *nmi_regs, struct ibs_raw *raw)
{
	struct ibs_timer *emulated = this_cpu_ptr(&ibs_timers[flavour]);
	struct pt_regs *regs = xchg(&emulated->regs, NULL);

	if (!regs)
		return xchg(&emulated->late, false) ? IBS_STALE : IBS_NOTHING;
	memset(raw, 0, sizeof(*raw));
	raw->user = user_mode(regs);
	raw->ip = regs->ip;
	raw->ip_valid = true;
	if (flavour == CROSSTALK_IBS_OP) {
		ibs_emulate_op(regs, raw);
	} else {
		raw->address = regs->ip;
		raw->data[0] = IBS_FETCH_COMPLETE;
	}
	return IBS_SAMPLE;
}

const struct ibs_hardware ibs_emulation = {
	.name = "emulation",
	.init = ibs_emulation_init,
	.exit = ibs_emulation_exit,
	.cpu_up = ibs_emulation_cpu_up,
	.cpu_down = ibs_emulation_cpu_down,
	.start = ibs_emulation_start,
	.stop = ibs_emulation_stop,
	.rearm = ibs_emulation_rearm,
	.collect = ibs_emulation_collect,
};
