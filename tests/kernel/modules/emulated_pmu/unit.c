// SPDX-License-Identifier: GPL-2.0
/*
 * The units that are emulated: ibs_op where the processor calls itself AMD's, else cpu as Intel's
 * are. Names, formats and rules are those of the kernel's own drivers.
 */
#include <linux/module.h>
#include <asm/amd-ibs.h>
#include <asm/perf_event.h>
#include <asm/processor.h>

#include "emulated_pmu.h"

unsigned int emulated_rate;
module_param_named(rate, emulated_rate, uint, 0444);
MODULE_PARM_DESC(rate, "micro-ops (ibs_op), loads or stores (cpu) that happen in a microsecond");

unsigned int emulated_silent;
module_param_named(silent, emulated_silent, uint, 0444);
MODULE_PARM_DESC(silent, "events are taken, and 1: never count, 2: count and never sample");

static bool per_thread;
module_param(per_thread, bool, 0444);
MODULE_PARM_DESC(per_thread, "ibs_op takes events of a thread, as from Linux 6.2 on");

static bool swfilt;
module_param(swfilt, bool, 0444);
MODULE_PARM_DESC(swfilt, "ibs_op can leave out the kernel or users, as from Linux 6.14 on");

int emulated_counter_count;
static struct pmu unit;

static int counters = EMULATED_GENERAL;
module_param(counters, int, 0444);
MODULE_PARM_DESC(counters, "counters of a processor for any event (cpu), 1 to 4");

/* ---- ibs_op -------------------------------------------------------------------------------- */

PMU_FORMAT_ATTR(cnt_ctl, "config:19");
PMU_FORMAT_ATTR(swfilt, "config2:0");

static struct attribute *ibs_format[] = { &format_attr_cnt_ctl.attr, NULL, NULL };
static struct attribute *no_attributes[] = { NULL };
static const struct attribute_group ibs_format_group = { .name = "format", .attrs = ibs_format };
static const struct attribute_group empty_caps_group = { .name = "caps", .attrs = no_attributes };
static const struct attribute_group *ibs_groups[] = {
	&ibs_format_group, &empty_caps_group, NULL,
};

#define LEAST_IBS_PERIOD 0x90
#define MOST_IBS_PERIOD (IBS_OP_MAX_CNT << 4 | IBS_OP_MAX_CNT_EXT_MASK)

static int check_ibs(struct perf_event *event, struct emulated_event *ours)
{
	struct hw_perf_event *hw = &event->hw;
	u64 count = event->attr.config & IBS_OP_MAX_CNT;

	if (event->attr.config & ~(u64)(IBS_OP_CNT_CTL | IBS_OP_MAX_CNT))
		return -EINVAL;
	if (hw->sample_period && count)		/* the period is given twice */
		return -EINVAL;
	if (!hw->sample_period)
		hw->sample_period = event->attr.sample_period = count << 4;
	if (event->attr.config2 & ~(swfilt ? 1ULL : 0ULL))
		return -EINVAL;
	if (!(event->attr.config2 & 1) && (event->attr.exclude_kernel || event->attr.exclude_user))
		return -EINVAL;
	/* The counter's lowest four bits cannot be set. */
	if (!event->attr.freq && hw->sample_period & 0xf)
		return -EINVAL;
	hw->sample_period &= ~0xfULL;
	if (hw->sample_period < LEAST_IBS_PERIOD || hw->sample_period > MOST_IBS_PERIOD)
		return -EINVAL;
	hw->last_period = hw->sample_period;
	ours->kind = EMULATED_OPS;
	return 0;
}

/* ---- cpu ----------------------------------------------------------------------------------- */

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
PMU_FORMAT_ATTR(ldlat, "config1:0-15");
PMU_EVENT_ATTR_STRING(mem-loads, mem_loads, "event=0xcd,umask=0x1,ldlat=3");
PMU_EVENT_ATTR_STRING(mem-stores, mem_stores, "event=0xd0,umask=0x82");
PMU_EVENT_ATTR_STRING(max_precise, max_precise, "3");

static struct attribute *cpu_format[] = {
	&format_attr_event.attr, &format_attr_umask.attr, &format_attr_ldlat.attr, NULL,
};
static struct attribute *cpu_events[] = { &mem_loads.attr.attr, &mem_stores.attr.attr, NULL };
static struct attribute *cpu_caps[] = { &max_precise.attr.attr, NULL };
static const struct attribute_group cpu_format_group = { .name = "format", .attrs = cpu_format };
static const struct attribute_group cpu_events_group = { .name = "events", .attrs = cpu_events };
static const struct attribute_group cpu_caps_group = { .name = "caps", .attrs = cpu_caps };
static const struct attribute_group *cpu_groups[] = {
	&cpu_format_group, &cpu_events_group, &cpu_caps_group, NULL,
};

#define MEM_LOADS 0x01cd
#define MEM_STORES 0x82d0
#define MOST_PRECISE 3

static bool takes_counter(struct perf_event *event)
{
	bool counts = !is_sampling_event(event) || event->attr.config == 0x003c;

	return event->pmu == &unit && !(counts && emulated_is_fixed(event));
}

/* A group that can never be on the processor together is refused, as x86's driver does. */
static bool fits_group(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;
	int taken = takes_counter(event);

	if (leader != event) {
		taken += takes_counter(leader);
		for_each_sibling_event(sibling, leader)
			taken += takes_counter(sibling);
	}
	return taken <= emulated_counter_count;
}

static int check_counting(struct perf_event *event, struct emulated_event *ours)
{
	if (event->attr.config1 || event->attr.precise_ip)
		return -EINVAL;
	ours->kind = EMULATED_COUNT;
	return 0;
}

static int check_cpu(struct perf_event *event, struct emulated_event *ours)
{
	if (event->attr.precise_ip > MOST_PRECISE)
		return -EOPNOTSUPP;
	if (event->attr.config2 || !fits_group(event))
		return -EINVAL;
	if (!is_sampling_event(event) || event->attr.config == 0x003c)
		return check_counting(event, ours);
	switch (event->attr.config) {
	case MEM_LOADS:
		if (event->attr.config1 & ~0xffffULL)
			return -EINVAL;
		ours->kind = EMULATED_LOADS;
		ours->least_latency = event->attr.config1;
		return 0;
	case MEM_STORES:
		ours->kind = EMULATED_STORES;
		return event->attr.config1 ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

/* ---- the one that is registered ------------------------------------------------------------ */

static struct pmu unit = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	.event_init = emulated_event_init,
	.add = emulated_add,
	.del = emulated_del,
	.start = emulated_start,
	.stop = emulated_stop,
	.read = emulated_read,
};

static bool is_ibs(void)
{
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD;
}

int emulated_check_event(struct perf_event *event, struct emulated_event *ours)
{
	return is_ibs() ? check_ibs(event, ours) : check_cpu(event, ours);
}

/* This kernel lets the first unit only take events of threads, and remembers it when that unit has gone: whoever comes
 * again has to say that there are several. */
static int register_unit(const char *name, int type)
{
	int ret;

	unit.capabilities |= PERF_PMU_CAP_HETEROGENEOUS_CPUS;
	ret = perf_pmu_register(&unit, name, type);
	unit.capabilities &= ~PERF_PMU_CAP_HETEROGENEOUS_CPUS;
	return ret;
}

static int register_ibs_unit(void)
{
	if (swfilt)
		ibs_format[1] = &format_attr_swfilt.attr;
	else
		unit.capabilities = PERF_PMU_CAP_NO_EXCLUDE;
	if (!per_thread)
		unit.task_ctx_nr = perf_invalid_context;
	unit.attr_groups = ibs_groups;
	emulated_counter_count = 1;
	emulated_rate = emulated_rate ?: 100;
	return register_unit("ibs_op", -1);
}

static int register_cpu_unit(void)
{
	unit.attr_groups = cpu_groups;
	emulated_counter_count = clamp(counters, 1, EMULATED_GENERAL);
	emulated_rate = emulated_rate ?: 10;
	return register_unit("cpu", PERF_TYPE_RAW);
}

static int __init emulated_pmu_init(void)
{
	int ret = emulated_find_kernel_functions();

	if (ret)
		return ret;
	ret = emulated_stepping_init();
	if (ret)
		return ret;
	ret = is_ibs() ? register_ibs_unit() : register_cpu_unit();
	if (ret)
		emulated_stepping_exit();
	return ret;
}

static void __exit emulated_pmu_exit(void)
{
	int type = unit.type;

	perf_pmu_unregister(&unit);
	/* Units of fixed types are not meant to go: this kernel would keep the place, with us in it. */
	if (type < PERF_TYPE_MAX)
		idr_remove(emulated_kernel.pmu_idr, type);
	emulated_stepping_exit();
}

module_init(emulated_pmu_init);
module_exit(emulated_pmu_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An emulated performance monitoring unit, for tests");
