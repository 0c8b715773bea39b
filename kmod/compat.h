/* SPDX-License-Identifier: GPL-2.0 */
/* Hides differences of names and types among kernels from 5.10 on. */
#ifndef CROSSTALK_IBS_COMPAT_H
#define CROSSTALK_IBS_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <asm/msr.h>
#include <asm/processor.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid/api.h>
#endif

static inline void ibs_vm_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
#endif
}

static inline void ibs_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = function;
#endif
}

static inline u64 ibs_rdmsr(u32 msr)
{
	u64 value;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	rdmsrq(msr, value);
#else
	rdmsrl(msr, value);
#endif
	return value;
}

static inline void ibs_wrmsr(u32 msr, u64 value)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	wrmsrq(msr, value);
#else
	wrmsrl(msr, value);
#endif
}

/* Returns 0, or an errno if the register cannot be written. */
static inline int ibs_wrmsr_safe(u32 msr, u64 value)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	return wrmsrq_safe(msr, value);
#else
	return wrmsrl_safe(msr, value);
#endif
}

static inline int ibs_rdmsr_safe(u32 msr, u64 *value)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	return rdmsrq_safe(msr, value);
#else
	return rdmsrl_safe(msr, value);
#endif
}

#endif
