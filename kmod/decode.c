// SPDX-License-Identifier: GPL-2.0
#include "decode.h"

#include <linux/bits.h>
#include <linux/ptrace.h>
#include <asm/msr-index.h>

#include "compat.h"

struct ibs_insn {
	const u8 *code;
	unsigned int size;
	unsigned int at; /* of the next byte */
	bool truncated;
	bool operand16;
	bool address32;
	bool lock;
	u8 repeat;  /* 0xf2, 0xf3 or 0 */
	u8 segment; /* 0x64 (FS), 0x65 (GS) or 0 */
	u8 rex;
	u8 modrm;
};

/* An opcode's use of its memory operand. */
struct ibs_use {
	u8 width; /* 0: none, or unknown */
	bool load;
	bool store;
	bool locked;
	u8 immediate; /* bytes behind the operand: where RIP-relative addresses are counted from */
};

static u8 ibs_next(struct ibs_insn *insn)
{
	if (insn->at < insn->size)
		return insn->code[insn->at++];
	insn->truncated = true;
	return 0;
}

static s32 ibs_next_s32(struct ibs_insn *insn)
{
	u32 value = ibs_next(insn);

	value |= (u32)ibs_next(insn) << 8;
	value |= (u32)ibs_next(insn) << 16;
	value |= (u32)ibs_next(insn) << 24;
	return value;
}

/* Prefixes in any order, REX last. Returns the first byte of the opcode. */
static u8 ibs_prefixes(struct ibs_insn *insn)
{
	for (;;) {
		u8 byte = ibs_next(insn);

		switch (byte) {
		case 0x66:
			insn->operand16 = true;
			break;
		case 0x67:
			insn->address32 = true;
			break;
		case 0xf0:
			insn->lock = true;
			break;
		case 0xf2:
		case 0xf3:
			insn->repeat = byte;
			break;
		case 0x64:
		case 0x65:
			insn->segment = byte;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			break;
		default:
			if ((byte & 0xf0) != 0x40)
				return byte;
			insn->rex = byte;
			return ibs_next(insn);
		}
	}
}

static u8 ibs_operand_width(const struct ibs_insn *insn)
{
	if (insn->rex & 8)
		return 8;
	return insn->operand16 ? 2 : 4;
}

static u64 ibs_register(const struct pt_regs *regs, unsigned int number)
{
	const unsigned long value[16] = {
		regs->ax, regs->cx, regs->dx,  regs->bx,  regs->sp,  regs->bp,	regs->si,  regs->di,
		regs->r8, regs->r9, regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15,
	};

	return value[number & 15];
}

static u64 ibs_sib(struct ibs_insn *insn, const struct pt_regs *regs)
{
	u8 sib = ibs_next(insn);
	unsigned int index = ((sib >> 3) & 7) | ((insn->rex & 2) << 2);
	unsigned int base = (sib & 7) | ((insn->rex & 1) << 3);
	u64 address = 0;

	if (index != 4)
		address = ibs_register(regs, index) << (sib >> 6);
	if ((sib & 7) == 5 && insn->modrm >> 6 == 0)
		return address + ibs_next_s32(insn);
	return address + ibs_register(regs, base);
}

/* The segment's base is added; `immediate` bytes follow the operand. */
static u64 ibs_address(struct ibs_insn *insn, const struct pt_regs *regs, u8 immediate)
{
	unsigned int mod = insn->modrm >> 6;
	unsigned int rm = insn->modrm & 7;
	u64 address;

	if (rm == 4)
		address = ibs_sib(insn, regs);
	else if (rm == 5 && mod == 0) {
		address = ibs_next_s32(insn);
		address += regs->ip + insn->at + immediate;
	} else
		address = ibs_register(regs, rm | ((insn->rex & 1) << 3));
	if (mod == 1)
		address += (s8)ibs_next(insn);
	else if (mod == 2)
		address += ibs_next_s32(insn);
	if (insn->address32)
		address = (u32)address;
	if (insn->segment == 0x64)
		address += ibs_rdmsr(MSR_FS_BASE);
	else if (insn->segment == 0x65)
		address += ibs_rdmsr(MSR_KERNEL_GS_BASE); /* the user's, while the kernel runs */
	return address;
}

static struct ibs_use ibs_loads(u8 width)
{
	return (struct ibs_use){ .width = width, .load = true };
}

static struct ibs_use ibs_stores(u8 width)
{
	return (struct ibs_use){ .width = width, .store = true };
}

static struct ibs_use ibs_modifies(u8 width)
{
	return (struct ibs_use){ .width = width, .load = true, .store = true };
}

static struct ibs_use ibs_with_immediate(struct ibs_use use, u8 bytes)
{
	use.immediate = bytes;
	return use;
}

/* Opcodes 0x00-0x3f: eight operations in the same pattern; 0x38 compares and stores nothing. */
static struct ibs_use ibs_arithmetic(u8 opcode, u8 width)
{
	if ((opcode & 7) > 3)
		return (struct ibs_use){};
	if ((opcode & 2) || (opcode & 0x38) == 0x38)
		return ibs_loads(width);
	return ibs_modifies(width);
}

/* Groups, in which three bits of ModRM tell the operation. */
static struct ibs_use ibs_group(u8 opcode, unsigned int operation, u8 width)
{
	const u8 immediate = width == 2 ? 2 : 4;

	switch (opcode) {
	case 0x80:
	case 0x83:
		return ibs_with_immediate(operation == 7 ? ibs_loads(width) : ibs_modifies(width), 1);
	case 0x81:
		return ibs_with_immediate(operation == 7 ? ibs_loads(width) : ibs_modifies(width), immediate);
	case 0xf6:
	case 0xf7:
		if (operation < 2)
			return ibs_with_immediate(ibs_loads(width), opcode == 0xf6 ? 1 : immediate);
		return operation < 4 ? ibs_modifies(width) : ibs_loads(width);
	case 0xfe:
	case 0xff:
		if (operation < 2)
			return ibs_modifies(width);
		if (operation == 2 || operation == 4 || operation == 6)
			return ibs_loads(8);
		return (struct ibs_use){};
	}
	return (struct ibs_use){};
}

static struct ibs_use ibs_one_byte(u8 opcode, const struct ibs_insn *insn)
{
	const u8 operand = ibs_operand_width(insn);
	const u8 width = opcode & 1 ? operand : 1;
	struct ibs_use use;

	if (opcode < 0x40)
		return ibs_arithmetic(opcode, width);
	switch (opcode) {
	case 0x63:
		return ibs_loads(4);
	case 0x69:
		return ibs_with_immediate(ibs_loads(operand), operand == 2 ? 2 : 4);
	case 0x6b:
		return ibs_with_immediate(ibs_loads(operand), 1);
	case 0x84:
	case 0x85:
		return ibs_loads(width);
	case 0x86:
	case 0x87:
		use = ibs_modifies(width);
		use.locked = true; /* an exchange with memory is locked without a prefix */
		return use;
	case 0x88:
	case 0x89:
		return ibs_stores(width);
	case 0x8a:
	case 0x8b:
		return ibs_loads(width);
	case 0xc0:
	case 0xc1:
		return ibs_with_immediate(ibs_modifies(width), 1);
	case 0xc6:
		return ibs_with_immediate(ibs_stores(1), 1);
	case 0xc7:
		return ibs_with_immediate(ibs_stores(operand), operand == 2 ? 2 : 4);
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return ibs_modifies(width);
	case 0x83:
		return ibs_group(opcode, (insn->modrm >> 3) & 7, operand);
	case 0x80:
	case 0x81:
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff:
		return ibs_group(opcode, (insn->modrm >> 3) & 7, width);
	}
	return (struct ibs_use){};
}

static u8 ibs_vector_width(const struct ibs_insn *insn)
{
	if (insn->repeat == 0xf3)
		return 4;
	return insn->repeat == 0xf2 ? 8 : 16;
}

/* Moves and arithmetic of SSE. */
static struct ibs_use ibs_two_bytes_sse(u8 opcode, const struct ibs_insn *insn)
{
	switch (opcode) {
	case 0x10:
	case 0x51:
	case 0x58:
	case 0x59:
	case 0x5c:
	case 0x5d:
	case 0x5e:
	case 0x5f:
		return ibs_loads(ibs_vector_width(insn));
	case 0x11:
		return ibs_stores(ibs_vector_width(insn));
	case 0x28:
	case 0x6f:
		return ibs_loads(16);
	case 0x29:
	case 0x7f:
		return ibs_stores(16);
	case 0x6e:
		return ibs_loads(insn->rex & 8 ? 8 : 4);
	case 0x7e:
		if (insn->repeat == 0xf3)
			return ibs_loads(8);
		return ibs_stores(insn->rex & 8 ? 8 : 4);
	case 0xd6:
		return ibs_stores(8);
	}
	return (struct ibs_use){};
}

static struct ibs_use ibs_two_bytes(u8 opcode, const struct ibs_insn *insn)
{
	const u8 operand = ibs_operand_width(insn);
	const u8 width = opcode & 1 ? operand : 1;

	if ((opcode & 0xf0) == 0x40) /* conditional moves load in any case */
		return ibs_loads(operand);
	if ((opcode & 0xf0) == 0x90)
		return ibs_stores(1);
	switch (opcode) {
	case 0xaf:
		return ibs_loads(operand);
	case 0xb0:
	case 0xb1:
	case 0xc0:
	case 0xc1:
		return ibs_modifies(width);
	case 0xb6:
	case 0xbe:
		return ibs_loads(1);
	case 0xb7:
	case 0xbf:
		return ibs_loads(2);
	case 0xc3:
		return ibs_stores(operand);
	case 0xc7:
		if (((insn->modrm >> 3) & 7) == 1)
			return ibs_modifies(insn->rex & 8 ? 16 : 8);
		return (struct ibs_use){};
	}
	return ibs_two_bytes_sse(opcode, insn);
}

/* Instructions whose operand is the stack. */
static bool ibs_decode_stack(u8 opcode, const struct pt_regs *regs, struct ibs_access *access)
{
	const bool push = (opcode & 0xf8) == 0x50 || opcode == 0xe8 || opcode == 0x68 || opcode == 0x6a;
	const bool pop = (opcode & 0xf8) == 0x58 || opcode == 0xc3 || opcode == 0xc9;

	if (!push && !pop)
		return false;
	access->width = 8;
	access->store = push;
	access->load = pop;
	access->address = push ? regs->sp - 8 : regs->sp;
	if (opcode == 0xc9) /* LEAVE: from the frame pointer */
		access->address = regs->bp;
	return true;
}

bool ibs_decode(const u8 *code, unsigned int size, const struct pt_regs *regs, struct ibs_access *access)
{
	struct ibs_insn insn = { .code = code, .size = size };
	struct ibs_use use;
	u8 opcode = ibs_prefixes(&insn);
	bool two_bytes = opcode == 0x0f;

	memset(access, 0, sizeof(*access));
	if (!two_bytes && ibs_decode_stack(opcode, regs, access))
		return !insn.truncated;
	if (two_bytes)
		opcode = ibs_next(&insn);
	insn.modrm = ibs_next(&insn);
	use = two_bytes ? ibs_two_bytes(opcode, &insn) : ibs_one_byte(opcode, &insn);
	if (!use.width || insn.modrm >> 6 == 3)
		return false;
	access->address = ibs_address(&insn, regs, use.immediate);
	access->width = use.width;
	access->load = use.load;
	access->store = use.store;
	access->locked = use.locked || insn.lock;
	return !insn.truncated;
}
