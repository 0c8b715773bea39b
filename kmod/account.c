// SPDX-License-Identifier: GPL-2.0
#include "account.h"

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>

struct ibs_user {
	struct list_head list;
	kuid_t uid;
	unsigned long pages; /* never 0 */
};

static unsigned int user_memory_kb = 64 * 1024;
module_param(user_memory_kb, uint, 0644);
MODULE_PARM_DESC(user_memory_kb, "memory that all rings of one user may take, in KiB (default 65536)");

static LIST_HEAD(ibs_users);
static DEFINE_MUTEX(ibs_users_lock);

static struct ibs_user *ibs_find_user(kuid_t uid)
{
	struct ibs_user *user;

	list_for_each_entry(user, &ibs_users, list) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

static int ibs_charge_locked(kuid_t uid, unsigned int pages)
{
	unsigned long limit = user_memory_kb / (PAGE_SIZE / 1024);
	struct ibs_user *user = ibs_find_user(uid);

	if ((user ? user->pages : 0) + pages > limit)
		return -EDQUOT;
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		list_add(&user->list, &ibs_users);
	}
	user->pages += pages;
	return 0;
}

int ibs_charge(kuid_t uid, unsigned int pages)
{
	int err;

	mutex_lock(&ibs_users_lock);
	err = ibs_charge_locked(uid, pages);
	mutex_unlock(&ibs_users_lock);
	return err;
}

void ibs_uncharge(kuid_t uid, unsigned int pages)
{
	struct ibs_user *user;

	mutex_lock(&ibs_users_lock);
	user = ibs_find_user(uid);
	user->pages -= pages;
	if (!user->pages) {
		list_del(&user->list);
		kfree(user);
	}
	mutex_unlock(&ibs_users_lock);
}
