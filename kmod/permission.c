// SPDX-License-Identifier: GPL-2.0
#include "permission.h"

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/magic.h>
#include <linux/security.h>

#include "crosstalk_ibs.h"

#define IBS_PARANOID_FILE "/proc/sys/kernel/perf_event_paranoid"
/* For a level that cannot be read: nothing is allowed. */
#define IBS_PARANOID_UNKNOWN 4

/*
 * The variable behind the sysctl is not exported to modules. Its file is opened once, by the administrator who loads the
 * module, and checked to be procfs: a user could mount something else at that path in a mount namespace of his own.
 */
static struct file *ibs_paranoid_file;

int ibs_permission_init(void)
{
	struct file *file = filp_open(IBS_PARANOID_FILE, O_RDONLY, 0);

	if (IS_ERR(file)) {
		pr_err("cannot open %s (error %ld): mount /proc first\n", IBS_PARANOID_FILE, PTR_ERR(file));
		return PTR_ERR(file);
	}
	if (file_inode(file)->i_sb->s_magic != PROC_SUPER_MAGIC) {
		pr_err("%s is not the kernel's own\n", IBS_PARANOID_FILE);
		fput(file);
		return -EINVAL;
	}
	ibs_paranoid_file = file;
	return 0;
}

void ibs_permission_exit(void)
{
	fput(ibs_paranoid_file);
}

static int ibs_paranoid_level(void)
{
	char text[16] = "";
	loff_t position = 0;
	ssize_t length = kernel_read(ibs_paranoid_file, text, sizeof(text) - 1, &position);
	int level;

	if (length <= 0 || kstrtoint(strim(text), 10, &level))
		return IBS_PARANOID_UNKNOWN;
	return level;
}

int ibs_permission(u32 flags)
{
	int level = ibs_paranoid_level();

	/* Debian's and Android's meaning of 3: nobody but the administrator. Other kernels give 3 no meaning of its own. */
	if (level > 2 && !capable(CAP_SYS_ADMIN))
		return -EACCES;
	if ((flags & CROSSTALK_IBS_KERNEL) && level > 1 && !perfmon_capable())
		return -EACCES;
	if ((flags & CROSSTALK_IBS_PHYSICAL) && !perfmon_capable())
		return -EPERM;
	/* Lockdown keeps kernel addresses and physical ones even from root. */
	if (flags & (CROSSTALK_IBS_KERNEL | CROSSTALK_IBS_PHYSICAL))
		return security_locked_down(LOCKDOWN_PERF);
	return 0;
}
