// SPDX-License-Identifier: GPL-2.0
/*
 * perf_event_overflow(), the instruction decoder and perf's table of units are not exported: a
 * kprobe tells where the table of symbols is.
 */
#include <linux/kprobes.h>

#include "emulated_pmu.h"

struct emulated_kernel_functions emulated_kernel;

int emulated_find_kernel_functions(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*lookup)(const char *name);
	int ret = register_kprobe(&probe);

	if (ret)
		return ret;
	lookup = (void *)probe.addr;
	unregister_kprobe(&probe);
	emulated_kernel.perf_event_overflow = (void *)lookup("perf_event_overflow");
	emulated_kernel.insn_decode = (void *)lookup("insn_decode");
	emulated_kernel.insn_get_addr_ref = (void *)lookup("insn_get_addr_ref");
	emulated_kernel.pmu_idr = (void *)lookup("pmu_idr");
	if (!emulated_kernel.pmu_idr || !emulated_kernel.perf_event_overflow || !emulated_kernel.insn_decode ||
	    !emulated_kernel.insn_get_addr_ref)
		return -ENOENT;
	return 0;
}
