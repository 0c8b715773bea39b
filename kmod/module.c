// SPDX-License-Identifier: GPL-2.0
/* Loading, unloading, CPUs that come and go, sleep. */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/smp.h>

#include "device.h"
#include "follow.h"
#include "hardware.h"
#include "permission.h"
#include "ring.h"
#include "target.h"

static bool emulate;
module_param(emulate, bool, 0444);
MODULE_PARM_DESC(emulate, "sample by a timer where there is no IBS, for tests (default off)");

static unsigned int samples_per_cpu = 20000;
module_param(samples_per_cpu, uint, 0444);
MODULE_PARM_DESC(samples_per_cpu, "interrupts a second on a CPU beyond which samples are dropped (default 20000, 1000 to 100000)");

const struct ibs_hardware *ibs_hw;
struct crosstalk_ibs_info ibs_info;

static int ibs_hotplug_state;
static struct platform_device *ibs_platform;

static int ibs_cpu_online(unsigned int cpu)
{
	return ibs_hw->cpu_up(cpu);
}

static int ibs_cpu_offline(unsigned int cpu)
{
	ibs_hw->cpu_down(cpu);
	return 0;
}

static int ibs_hotplug_init(void)
{
	ibs_hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "crosstalk_ibs:online", ibs_cpu_online,
					      ibs_cpu_offline);
	return min(ibs_hotplug_state, 0);
}

static void ibs_hotplug_exit(void)
{
	cpuhp_remove_state(ibs_hotplug_state);
}

static int ibs_resume_cpu(void *unused)
{
	return ibs_hw->cpu_up(smp_processor_id());
}

/*
 * Sleep takes the boot CPU's interrupt vector, which no hotplug event restores. Threads are still frozen now, as they
 * were when devices were suspended: nothing was sampled in between. By a thread on each CPU, as when a CPU comes up: the
 * northbridges of old families are looked up, which no interrupt may do.
 */
static int ibs_resume(struct device *device)
{
	unsigned int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu)
		smp_call_on_cpu(cpu, ibs_resume_cpu, NULL, false);
	cpus_read_unlock();
	return 0;
}

static const struct dev_pm_ops ibs_pm = {
	.resume = ibs_resume,
	.restore = ibs_resume,
	.thaw = ibs_resume,
};

static struct platform_driver ibs_platform_driver = {
	.driver = {
		.name = "crosstalk_ibs",
		.pm = &ibs_pm,
	},
};

/* A device whose only use is to learn of resume. */
static int ibs_sleep_init(void)
{
	int err = platform_driver_register(&ibs_platform_driver);

	if (err)
		return err;
	ibs_platform = platform_device_register_simple("crosstalk_ibs", PLATFORM_DEVID_NONE, NULL, 0);
	if (!IS_ERR(ibs_platform))
		return 0;
	platform_driver_unregister(&ibs_platform_driver);
	return PTR_ERR(ibs_platform);
}

static void ibs_sleep_exit(void)
{
	platform_device_unregister(ibs_platform);
	platform_driver_unregister(&ibs_platform_driver);
}

static int ibs_hardware_init(void)
{
	ibs_hw = emulate ? &ibs_emulation : &ibs_msr_hardware;
	ibs_info.version = CROSSTALK_IBS_VERSION;
	ibs_info.records_min = IBS_RECORDS_MIN;
	ibs_info.records_max = IBS_RECORDS_MAX;
	ibs_info.record_size = sizeof(struct crosstalk_ibs_sample);
	ibs_info.samples_per_cpu = clamp(samples_per_cpu, 1000U, 100000U);
	return ibs_hw->init(&ibs_info);
}

static void ibs_hardware_exit(void)
{
	ibs_hw->exit();
}

/* In this order up, in the other down. The device is last: its files need all the rest. */
static const struct {
	int (*init)(void);
	void (*exit)(void);
} ibs_parts[] = {
	{ ibs_permission_init, ibs_permission_exit },
	{ ibs_hardware_init, ibs_hardware_exit },
	{ ibs_target_init, ibs_target_exit },
	{ ibs_follow_init, ibs_follow_exit },
	{ ibs_hotplug_init, ibs_hotplug_exit },
	{ ibs_sleep_init, ibs_sleep_exit },
	{ ibs_device_init, ibs_device_exit },
};

static void ibs_parts_down(size_t parts)
{
	while (parts-- > 0)
		ibs_parts[parts].exit();
}

static int __init ibs_module_init(void)
{
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(ibs_parts); i++) {
		err = ibs_parts[i].init();
		if (err) {
			ibs_parts_down(i);
			return err;
		}
	}
	pr_info("/dev/crosstalk_ibs is ready (%s)\n", ibs_hw->name);
	return 0;
}

/* Open files hold the module: there is no context any more. */
static void __exit ibs_module_exit(void)
{
	ibs_parts_down(ARRAY_SIZE(ibs_parts));
}

module_init(ibs_module_init);
module_exit(ibs_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("AMD Instruction-Based Sampling of threads");
MODULE_VERSION("1");
