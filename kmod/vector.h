/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interrupt of IBS: an entry of the local APIC's extended vector table (EILVT), whose number is in IBS_CTL. If
 * firmware has not assigned one, the kernel's own perf gives up; this module assigns one.
 */
#ifndef CROSSTALK_IBS_VECTOR_H
#define CROSSTALK_IBS_VECTOR_H

/* Finds or assigns the entry. Process context, once; says in the log why it fails. */
int ibs_vector_init(void);
void ibs_vector_exit(void);
/* On the CPU itself: makes the entry an NMI; masks it. */
int ibs_vector_up(void);
void ibs_vector_down(void);

#endif
