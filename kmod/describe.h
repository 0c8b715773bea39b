/* SPDX-License-Identifier: GPL-2.0 */
/* Converts the data registers of a sample to struct crosstalk_ibs_sample. */
#ifndef CROSSTALK_IBS_DESCRIBE_H
#define CROSSTALK_IBS_DESCRIBE_H

struct crosstalk_ibs_sample;
struct ibs_config;
struct ibs_raw;

/* Fills in the fields that depend on the registers; leaves out those that the context may not see. NMI context. */
void ibs_describe(const struct ibs_config *config, const struct ibs_raw *raw, struct crosstalk_ibs_sample *sample);

#endif
