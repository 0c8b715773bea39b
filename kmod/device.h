/* SPDX-License-Identifier: GPL-2.0 */
/* /dev/crosstalk_ibs: the file operations. */
#ifndef CROSSTALK_IBS_DEVICE_H
#define CROSSTALK_IBS_DEVICE_H

int ibs_device_init(void);
void ibs_device_exit(void);

#endif
