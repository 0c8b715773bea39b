// SPDX-License-Identifier: GPL-2.0
/*
 * A sample's fields, as the kernel's drivers of the real units fill them in
 * (arch/x86/events/amd/ibs.c, arch/x86/events/intel/ds.c), from an access that was decoded instead
 * of measured. Where the data came from is made up, but not at random: a load from a line that
 * another thread was last seen to store to came from its cache.
 */
#include <linux/hash.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <asm/amd-ibs.h>
#include <asm/perf_event.h>
#include <asm/processor-flags.h>

#include "emulated_pmu.h"

#define CACHE_HIT_CYCLES 5
#define TRANSFER_CYCLES 120
#define RETIRE_CYCLES 12	/* from tag to retirement beyond that */
#define LINE_BITS 6
/* Samples: now and then the real unit does not know the instruction's address. */
#define IP_UNKNOWN_EVERY 50

/*
 * The last storer seen of each line: the line's number in the upper bits, the thread below. Lines
 * that share an entry push each other out.
 */
#define STORES_BITS 12
#define THREAD_BITS 22		/* as many as thread ids have */
static u64 last_stores[1 << STORES_BITS];

static u64 *last_store_of(u64 address)
{
	return &last_stores[hash_64(address >> LINE_BITS, STORES_BITS)];
}

static u64 store_entry(u64 address)
{
	return (address >> LINE_BITS) << THREAD_BITS | current->pid;
}

static bool comes_from_another_thread(const struct emulated_access *access)
{
	u64 last = READ_ONCE(*last_store_of(access->address)), own = store_entry(access->address);

	return last != own && last >> THREAD_BITS == own >> THREAD_BITS;
}

u32 emulated_latency(const struct emulated_access *access)
{
	return comes_from_another_thread(access) ? TRANSFER_CYCLES : CACHE_HIT_CYCLES;
}

static u64 data_source(const struct emulated_event *ours, bool transferred)
{
	const struct emulated_access *access = &ours->access;
	bool load = access->load && ours->kind != EMULATED_STORES;
	union perf_mem_data_src source = { .val = 0 };

	if (!access->load && !access->store)
		return PERF_MEM_NA;
	source.mem_op = load ? PERF_MEM_OP_LOAD : PERF_MEM_OP_STORE;
	source.mem_lvl = PERF_MEM_LVL_HIT | (transferred ? PERF_MEM_LVL_L3 : PERF_MEM_LVL_L1);
	source.mem_lvl_num = transferred ? PERF_MEM_LVLNUM_L3 : PERF_MEM_LVLNUM_L1;
	source.mem_snoop = transferred ? PERF_MEM_SNOOP_HITM : PERF_MEM_SNOOP_NONE;
	source.mem_dtlb = PERF_MEM_TLB_L1 | PERF_MEM_TLB_HIT;
	source.mem_lock = access->locked ? PERF_MEM_LOCK_LOCKED : PERF_MEM_LOCK_NA;
	return source.val;
}

/* IbsOpData3's code of a width. */
static u8 width_code(u8 bytes)
{
	switch (bytes) {
	case 1:
		return 1;
	case 2:
		return 2;
	case 4:
		return 3;
	case 8:
		return 4;
	case 16:
		return 5;
	case 32:
		return 6;
	default:
		return 0;
	}
}

/*
 * PERF_SAMPLE_RAW of ibs_op: capabilities, then control, RIP, data 1 to 3, linear and physical
 * address. The physical one is left out, as the kernel leaves it out for users without privilege.
 */
struct ibs_registers {
	u32 caps;
	u64 values[7];
} __packed;

static void fill_registers(struct ibs_registers *raw, const struct perf_event *event,
			   const struct emulated_access *access, bool transferred, bool ip_known)
{
	union ibs_op_ctl control = {
		.opmaxcnt = event->hw.sample_period >> 4, .op_val = 1, .cnt_ctl = 1,
	};
	union ibs_op_data data = { .op_rip_invalid = !ip_known };
	union ibs_op_data2 data2 = { .val = 0 };
	union ibs_op_data3 data3 = { .ld_op = access->load, .st_op = access->store };

	if (access->load || access->store) {
		data3.dc_lin_addr_valid = 1;
		data3.dc_locked_op = access->locked;
		data3.op_mem_width = width_code(access->bytes);
		data3.dc_miss = transferred;
		data3.l2_miss = transferred;
		data3.dc_miss_lat = transferred && access->load ? TRANSFER_CYCLES : 0;
		data2.data_src_lo = transferred ? IBS_DATA_SRC_LOC_CACHE : 0;
	}
	data.tag_to_ret_ctr = RETIRE_CYCLES + (transferred ? TRANSFER_CYCLES : CACHE_HIT_CYCLES);
	raw->caps = IBS_CAPS_DEFAULT | IBS_CAPS_OPCNT | IBS_CAPS_RIPINVALIDCHK;
	raw->values[0] = control.val;
	raw->values[1] = access->ip;
	raw->values[2] = data.val;
	raw->values[3] = data2.val;
	raw->values[4] = data3.val;
	raw->values[5] = access->address;
	raw->values[6] = 0;
}

static void set_weight(struct perf_sample_data *data, const struct emulated_event *ours,
		       bool transferred)
{
	const struct emulated_access *access = &ours->access;
	bool ibs = ours->kind == EMULATED_OPS;
	u32 cycles = transferred ? TRANSFER_CYCLES : CACHE_HIT_CYCLES;

	data->weight.full = 0;
	data->sample_flags |= PERF_SAMPLE_WEIGHT_TYPE;
	/* Both know the latency of loads only, IBS that of misses only. */
	if (!access->load || ours->kind == EMULATED_STORES || (ibs && !transferred))
		return;
	if (ours->event->attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT) {
		data->weight.var1_dw = cycles;
		data->weight.var2_w = ibs ? RETIRE_CYCLES + cycles : 0;
	} else {
		data->weight.full = cycles;
	}
}

static bool deliver(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	event->hw.last_period = event->hw.sample_period;
	return emulated_kernel.perf_event_overflow(event, data, regs) != 0;
}

static void add_registers(struct perf_sample_data *data, struct perf_raw_record *record,
			  struct ibs_registers *raw)
{
	record->frag.size = sizeof(*raw);
	record->frag.data = raw;
	data->raw = record;
	data->sample_flags |= PERF_SAMPLE_RAW;
}

bool emulated_emit(struct emulated_event *ours, struct pt_regs *interrupted)
{
	struct perf_event *event = ours->event;
	const struct emulated_access *access = &ours->access;
	struct perf_raw_record record = {};
	struct perf_sample_data data;
	struct ibs_registers raw;
	struct pt_regs regs = *interrupted;
	bool ibs = ours->kind == EMULATED_OPS;
	bool ip_known = ibs ? get_random_u32() % IP_UNKNOWN_EVERY != 0 :
			      event->attr.precise_ip > 1;
	bool transferred = comes_from_another_thread(access) && (access->load || access->store);

	if (access->store)
		WRITE_ONCE(*last_store_of(access->address), store_entry(access->address));
	regs.flags &= ~X86_EFLAGS_TF;
	if (ip_known) {
		regs.ip = access->ip;
		regs.flags |= PERF_EFLAGS_EXACT;
	}
	perf_sample_data_init(&data, access->address, event->hw.sample_period);
	data.data_src.val = data_source(ours, transferred);
	data.sample_flags |= PERF_SAMPLE_DATA_SRC;
	set_weight(&data, ours, transferred);
	if (ibs) {
		fill_registers(&raw, event, access, transferred, ip_known);
		add_registers(&data, &record, &raw);
	}
	return deliver(event, &data, &regs);
}

bool emulated_emit_without_access(struct emulated_event *ours, struct pt_regs *interrupted)
{
	struct perf_event *event = ours->event;
	struct emulated_access none = { .ip = interrupted->ip };
	struct perf_raw_record record = {};
	struct perf_sample_data data;
	struct ibs_registers raw;
	struct pt_regs regs = *interrupted;

	regs.flags |= PERF_EFLAGS_EXACT;
	perf_sample_data_init(&data, 0, event->hw.sample_period);
	fill_registers(&raw, event, &none, false, true);
	add_registers(&data, &record, &raw);
	return deliver(event, &data, &regs);
}
