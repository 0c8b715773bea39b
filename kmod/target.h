/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds the thread that a context may sample besides its opener: one of a process whose memory the caller holds, opened
 * by the kernel's own check.
 */
#ifndef CROSSTALK_IBS_TARGET_H
#define CROSSTALK_IBS_TARGET_H

#include "crosstalk_ibs.h"

struct mm_struct;
struct task_struct;

int ibs_target_init(void);
void ibs_target_exit(void);

/*
 * The thread that `follow` names, in the caller's PID namespace, and its address space, with a reference on each (`mm`: on the
 * structure). Errors: -EBADF, -EINVAL, -ESRCH, -EPERM.
 */
int ibs_target_find(const struct crosstalk_ibs_follow *follow, struct task_struct **task, struct mm_struct **mm);

#endif
