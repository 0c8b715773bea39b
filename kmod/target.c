// SPDX-License-Identifier: GPL-2.0
#include "target.h"

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "hardware.h"

#define IBS_OWN_MEMORY "/proc/self/mem"

/*
 * The kernel does not export its check that one process may look into another (ptrace_may_access). Opening
 * /proc/PID/mem makes the same check, for attaching, security modules included. It grants an open file, whose private
 * data is the granted mm_struct. Files of that kind are known by their operations, learned from one of our
 * own when the module is loaded. The pointer is compared, never followed: a kernel that kept something else there would
 * have every request refused.
 */
static const struct file_operations *ibs_memory_operations;

int ibs_target_init(void)
{
	struct file *file = filp_open(IBS_OWN_MEMORY, O_RDONLY, 0);

	if (IS_ERR(file)) {
		pr_info("cannot open %s (error %ld): threads of other processes cannot be sampled\n", IBS_OWN_MEMORY,
			PTR_ERR(file));
		return 0;
	}
	if (file_inode(file)->i_sb->s_magic == PROC_SUPER_MAGIC && file->private_data == current->mm && current->mm) {
		ibs_memory_operations = file->f_op;
		ibs_info.features |= CROSSTALK_IBS_HAS_FOLLOW;
	}
	fput(file);
	return 0;
}

void ibs_target_exit(void)
{
}

/* The address space that the file was opened on: for comparing, as long as the file is held. */
static const void *ibs_memory_of(const struct file *file)
{
	return ibs_memory_operations && file->f_op == ibs_memory_operations ? file->private_data : NULL;
}

static struct task_struct *ibs_thread_of(pid_t tid)
{
	struct task_struct *task;

	rcu_read_lock();
	task = get_pid_task(find_vpid(tid), PIDTYPE_PID);
	rcu_read_unlock();
	return task;
}

/* A kernel thread that works for a process has its mm_struct, too, for a while. */
static struct mm_struct *ibs_grab_memory(struct task_struct *task, const void *granted)
{
	struct mm_struct *mm = NULL;

	task_lock(task);
	if (task->mm && task->mm == granted && !(task->flags & PF_KTHREAD)) {
		mm = task->mm;
		mmgrab(mm);
	}
	task_unlock(task);
	return mm;
}

static int ibs_target_in(const struct file *file, pid_t tid, struct task_struct **task, struct mm_struct **mm)
{
	const void *granted = ibs_memory_of(file);
	int err;

	if (!granted)
		return -EINVAL;
	*task = ibs_thread_of(tid);
	if (!*task)
		return -ESRCH;
	*mm = ibs_grab_memory(*task, granted);
	if (*mm)
		return 0;
	/* One that has ended has no memory any more, and stays there until somebody waits for it. */
	err = READ_ONCE((*task)->flags) & PF_EXITING ? -ESRCH : -EPERM;
	put_task_struct(*task);
	return err;
}

int ibs_target_find(const struct crosstalk_ibs_follow *follow, struct task_struct **task, struct mm_struct **mm)
{
	struct file *file;
	int err;

	if (follow->size != sizeof(*follow) || follow->tid <= 0 || follow->reserved0 || follow->reserved1)
		return -EINVAL;
	file = fget(follow->memory);
	if (!file)
		return -EBADF;
	err = ibs_target_in(file, follow->tid, task, mm);
	fput(file);
	return err;
}
