// SPDX-License-Identifier: GPL-2.0
#include "describe.h"

#include <linux/kernel.h>
#include <linux/string.h>

#include "crosstalk_ibs.h"
#include "hardware.h"
#include "registers.h"

struct ibs_flag {
	u64 hardware;
	u32 flag;
};

static const struct ibs_flag ibs_data_flags[] = {
	{ IBS_DATA_BRANCH, CROSSTALK_IBS_S_BRANCH },
	{ IBS_DATA_TAKEN, CROSSTALK_IBS_S_TAKEN },
	{ IBS_DATA_MISPREDICTED, CROSSTALK_IBS_S_MISPREDICTED },
};

static const struct ibs_flag ibs_data3_flags[] = {
	{ IBS_DATA3_LOAD, CROSSTALK_IBS_S_LOAD },
	{ IBS_DATA3_STORE, CROSSTALK_IBS_S_STORE },
	{ IBS_DATA3_L1TLB_MISS, CROSSTALK_IBS_S_TLB_MISS },
	{ IBS_DATA3_DC_MISS, CROSSTALK_IBS_S_L1_MISS },
	{ IBS_DATA3_MISALIGNED, CROSSTALK_IBS_S_MISALIGNED },
	{ IBS_DATA3_LOCKED, CROSSTALK_IBS_S_LOCKED },
	{ IBS_DATA3_LINEAR_VALID, CROSSTALK_IBS_S_ADDRESS },
	{ IBS_DATA3_L2_MISS, CROSSTALK_IBS_S_L2_MISS },
	{ IBS_DATA3_PREFETCH, CROSSTALK_IBS_S_PREFETCH },
};

static const struct ibs_flag ibs_fetch_flags[] = {
	{ IBS_FETCH_COMPLETE, CROSSTALK_IBS_S_COMPLETE },
	{ IBS_FETCH_IC_MISS, CROSSTALK_IBS_S_L1_MISS },
	{ IBS_FETCH_L2_MISS, CROSSTALK_IBS_S_L2_MISS },
	{ IBS_FETCH_L1TLB_MISS, CROSSTALK_IBS_S_TLB_MISS },
};

static u32 ibs_translate(const struct ibs_flag *table, size_t entries, u64 bits)
{
	u32 flags = 0;
	size_t i;

	for (i = 0; i < entries; i++) {
		if (bits & table[i].hardware)
			flags |= table[i].flag;
	}
	return flags;
}

/* Code 1 is one byte, each next one twice as wide; 0 and codes beyond 64 bytes mean nothing. */
static u8 ibs_width(u64 data3)
{
	u32 code = (data3 >> IBS_DATA3_WIDTH_SHIFT) & IBS_DATA3_WIDTH;

	return code >= 1 && code <= 7 ? 1 << (code - 1) : 0;
}

static void ibs_describe_op(const struct ibs_raw *raw, struct crosstalk_ibs_sample *sample)
{
	u64 data2 = raw->data[1];
	u64 data3 = raw->data[2];

	sample->flags |= ibs_translate(ibs_data_flags, ARRAY_SIZE(ibs_data_flags), raw->data[0]);
	sample->flags |= ibs_translate(ibs_data3_flags, ARRAY_SIZE(ibs_data3_flags), data3);
	if (data3 & (IBS_DATA3_LOAD | IBS_DATA3_STORE))
		sample->width = ibs_width(data3);
	if (data3 & IBS_DATA3_L1TLB_MISS)
		sample->tlb_latency = data3 >> IBS_DATA3_TLB_LATENCY_SHIFT;
	/* Latency and source are those of a load that missed; other ops leave old values there. */
	if ((data3 & IBS_DATA3_LOAD) && (data3 & IBS_DATA3_DC_MISS)) {
		sample->latency = (data3 >> IBS_DATA3_LATENCY_SHIFT) & 0xffff;
		sample->source = (data2 & IBS_DATA2_SOURCE) | (((data2 >> IBS_DATA2_SOURCE_HIGH_SHIFT) & 3) << 3);
		if (data2 & IBS_DATA2_REMOTE)
			sample->flags |= CROSSTALK_IBS_S_REMOTE;
	}
}

static void ibs_describe_fetch(const struct ibs_raw *raw, struct crosstalk_ibs_sample *sample)
{
	u64 control = raw->data[0];

	sample->flags |= ibs_translate(ibs_fetch_flags, ARRAY_SIZE(ibs_fetch_flags), control);
	sample->flags |= CROSSTALK_IBS_S_ADDRESS;
	sample->latency = (control >> IBS_FETCH_LATENCY_SHIFT) & 0xffff;
	sample->tlb_latency = raw->data[1] & 0xffff;
}

static bool ibs_has_physical(u32 flavour, const struct ibs_raw *raw)
{
	if (flavour == CROSSTALK_IBS_FETCH)
		return raw->data[0] & IBS_FETCH_PHYSICAL_VALID;
	return raw->data[2] & IBS_DATA3_PHYSICAL_VALID;
}

void ibs_describe(const struct ibs_config *config, const struct ibs_raw *raw, struct crosstalk_ibs_sample *sample)
{
	if (raw->user)
		sample->flags |= CROSSTALK_IBS_S_USER;
	if (raw->ip_valid)
		sample->flags |= CROSSTALK_IBS_S_IP;
	if (ibs_info.features & CROSSTALK_IBS_EMULATED)
		sample->flags |= CROSSTALK_IBS_S_EMULATED;
	if (config->flavour == CROSSTALK_IBS_FETCH)
		ibs_describe_fetch(raw, sample);
	else
		ibs_describe_op(raw, sample);

	sample->ip = raw->ip;
	memcpy(sample->data, raw->data, sizeof(sample->data));
	if (sample->flags & CROSSTALK_IBS_S_ADDRESS)
		sample->address = raw->address;
	if (raw->branch_target_valid) {
		sample->flags |= CROSSTALK_IBS_S_BRANCH_TARGET;
		sample->branch_target = raw->branch_target;
	}
	if ((config->flags & CROSSTALK_IBS_PHYSICAL) && ibs_has_physical(config->flavour, raw)) {
		sample->flags |= CROSSTALK_IBS_S_PHYSICAL;
		sample->physical = raw->physical;
	}
}
