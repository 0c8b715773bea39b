// SPDX-License-Identifier: GPL-2.0
#include "device.h"

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "context.h"
#include "ring.h"

static int ibs_open(struct inode *inode, struct file *file)
{
	struct ibs_context *ctx = ibs_context_open();

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	file->private_data = ctx;
	return stream_open(inode, file);
}

static int ibs_release(struct inode *inode, struct file *file)
{
	ibs_context_release(file->private_data);
	return 0;
}

static long ibs_ioctl_info(void __user *argument)
{
	return copy_to_user(argument, &ibs_info, sizeof(ibs_info)) ? -EFAULT : 0;
}

static long ibs_ioctl_setup(struct ibs_context *ctx, void __user *argument)
{
	struct crosstalk_ibs_setup setup;

	if (copy_from_user(&setup, argument, sizeof(setup)))
		return -EFAULT;
	return ibs_context_setup(ctx, &setup);
}

static long ibs_ioctl_follow(struct ibs_context *ctx, void __user *argument)
{
	struct crosstalk_ibs_follow follow;

	if (copy_from_user(&follow, argument, sizeof(follow)))
		return -EFAULT;
	return ibs_context_follow(ctx, &follow);
}

static long ibs_ioctl_period(struct ibs_context *ctx, void __user *argument)
{
	struct crosstalk_ibs_period period;

	if (copy_from_user(&period, argument, sizeof(period)))
		return -EFAULT;
	return ibs_context_set_period(ctx, &period);
}

static long ibs_ioctl_status(struct ibs_context *ctx, void __user *argument)
{
	struct crosstalk_ibs_status status;
	int err = ibs_context_status(ctx, &status);

	if (err)
		return err;
	return copy_to_user(argument, &status, sizeof(status)) ? -EFAULT : 0;
}

static long ibs_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct ibs_context *ctx = file->private_data;

	if (!ibs_context_is_ours(ctx))
		return -EPERM;
	switch (command) {
	case CROSSTALK_IBS_IOC_INFO:
		return ibs_ioctl_info((void __user *)argument);
	case CROSSTALK_IBS_IOC_SETUP:
		return ibs_ioctl_setup(ctx, (void __user *)argument);
	case CROSSTALK_IBS_IOC_FOLLOW:
		return ibs_ioctl_follow(ctx, (void __user *)argument);
	case CROSSTALK_IBS_IOC_PERIOD:
		return ibs_ioctl_period(ctx, (void __user *)argument);
	case CROSSTALK_IBS_IOC_STATUS:
		return ibs_ioctl_status(ctx, (void __user *)argument);
	case CROSSTALK_IBS_IOC_ENABLE:
		return argument ? -EINVAL : ibs_context_enable(ctx);
	case CROSSTALK_IBS_IOC_DISABLE:
		return argument ? -EINVAL : ibs_context_disable(ctx);
	case CROSSTALK_IBS_IOC_RESET:
		return argument ? -EINVAL : ibs_context_reset(ctx);
	}
	return -ENOTTY;
}

static int ibs_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ibs_context *ctx = file->private_data;
	struct ibs_ring *ring;

	if (!ibs_context_is_ours(ctx))
		return -EPERM;
	ring = ibs_context_ring(ctx);
	return ring ? ibs_ring_map(ring, vma) : -ENXIO;
}

static bool ibs_is_readable(struct ibs_context *ctx, const struct ibs_ring *ring)
{
	return ibs_ring_unread(ring) >= ctx->watermark || ibs_context_has_ended(ctx);
}

/* The end of a thread whose context is disabled wakes nobody (perf has no call for it), so this looks once a second. */
static int ibs_wait(struct ibs_context *ctx, const struct ibs_ring *ring)
{
	long left;

	do {
		left = wait_event_interruptible_timeout(ctx->wait, ibs_is_readable(ctx, ring), HZ);
	} while (!left);
	return left < 0 ? left : 0;
}

/* One attempt: returns bytes; 0: no more will come; -EAGAIN: more may come. */
static ssize_t ibs_read_records(struct ibs_context *ctx, struct ibs_ring *ring, char __user *to, size_t bytes)
{
	bool ended = ibs_context_has_ended(ctx);
	ssize_t count;

	if (mutex_lock_interruptible(&ctx->read_lock))
		return -ERESTARTSYS;
	count = ibs_ring_read(ring, to, bytes);
	mutex_unlock(&ctx->read_lock);
	return count || ended ? count : -EAGAIN;
}

/* A reader sleeps without a lock; if two wake for the same records, one sleeps again. */
static ssize_t ibs_read(struct file *file, char __user *to, size_t bytes, loff_t *position)
{
	struct ibs_context *ctx = file->private_data;
	const bool wait = !(file->f_flags & O_NONBLOCK);
	struct ibs_ring *ring;
	ssize_t count;

	if (!ibs_context_is_ours(ctx))
		return -EPERM;
	ring = ibs_context_ring(ctx);
	if (!ring)
		return -ENXIO;
	if (bytes < sizeof(struct crosstalk_ibs_sample))
		return -EINVAL;
	do {
		if (wait && ibs_wait(ctx, ring))
			return -ERESTARTSYS;
		count = ibs_read_records(ctx, ring, to, bytes);
	} while (wait && count == -EAGAIN);
	return count;
}

static __poll_t ibs_poll(struct file *file, poll_table *table)
{
	struct ibs_context *ctx = file->private_data;
	struct ibs_ring *ring;
	__poll_t mask = 0;

	if (!ibs_context_is_ours(ctx))
		return EPOLLERR;
	poll_wait(file, &ctx->wait, table);
	ring = ibs_context_ring(ctx);
	if (!ring)
		return EPOLLERR;
	if (ibs_context_has_ended(ctx))
		mask |= EPOLLHUP;
	if (ibs_ring_unread(ring) >= ctx->watermark || (mask && ibs_ring_unread(ring)))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

static const struct file_operations ibs_file_operations = {
	.owner = THIS_MODULE,
	.open = ibs_open,
	.release = ibs_release,
	.unlocked_ioctl = ibs_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = ibs_mmap,
	.read = ibs_read,
	.poll = ibs_poll,
};

/* For root alone; the udev rule gives it to a group. */
static struct miscdevice ibs_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "crosstalk_ibs",
	.fops = &ibs_file_operations,
	.mode = 0600,
};

int ibs_device_init(void)
{
	return misc_register(&ibs_device);
}

void ibs_device_exit(void)
{
	misc_deregister(&ibs_device);
}
