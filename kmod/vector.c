// SPDX-License-Identifier: GPL-2.0
#include "vector.h"

#include <linux/kernel.h>
#include <linux/pci.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/processor.h>

#include "compat.h"
#include "registers.h"

/* The northbridge's copy of IBS_CTL: BIOS and Kernel Developer's Guides of families 10h (31116) to 16h, F3x1CC. */
#define IBS_NORTHBRIDGE_CTL 0x1cc
#define IBS_NORTHBRIDGE_FIRST 0x18 /* the device number of node 0 */
#define IBS_NORTHBRIDGE_NODES 8
#define IBS_NORTHBRIDGE_FUNCTION 3

/* Delivery modes of the APIC, which have had three sets of names since 5.10. */
#define IBS_DELIVER_FIXED 0
#define IBS_DELIVER_NMI 4

static int ibs_vector_offset = -1;
/* Assigned by this module: each CPU's IBS_CTL may have to be written. */
static bool ibs_vector_is_ours;

/* The entry that this CPU's IBS_CTL names, or -ENOENT. */
static int ibs_named_offset(void)
{
	u64 control;

	if (ibs_rdmsr_safe(IBS_MSR_CTL, &control) || !(control & IBS_CTL_LVT_VALID))
		return -ENOENT;
	return control & IBS_CTL_LVT_OFFSET;
}

/* Reserves an entry among all users of the table; fails if another user has it. */
static bool ibs_reserve(int offset)
{
	bool reserved;

	preempt_disable();
	reserved = !setup_APIC_eilvt(offset, 0, IBS_DELIVER_NMI, 1);
	preempt_enable();
	return reserved;
}

static void ibs_give_back(int offset)
{
	preempt_disable();
	setup_APIC_eilvt(offset, 0, IBS_DELIVER_FIXED, 1);
	preempt_enable();
}

/* 0 is left for last: firmware and the kernel give it and 1 to other users first. */
static int ibs_reserve_free(void)
{
	static const int order[] = { 2, 3, 1, 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		if (ibs_reserve(order[i]))
			return order[i];
	}
	return -EBUSY;
}

static bool ibs_write_node(struct pci_dev *northbridge, u32 value)
{
	u32 found = 0;

	if (northbridge->vendor != PCI_VENDOR_ID_AMD)
		return false;
	pci_write_config_dword(northbridge, IBS_NORTHBRIDGE_CTL, value);
	pci_read_config_dword(northbridge, IBS_NORTHBRIDGE_CTL, &found);
	return found == value;
}

/* Families 10h to 16h: IBS_CTL is read-only and shows a register of each node's northbridge. */
static bool ibs_assign_by_northbridge(int offset)
{
	unsigned int node, written = 0;

	for (node = 0; node < IBS_NORTHBRIDGE_NODES; node++) {
		const unsigned int devfn = PCI_DEVFN(IBS_NORTHBRIDGE_FIRST + node, IBS_NORTHBRIDGE_FUNCTION);
		struct pci_dev *northbridge = pci_get_domain_bus_and_slot(0, 0, devfn);

		if (!northbridge)
			continue;
		if (ibs_write_node(northbridge, offset | IBS_CTL_LVT_VALID))
			written++;
		pci_dev_put(northbridge);
	}
	return written;
}

/* Later families: writes the register itself, if the hardware allows it; the value read back decides. */
static bool ibs_assign_by_register(int offset)
{
	return !ibs_wrmsr_safe(IBS_MSR_CTL, offset | IBS_CTL_LVT_VALID) && ibs_named_offset() == offset;
}

static bool ibs_assign(int offset)
{
	if (boot_cpu_data.x86 < 0x17)
		return ibs_assign_by_northbridge(offset) && ibs_named_offset() == offset;
	return ibs_assign_by_register(offset);
}

int ibs_vector_init(void)
{
	int offset = ibs_named_offset();

	if (offset >= 0 && ibs_reserve(offset)) {
		ibs_vector_offset = offset;
		return 0;
	}
	offset = ibs_reserve_free();
	if (offset < 0) {
		pr_err("no free entry in the APIC's extended interrupt vector table\n");
		return offset;
	}
	if (!ibs_assign(offset)) {
		ibs_give_back(offset);
		pr_err("firmware has assigned no interrupt to IBS (IBS_CTL), and it cannot be assigned here\n");
		return -ENODEV;
	}
	pr_info("interrupt vector entry %d assigned, which firmware had left out\n", offset);
	ibs_vector_offset = offset;
	ibs_vector_is_ours = true;
	return 0;
}

void ibs_vector_exit(void)
{
	ibs_give_back(ibs_vector_offset);
}

int ibs_vector_up(void)
{
	if (ibs_named_offset() != ibs_vector_offset && !(ibs_vector_is_ours && ibs_assign(ibs_vector_offset)))
		return -ENODEV;
	return setup_APIC_eilvt(ibs_vector_offset, 0, IBS_DELIVER_NMI, 0);
}

void ibs_vector_down(void)
{
	setup_APIC_eilvt(ibs_vector_offset, 0, IBS_DELIVER_NMI, 1);
}
