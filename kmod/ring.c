// SPDX-License-Identifier: GPL-2.0
#include "ring.h"

#include <linux/build_bug.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"

static_assert(sizeof(struct crosstalk_ibs_sample) == 128);
static_assert(sizeof(struct crosstalk_ibs_ring) == 192);
static_assert(offsetof(struct crosstalk_ibs_ring, head) == 64);
static_assert(offsetof(struct crosstalk_ibs_ring, tail) == 128);
static_assert(sizeof(struct crosstalk_ibs_setup) == 88);
static_assert(sizeof(struct crosstalk_ibs_info) == 80);
static_assert(sizeof(struct crosstalk_ibs_status) == 104);
static_assert(sizeof(struct crosstalk_ibs_follow) == 24);
static_assert(sizeof(struct crosstalk_ibs_period) == 16);

unsigned int ibs_ring_pages(u32 records)
{
	return 1 + DIV_ROUND_UP((size_t)records * sizeof(struct crosstalk_ibs_sample), PAGE_SIZE);
}

static void ibs_ring_free_pages(struct ibs_ring *ring)
{
	unsigned int i;

	for (i = 0; i < ring->pages; i++)
		__free_page(ring->page[i]);
}

static void ibs_ring_write_header(struct ibs_ring *ring)
{
	struct crosstalk_ibs_ring *header = ring->header;

	memset(header, 0, sizeof(*header));
	header->version = CROSSTALK_IBS_VERSION;
	header->record_size = sizeof(struct crosstalk_ibs_sample);
	header->records = ring->records;
	header->data_offset = PAGE_SIZE;
}

struct ibs_ring *ibs_ring_create(u32 records)
{
	unsigned int pages = ibs_ring_pages(records);
	struct ibs_ring *ring = kvzalloc(struct_size(ring, page, pages), GFP_KERNEL_ACCOUNT);

	if (!ring)
		return NULL;
	ring->records = records;
	for (; ring->pages < pages; ring->pages++) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);

		if (!page)
			goto no_memory;
		ring->page[ring->pages] = page;
	}
	/* Mapped at once, and never by a fault: NMI context writes here. */
	ring->header = vmap(ring->page, pages, VM_MAP, PAGE_KERNEL);
	if (!ring->header)
		goto no_memory;
	ibs_ring_write_header(ring);
	return ring;

no_memory:
	ibs_ring_free_pages(ring);
	kvfree(ring);
	return NULL;
}

void ibs_ring_destroy(struct ibs_ring *ring)
{
	if (!ring)
		return;
	vunmap(ring->header);
	ibs_ring_free_pages(ring);
	kvfree(ring);
}

int ibs_ring_map(struct ibs_ring *ring, struct vm_area_struct *vma)
{
	unsigned int i;
	int err;

	if (vma->vm_pgoff || vma_pages(vma) != ring->pages || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	/* A child of fork() has no right to the ring; nothing in it belongs in a core dump. */
	ibs_vm_flags(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	for (i = 0; i < ring->pages; i++) {
		err = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE, ring->page[i]);
		if (err)
			return err;
	}
	return 0;
}

void ibs_ring_reset(struct ibs_ring *ring)
{
	ring->head = 0;
	ring->lost = 0;
	ibs_ring_write_header(ring);
}

static u64 ibs_ring_tail(const struct ibs_ring *ring)
{
	/* Acquire: the consumer has read a record before it lets it be overwritten. */
	return smp_load_acquire(&ring->header->tail);
}

/* At most `records`, whatever the consumer wrote into tail. */
static u32 ibs_ring_used(const struct ibs_ring *ring, u64 head, u64 tail)
{
	return min_t(u64, head - tail, ring->records);
}

static struct crosstalk_ibs_sample *ibs_ring_record(const struct ibs_ring *ring, u64 index)
{
	struct crosstalk_ibs_sample *records = (void *)ring->header + PAGE_SIZE;

	return records + (index & (ring->records - 1));
}

struct crosstalk_ibs_sample *ibs_ring_reserve(struct ibs_ring *ring)
{
	if (ibs_ring_used(ring, ring->head, ibs_ring_tail(ring)) < ring->records)
		return ibs_ring_record(ring, ring->head);
	WRITE_ONCE(ring->header->lost, ++ring->lost);
	return NULL;
}

u32 ibs_ring_commit(struct ibs_ring *ring)
{
	u64 head = ring->head + 1;

	/* Release, as below: read() goes by this one. */
	smp_store_release(&ring->head, head);
	/* Release: the record is whole before the consumer can see it. */
	smp_store_release(&ring->header->head, head);
	return ibs_ring_used(ring, head, ibs_ring_tail(ring));
}

u32 ibs_ring_unread(const struct ibs_ring *ring)
{
	/* Reads the tail first: a tail that is read after the head may have passed it, which would look like a full ring. */
	u64 tail = ibs_ring_tail(ring);

	return ibs_ring_used(ring, READ_ONCE(ring->head), tail);
}

ssize_t ibs_ring_read(struct ibs_ring *ring, char __user *to, size_t bytes)
{
	const size_t size = sizeof(struct crosstalk_ibs_sample);
	u64 tail = ibs_ring_tail(ring);
	u64 head = smp_load_acquire(&ring->head);
	u32 unread = ibs_ring_used(ring, head, tail);
	u32 wanted = min_t(size_t, bytes / size, unread);
	u32 i;

	for (i = 0; i < wanted; i++) {
		if (copy_to_user(to + i * size, ibs_ring_record(ring, tail + i), size))
			break;
	}
	if (!i)
		return wanted ? -EFAULT : 0;
	smp_store_release(&ring->header->tail, tail + i);
	return i * size;
}
