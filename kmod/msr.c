// SPDX-License-Identifier: GPL-2.0
/* IBS itself. */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/perf_event.h>
#include <asm/processor.h>

#include "compat.h"
#include "hardware.h"
#include "registers.h"
#include "vector.h"

/* Fewer events than this between two interrupts would leave the thread little but interrupts. */
#define IBS_PERIOD_FLOOR 1024U
#define IBS_PERIOD_MAX ((u64)IBS_OP_MAX_COUNT << IBS_COUNT_SHIFT)
#define IBS_PERIOD_MAX_EXTENDED (0x7fffffULL << IBS_COUNT_SHIFT)
#define IBS_LATENCY_UNIT 128
#define IBS_LATENCY_MAX 2048

static unsigned int min_period = 4096;
module_param(min_period, uint, 0444);
MODULE_PARM_DESC(min_period, "shortest sampling period, micro-operations, cycles or fetches (default 4096, at least 1024)");

/* Set by init, then constant. */
static u32 ibs_cpuid;
static bool ibs_erratum_420;
static bool ibs_erratum_717;
static bool ibs_erratum_1197;
static bool ibs_fetch_count_sticks;

/* The state of a CPU; written with interrupts off or in its NMI. `stale`: an NMI may be on its way without a sample. */
struct ibs_cpu {
	bool ready;
	u64 armed[IBS_FLAVOURS];
	bool stale[IBS_FLAVOURS];
};

static DEFINE_PER_CPU(struct ibs_cpu, ibs_cpu);

static bool ibs_is_family(unsigned int family, unsigned int model_end)
{
	return boot_cpu_data.x86 == family && boot_cpu_data.x86_model < model_end;
}

static void ibs_find_errata(void)
{
	/* Revision Guide for AMD Family 10h Processors (41322), #420: an interrupt that cannot be cleared. */
	ibs_erratum_420 = boot_cpu_data.x86 == 0x10;
	/* Revision Guide for AMD Family 15h Models 00h-0Fh (48063), #717: wrong branch targets, wrong MAB hits. */
	ibs_erratum_717 = ibs_is_family(0x15, 0x10);
	/* Revision Guide for AMD Family 19h Models 00h-0Fh (56683), #1197: a fetch at address 0 after deep sleep. */
	ibs_erratum_1197 = ibs_is_family(0x19, 0x10);
	/*
	 * No erratum has a number for it, but Linux's own driver works around it as well (arch/x86/events/amd/ibs.c): writing
	 * the fetch control does not reset the count; enabling does.
	 */
	ibs_fetch_count_sticks = boot_cpu_data.x86 >= 0x16 && boot_cpu_data.x86 <= 0x18;
}

static u32 ibs_read_cpuid(void)
{
	u32 bits;

	if (cpuid_eax(0x80000000) < IBS_CPUID_LEAF)
		return IBS_CPUID_VALID | IBS_CPUID_FETCH | IBS_CPUID_OP;
	bits = cpuid_eax(IBS_CPUID_LEAF);
	return bits & IBS_CPUID_VALID ? bits : IBS_CPUID_VALID | IBS_CPUID_FETCH | IBS_CPUID_OP;
}

static u32 ibs_features(void)
{
	static const struct {
		u32 cpuid;
		u32 feature;
	} table[] = {
		{ IBS_CPUID_OP, CROSSTALK_IBS_HAS_OP },
		{ IBS_CPUID_FETCH, CROSSTALK_IBS_HAS_FETCH },
		{ IBS_CPUID_OP_COUNT, CROSSTALK_IBS_HAS_COUNT_OPS },
		{ IBS_CPUID_ZEN4, CROSSTALK_IBS_HAS_L3_MISS },
		{ IBS_CPUID_LOAD_LATENCY, CROSSTALK_IBS_HAS_LOAD_LATENCY },
		{ IBS_CPUID_BRANCH_TARGET, CROSSTALK_IBS_HAS_BRANCH_TARGET },
	};
	u32 features = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		if (ibs_cpuid & table[i].cpuid)
			features |= table[i].feature;
	}
	return ibs_erratum_717 ? features & ~CROSSTALK_IBS_HAS_BRANCH_TARGET : features;
}

static void ibs_fill_info(struct crosstalk_ibs_info *info)
{
	const bool extended = ibs_cpuid & IBS_CPUID_OP_COUNT_EXTENDED;

	info->features = ibs_features();
	info->op_period_min = info->fetch_period_min = clamp_t(u64, min_period, IBS_PERIOD_FLOOR, IBS_PERIOD_MAX);
	info->op_period_max = extended ? IBS_PERIOD_MAX_EXTENDED : IBS_PERIOD_MAX;
	info->fetch_period_max = IBS_PERIOD_MAX;
	if (info->features & CROSSTALK_IBS_HAS_LOAD_LATENCY) {
		info->load_latency_min = IBS_LATENCY_UNIT;
		info->load_latency_max = IBS_LATENCY_MAX;
	}
}

static int ibs_msr_init(struct crosstalk_ibs_info *info)
{
	if (boot_cpu_data.x86_vendor != X86_VENDOR_AMD && boot_cpu_data.x86_vendor != X86_VENDOR_HYGON) {
		pr_err("not a processor of AMD or Hygon: there is no IBS (emulate=1 does without)\n");
		return -ENODEV;
	}
	if (!boot_cpu_has(X86_FEATURE_IBS)) {
		pr_err("this processor does not offer IBS, or firmware or the hypervisor hides it (emulate=1 does without)\n");
		return -ENODEV;
	}
	if (get_ibs_caps()) {
		pr_err("the kernel's own perf has IBS (ibs_op, ibs_fetch): use that\n");
		return -EBUSY;
	}
	ibs_cpuid = ibs_read_cpuid();
	ibs_find_errata();
	ibs_fill_info(info);
	return ibs_vector_init();
}

static void ibs_msr_exit(void)
{
	ibs_vector_exit();
}

static int ibs_msr_cpu_up(unsigned int cpu)
{
	int err = ibs_vector_up();

	WRITE_ONCE(this_cpu_ptr(&ibs_cpu)->ready, !err);
	if (err)
		pr_warn("CPU %u has no interrupt for IBS: threads are not sampled there\n", cpu);
	return 0;
}

static void ibs_msr_cpu_down(unsigned int cpu)
{
	WRITE_ONCE(this_cpu_ptr(&ibs_cpu)->ready, false);
	ibs_vector_down();
}

static u64 ibs_op_control(const struct ibs_config *config, u64 count)
{
	u64 units = count >> IBS_COUNT_SHIFT;
	u64 control = (units & IBS_OP_MAX_COUNT) | ((units >> 16) << 20 & IBS_OP_MAX_COUNT_EXTENDED);

	if (config->flags & CROSSTALK_IBS_COUNT_OPS)
		control |= IBS_OP_COUNT_OPS;
	if (config->flags & CROSSTALK_IBS_L3_MISS)
		control |= IBS_OP_L3_MISS_ONLY;
	/* The latency filter works on samples that pass the L3-miss filter. */
	if (config->load_latency) {
		control |= (u64)(config->load_latency / IBS_LATENCY_UNIT - 1) << IBS_OP_LATENCY_SHIFT;
		control |= IBS_OP_LATENCY_ENABLE | IBS_OP_L3_MISS_ONLY;
	}
	return control;
}

static void ibs_op_start(const struct ibs_config *config, u64 count)
{
	/* One write clears the valid bit and the current count, and enables. */
	ibs_wrmsr(IBS_MSR_OP_CTL, ibs_op_control(config, count) | IBS_OP_CTL_ENABLE);
}

static void ibs_fetch_start(const struct ibs_config *config, u64 count)
{
	u64 control = count >> IBS_COUNT_SHIFT;

	if (config->flags & CROSSTALK_IBS_L3_MISS)
		control |= IBS_FETCH_L3_MISS_ONLY;
	if (ibs_fetch_count_sticks)
		ibs_wrmsr(IBS_MSR_FETCH_CTL, control);
	ibs_wrmsr(IBS_MSR_FETCH_CTL, control | IBS_FETCH_CTL_ENABLE);
}

static void ibs_msr_start(const struct ibs_config *config, u64 count)
{
	struct ibs_cpu *cpu = this_cpu_ptr(&ibs_cpu);

	if (!READ_ONCE(cpu->ready))
		return;
	cpu->armed[config->flavour] = count;
	if (config->flavour == CROSSTALK_IBS_OP)
		ibs_op_start(config, count);
	else
		ibs_fetch_start(config, count);
}

/*
 * Returns the counted events. The first processors with IBS cannot read the current count (CPUID RdWrOpCnt); they do not
 * sample a thread that runs for less than a period at a time.
 */
static u64 ibs_op_counted(u64 control, u64 armed)
{
	if (control & IBS_OP_VALID)
		return armed;
	if (!(ibs_cpuid & IBS_CPUID_RDWR_OP_COUNT))
		return 0;
	return (control & IBS_OP_CURRENT_COUNT) >> IBS_OP_CURRENT_COUNT_SHIFT;
}

static u64 ibs_fetch_counted(u64 control, u64 armed)
{
	if (control & IBS_FETCH_VALID)
		return armed;
	return ((control >> IBS_FETCH_COUNT_SHIFT) & IBS_FETCH_MAX_COUNT) << IBS_COUNT_SHIFT;
}

static void ibs_op_disable(u64 control)
{
	/* Erratum 420: the maximum count first, alone, then the enable bit. */
	if (ibs_erratum_420)
		ibs_wrmsr(IBS_MSR_OP_CTL, control & ~IBS_OP_MAX_COUNT);
	ibs_wrmsr(IBS_MSR_OP_CTL, 0);
}

static void ibs_fetch_disable(u64 control)
{
	if (ibs_erratum_420)
		ibs_wrmsr(IBS_MSR_FETCH_CTL, control & ~IBS_FETCH_MAX_COUNT);
	ibs_wrmsr(IBS_MSR_FETCH_CTL, 0);
}

static u64 ibs_msr_stop(const struct ibs_config *config)
{
	struct ibs_cpu *cpu = this_cpu_ptr(&ibs_cpu);
	const u64 armed = cpu->armed[config->flavour];
	u64 control;

	if (!READ_ONCE(cpu->ready))
		return 0;
	/* Before the hardware stops: an interrupt may already be latched, and then comes without a sample. */
	WRITE_ONCE(cpu->stale[config->flavour], true);
	if (config->flavour == CROSSTALK_IBS_OP) {
		control = ibs_rdmsr(IBS_MSR_OP_CTL);
		ibs_op_disable(control);
		return ibs_op_counted(control, armed);
	}
	control = ibs_rdmsr(IBS_MSR_FETCH_CTL);
	ibs_fetch_disable(control);
	return ibs_fetch_counted(control, armed);
}

/* Erratum 717: a hit in the miss address buffer is meaningless without a miss. */
static u64 ibs_repair_data3(u64 data3)
{
	if (ibs_erratum_717 && !(data3 & IBS_DATA3_DC_MISS))
		data3 &= ~IBS_DATA3_MAB_HIT;
	return data3;
}

static void ibs_op_read(struct pt_regs *regs, struct ibs_raw *raw)
{
	raw->data[0] = ibs_rdmsr(IBS_MSR_OP_DATA);
	raw->data[1] = ibs_rdmsr(IBS_MSR_OP_DATA2);
	raw->data[2] = ibs_repair_data3(ibs_rdmsr(IBS_MSR_OP_DATA3));
	if (ibs_cpuid & IBS_CPUID_OP_DATA4)
		raw->data[3] = ibs_rdmsr(IBS_MSR_OP_DATA4);
	raw->ip_valid = !((ibs_cpuid & IBS_CPUID_RIP_INVALID) && (raw->data[0] & IBS_DATA_RIP_INVALID));
	raw->ip = raw->ip_valid ? ibs_rdmsr(IBS_MSR_OP_RIP) : regs->ip;
	raw->address = ibs_rdmsr(IBS_MSR_DC_LINEAR);
	raw->physical = ibs_rdmsr(IBS_MSR_DC_PHYSICAL);
	if ((ibs_info.features & CROSSTALK_IBS_HAS_BRANCH_TARGET) && (raw->data[0] & IBS_DATA_BRANCH)) {
		raw->branch_target = ibs_rdmsr(IBS_MSR_BRANCH_TARGET);
		raw->branch_target_valid = true;
	}
}

static void ibs_fetch_read(u64 control, struct ibs_raw *raw)
{
	raw->data[0] = control;
	if (ibs_cpuid & IBS_CPUID_FETCH_CTL_EXTENDED)
		raw->data[1] = ibs_rdmsr(IBS_MSR_FETCH_CTL_EXTENDED);
	raw->address = ibs_rdmsr(IBS_MSR_FETCH_LINEAR);
	raw->physical = ibs_rdmsr(IBS_MSR_FETCH_PHYSICAL);
	raw->ip = raw->address;
	raw->ip_valid = !(ibs_erratum_1197 && !raw->address);
}

static enum ibs_collected ibs_msr_collect(u32 flavour, struct pt_regs *regs, struct ibs_raw *raw)
{
	const bool op = flavour == CROSSTALK_IBS_OP;
	struct ibs_cpu *cpu = this_cpu_ptr(&ibs_cpu);
	u64 control;

	if (!READ_ONCE(cpu->ready))
		return IBS_NOTHING;
	control = ibs_rdmsr(op ? IBS_MSR_OP_CTL : IBS_MSR_FETCH_CTL);
	if (!(control & (op ? IBS_OP_VALID : IBS_FETCH_VALID)))
		return xchg(&cpu->stale[flavour], false) ? IBS_STALE : IBS_NOTHING;
	memset(raw, 0, sizeof(*raw));
	if (op)
		ibs_op_read(regs, raw);
	else
		ibs_fetch_read(control, raw);
	/* Both must agree: the interrupt comes some instructions after the one that was sampled. */
	raw->user = user_mode(regs) && (s64)raw->ip >= 0;
	return IBS_SAMPLE;
}

const struct ibs_hardware ibs_msr_hardware = {
	.name = "IBS",
	.init = ibs_msr_init,
	.exit = ibs_msr_exit,
	.cpu_up = ibs_msr_cpu_up,
	.cpu_down = ibs_msr_cpu_down,
	.start = ibs_msr_start,
	.stop = ibs_msr_stop,
	.rearm = ibs_msr_start,
	.collect = ibs_msr_collect,
};
