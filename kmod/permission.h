/* SPDX-License-Identifier: GPL-2.0 */
/* Decides what a caller may sample, by capabilities and the administrator's perf_event_paranoid. */
#ifndef CROSSTALK_IBS_PERMISSION_H
#define CROSSTALK_IBS_PERMISSION_H

#include <linux/types.h>

int ibs_permission_init(void);
void ibs_permission_exit(void);
/* Returns 0, -EACCES or -EPERM for a SETUP with these flags by the caller. */
int ibs_permission(u32 flags);

#endif
