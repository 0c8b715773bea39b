/* SPDX-License-Identifier: GPL-2.0 */
/* Waking readers and signalling the thread, outside of NMI context. */
#ifndef CROSSTALK_IBS_NOTIFY_H
#define CROSSTALK_IBS_NOTIFY_H

struct irq_work;

/* The function of a context's irq_work. */
void ibs_notify(struct irq_work *work);

#endif
