/* SPDX-License-Identifier: GPL-2.0 */
/* Accounts for the memory of each user's rings; the bound is the module's parameter user_memory_kb. */
#ifndef CROSSTALK_IBS_ACCOUNT_H
#define CROSSTALK_IBS_ACCOUNT_H

#include <linux/uidgid.h>

/* -EDQUOT: the user would have more than the bound. */
int ibs_charge(kuid_t uid, unsigned int pages);
void ibs_uncharge(kuid_t uid, unsigned int pages);

#endif
