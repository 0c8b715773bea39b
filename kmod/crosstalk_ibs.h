/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * crosstalk_ibs.h - user-space interface of /dev/crosstalk_ibs, version 1.
 *
 * An open file is a sampling context of the thread that opened it, or of another one that FOLLOW names before SETUP. SETUP
 * says what to sample, once in a file's life; ENABLE and DISABLE switch it. The context follows the thread from CPU to
 * CPU, counts only while the thread runs, and ends when the thread ends, when it executes another program, or when the
 * last descriptor and the last mapping of the file are gone.
 *
 * To FOLLOW a thread takes a descriptor of /proc/PID/mem of its process, which the kernel gives to callers that may attach
 * to it. The samples are those of that address space. No signal is sent then: SETUP with one is EINVAL.
 *
 * Only processes that share the opener's address space may use the file: after fork() the child gets EPERM from everything
 * but close(), and so does a process that the descriptor is sent to, and the program itself after execve().
 *
 * Samples are records of one size in a ring. Map the whole ring (offset 0, struct crosstalk_ibs_ring then tells the
 * rest), MAP_SHARED, readable and writable, and consume as follows:
 *
 *	head = load_acquire(&ring->head);
 *	while (tail != head)
 *		use(record(tail++ & (ring->records - 1)));
 *	store_release(&ring->tail, tail);
 *
 * or read() whole records. A full ring drops the newest sample and counts it. Use the mapping or read(), not both at once.
 * read() sleeps until watermark records are there; 0 is the end: nothing is left, and no sample will come. poll() then says
 * POLLHUP. While the context is disabled, the end of its thread wakes a read() within a second, and a poll() never.
 *
 * errno of every call:
 *	EPERM		not the opener's address space; a flag whose capability the caller lacks; the memory is not that of
 *			the thread
 *	EBADF		FOLLOW: not an open descriptor
 *	EACCES		perf_event_paranoid does not allow it
 *	EFAULT		a bad pointer
 *	EINVAL		a malformed argument: size, version, unknown flag or flavour, reserved field, signal number, mapping
 *	ERANGE		a number outside the bounds that INFO gives
 *	EOPNOTSUPP	this processor has no such filter, flavour or count control
 *	EBUSY		SETUP or FOLLOW for the second time, FOLLOW after SETUP; the thread has a context of this flavour; RESET while enabled
 *	ENXIO		SETUP has not been done
 *	ESRCH		the thread has ended, has executed another program, or is not there
 *	EDQUOT		the user's rings would take more than the administrator allows
 *	ENOMEM		no memory, or the control group's limit is reached
 *	ENOTTY		no such ioctl
 * A call that fails changes nothing.
 */
#ifndef CROSSTALK_IBS_H
#define CROSSTALK_IBS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define CROSSTALK_IBS_VERSION 1

/* The kinds of samples. A thread may have one context of each. */
#define CROSSTALK_IBS_OP 0    /* executed micro-operations: addresses, latencies, data sources */
#define CROSSTALK_IBS_FETCH 1 /* instruction fetches */

/* struct crosstalk_ibs_info.features */
#define CROSSTALK_IBS_HAS_OP (1U << 0)
#define CROSSTALK_IBS_HAS_FETCH (1U << 1)
#define CROSSTALK_IBS_HAS_COUNT_OPS (1U << 2)
#define CROSSTALK_IBS_HAS_L3_MISS (1U << 3)
#define CROSSTALK_IBS_HAS_LOAD_LATENCY (1U << 4)
#define CROSSTALK_IBS_HAS_BRANCH_TARGET (1U << 5)
#define CROSSTALK_IBS_HAS_FOLLOW (1U << 6) /* threads of other processes can be sampled */
/* No hardware: a timer samples, addresses come from decoding the interrupted instruction, periods are nanoseconds. */
#define CROSSTALK_IBS_EMULATED (1U << 31)

struct crosstalk_ibs_info {
	__u32 version;  /* CROSSTALK_IBS_VERSION of the module */
	__u32 features; /* CROSSTALK_IBS_HAS_*, CROSSTALK_IBS_EMULATED */
	/* Bounds of setup.period - setup.random and setup.period + setup.random: micro-operations or cycles. */
	__u64 op_period_min;
	__u64 op_period_max;
	__u64 fetch_period_min; /* completed fetches */
	__u64 fetch_period_max;
	__u32 load_latency_min; /* cycles; 0: there is no such filter */
	__u32 load_latency_max;
	__u32 records_min; /* bounds of setup.records */
	__u32 records_max;
	__u32 record_size;     /* sizeof(struct crosstalk_ibs_sample) */
	__u32 samples_per_cpu; /* a CPU that takes more samples a second than this is throttled */
	__u64 reserved[2];
};

struct crosstalk_ibs_follow {
	__u32 size;   /* sizeof(struct crosstalk_ibs_follow) */
	__s32 tid;    /* in the caller's PID namespace */
	__s32 memory; /* descriptor of /proc/PID/mem of its process */
	__u32 reserved0;
	__u64 reserved1;
};

/* For the intervals that begin from now on; bounds as in struct crosstalk_ibs_setup. */
struct crosstalk_ibs_period {
	__u64 period;
	__u64 random;
};

/* struct crosstalk_ibs_setup.flags */
#define CROSSTALK_IBS_COUNT_OPS (1U << 0)   /* a period is dispatched micro-operations, not cycles */
#define CROSSTALK_IBS_MEMORY_ONLY (1U << 1) /* keep samples with a valid data address only */
#define CROSSTALK_IBS_L3_MISS (1U << 2)     /* the hardware keeps L3 misses only */
#define CROSSTALK_IBS_KERNEL (1U << 3)      /* kernel mode as well: CAP_PERFMON or perf_event_paranoid < 2 */
#define CROSSTALK_IBS_PHYSICAL (1U << 4)    /* physical addresses: CAP_PERFMON */

struct crosstalk_ibs_setup {
	__u32 size;    /* sizeof(struct crosstalk_ibs_setup) */
	__u32 flavour; /* CROSSTALK_IBS_OP, CROSSTALK_IBS_FETCH */
	__u32 flags;
	__u32 signal; /* sent to the opening thread at samples; 0: none. Not SIGKILL, not SIGSTOP */
	__u64 period;
	__u64 random;       /* each interval is drawn from period - random .. period + random */
	__u32 load_latency; /* the hardware keeps loads of at least so many cycles; 0: no filter */
	__u32 records;      /* capacity of the ring, a power of two */
	__u32 watermark;    /* unread records that wake readers and send the signal; 0 is taken as 1 */
	__u32 reserved0;
	__u64 cookie; /* the signal's si_value */
	__u64 reserved[4];
};

/* struct crosstalk_ibs_status.state */
#define CROSSTALK_IBS_SET_UP (1U << 0)
#define CROSSTALK_IBS_ENABLED (1U << 1)
#define CROSSTALK_IBS_ENDED (1U << 2) /* the thread has ended or executed another program: no sample will come */

struct crosstalk_ibs_status {
	__u32 state;
	__u32 reserved0;
	__u64 samples;       /* written to the ring */
	__u64 filtered;      /* kernel mode, no data address, or taken while the thread was being switched */
	__u64 lost;          /* the ring was full */
	__u64 throttled;     /* interrupts in excess of samples_per_cpu */
	__u64 signals;       /* queued */
	__u64 signals_lost;  /* could not be queued (RLIMIT_SIGPENDING) */
	__u64 handler_ns;    /* spent in the interrupt handler */
	__u64 ring_bytes;    /* bytes to map */
	__u64 counted;       /* events in all intervals that have ended, also those without a sample */
	__u64 running_ns;    /* time that the thread ran while enabled; RESET leaves it */
	__u64 reserved[2];
};

#define CROSSTALK_IBS_MAGIC 0xB5
#define CROSSTALK_IBS_IOC_INFO _IOR(CROSSTALK_IBS_MAGIC, 0, struct crosstalk_ibs_info)
#define CROSSTALK_IBS_IOC_SETUP _IOW(CROSSTALK_IBS_MAGIC, 1, struct crosstalk_ibs_setup)
#define CROSSTALK_IBS_IOC_ENABLE _IO(CROSSTALK_IBS_MAGIC, 2)
#define CROSSTALK_IBS_IOC_DISABLE _IO(CROSSTALK_IBS_MAGIC, 3)
/* Empties the ring and zeroes the counts of STATUS. */
#define CROSSTALK_IBS_IOC_RESET _IO(CROSSTALK_IBS_MAGIC, 4)
#define CROSSTALK_IBS_IOC_STATUS _IOR(CROSSTALK_IBS_MAGIC, 5, struct crosstalk_ibs_status)
#define CROSSTALK_IBS_IOC_FOLLOW _IOW(CROSSTALK_IBS_MAGIC, 6, struct crosstalk_ibs_follow)
#define CROSSTALK_IBS_IOC_PERIOD _IOW(CROSSTALK_IBS_MAGIC, 7, struct crosstalk_ibs_period)

/*
 * The first page of the mapping. head and lost are written by the module, tail by the consumer; the rest never
 * changes. The module trusts nothing that it reads back: a wrong tail costs its owner samples, nothing else.
 */
struct crosstalk_ibs_ring {
	__u32 version;     /* CROSSTALK_IBS_VERSION */
	__u32 record_size; /* distance between records */
	__u32 records;     /* a power of two */
	__u32 data_offset; /* of the first record, from the start of the mapping */
	__u64 reserved0[6];
	__u64 head; /* records written since RESET; the next one goes to head & (records - 1) */
	__u64 lost;
	__u64 reserved1[6];
	__u64 tail; /* records consumed */
	__u64 reserved2[7];
};

/* struct crosstalk_ibs_sample.flags */
#define CROSSTALK_IBS_S_USER (1U << 0)
#define CROSSTALK_IBS_S_IP (1U << 1) /* ip is valid and exact */
#define CROSSTALK_IBS_S_LOAD (1U << 2)
#define CROSSTALK_IBS_S_STORE (1U << 3) /* with LOAD: a read-modify-write */
#define CROSSTALK_IBS_S_ADDRESS (1U << 4)
#define CROSSTALK_IBS_S_PHYSICAL (1U << 5)
#define CROSSTALK_IBS_S_LOCKED (1U << 6)
#define CROSSTALK_IBS_S_MISALIGNED (1U << 7)
#define CROSSTALK_IBS_S_PREFETCH (1U << 8)
#define CROSSTALK_IBS_S_L1_MISS (1U << 9)   /* the L1 data cache; FETCH: the instruction cache */
#define CROSSTALK_IBS_S_L2_MISS (1U << 10)
#define CROSSTALK_IBS_S_TLB_MISS (1U << 11) /* the first-level TLB */
#define CROSSTALK_IBS_S_REMOTE (1U << 12)   /* the data came from another node */
#define CROSSTALK_IBS_S_BRANCH (1U << 13)
#define CROSSTALK_IBS_S_TAKEN (1U << 14)
#define CROSSTALK_IBS_S_MISPREDICTED (1U << 15)
#define CROSSTALK_IBS_S_BRANCH_TARGET (1U << 16)
#define CROSSTALK_IBS_S_COMPLETE (1U << 17) /* FETCH: the fetch delivered bytes */
#define CROSSTALK_IBS_S_EMULATED (1U << 31)

struct crosstalk_ibs_sample {
	__u16 version; /* CROSSTALK_IBS_VERSION */
	__u16 size;    /* sizeof(struct crosstalk_ibs_sample) */
	__u32 flags;
	__u64 time; /* CLOCK_MONOTONIC, nanoseconds */
	__u64 tsc;
	__u32 pid; /* of the sampled thread, in the opener's PID namespace */
	__u32 tid;
	__u32 cpu;
	__u16 flavour;
	__u8 width;  /* bytes accessed; 0: unknown */
	__u8 source; /* data source as in IBS_OP_DATA2: bits 0-2 low part, 3-4 its extension */
	__u64 period; /* events since the previous interrupt, which this sample stands for */
	__u64 ip;
	__u64 address;  /* linear address of the data; FETCH: of the fetch */
	__u64 physical; /* 0 unless CROSSTALK_IBS_PHYSICAL was set up */
	__u64 branch_target;
	__u32 latency;     /* cycles of a load that missed the L1 data cache; FETCH: of the fetch */
	__u32 tlb_latency; /* cycles of the TLB refill */
	__u64 data[4];     /* as the hardware has them: IBS_OP_DATA 1-4; FETCH: fetch control, its extension, 0, 0 */
	__u64 reserved;
};

#endif /* CROSSTALK_IBS_H */
