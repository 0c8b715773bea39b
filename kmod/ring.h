/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring of a context: one page of header, then records.
 *
 * One writer (the CPU that runs the thread; the scheduler orders one CPU's writes before the next one's), one consumer
 * in user space. The header is the consumer's to scribble on, so that the module keeps its own head and capacity.
 */
#ifndef CROSSTALK_IBS_RING_H
#define CROSSTALK_IBS_RING_H

#include <linux/types.h>

#include "crosstalk_ibs.h"

struct vm_area_struct;
struct page;

struct ibs_ring {
	struct crosstalk_ibs_ring *header;
	u32 records;
	unsigned int pages;
	u64 head;
	u64 lost;
	struct page *page[];
};

#define IBS_RECORDS_MIN 32U
#define IBS_RECORDS_MAX (1U << 20)

unsigned int ibs_ring_pages(u32 records);
/* Charged to the caller's memory control group. NULL: no memory. */
struct ibs_ring *ibs_ring_create(u32 records);
void ibs_ring_destroy(struct ibs_ring *ring);
int ibs_ring_map(struct ibs_ring *ring, struct vm_area_struct *vma);
/* Not while the context is enabled. */
void ibs_ring_reset(struct ibs_ring *ring);

/* Room for the next record, or NULL, counted as lost. NMI context. */
struct crosstalk_ibs_sample *ibs_ring_reserve(struct ibs_ring *ring);
/* Publishes it; returns how many records are unread. NMI context. */
u32 ibs_ring_commit(struct ibs_ring *ring);

u32 ibs_ring_unread(const struct ibs_ring *ring);
/* Copies whole records; returns bytes or an errno. Faults. */
ssize_t ibs_ring_read(struct ibs_ring *ring, char __user *to, size_t bytes);

#endif
