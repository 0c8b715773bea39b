// SPDX-License-Identifier: GPL-2.0
/*
 * The memory access of the instruction at an instruction pointer. The kernel's decoder splits it
 * up and works out the address of its operand; what it does there, and with how many bytes, is in
 * the tables here. Instructions that are not in them are taken to have no access.
 */
#include <linux/mm.h>
#include <linux/uaccess.h>
#include <asm/insn.h>
#include <asm/segment.h>

#include "emulated_pmu.h"

#define LOAD 1
#define STORE 2
#define BOTH (LOAD | STORE)

/* Widths that are no number of bytes. */
#define OPERAND 0		/* 2, 4 or 8, as the prefixes say */
#define VECTOR 0xff		/* 4 or 8 for one element, 16 or 32 for a vector */
#define WHOLE 0xfe		/* 16 or 32 */
#define PAIR 0xfd		/* two operands of 4 or 8 */

struct meaning {
	u8 first, last;		/* opcodes */
	u8 registers;		/* bit N: where ModRM's middle field is N; 0: any */
	u8 does;
	u8 bytes;
};

/* Opcodes of one byte. Arithmetic (0x00 to 0x3b) and those on the stack are told apart in code. */
static const struct meaning one_byte[] = {
	{ 0x63, 0x63, 0, LOAD, 4 },		/* movslq */
	{ 0x69, 0x69, 0, LOAD, OPERAND },	/* imul */
	{ 0x6b, 0x6b, 0, LOAD, OPERAND },
	{ 0x80, 0x80, 0x7f, BOTH, 1 },		/* add ... xor with a constant */
	{ 0x80, 0x80, 0x80, LOAD, 1 },		/* cmp */
	{ 0x81, 0x83, 0x7f, BOTH, OPERAND },
	{ 0x81, 0x83, 0x80, LOAD, OPERAND },
	{ 0x84, 0x84, 0, LOAD, 1 },		/* test */
	{ 0x85, 0x85, 0, LOAD, OPERAND },
	{ 0x86, 0x86, 0, BOTH, 1 },		/* xchg */
	{ 0x87, 0x87, 0, BOTH, OPERAND },
	{ 0x88, 0x88, 0, STORE, 1 },		/* mov */
	{ 0x89, 0x89, 0, STORE, OPERAND },
	{ 0x8a, 0x8a, 0, LOAD, 1 },
	{ 0x8b, 0x8b, 0, LOAD, OPERAND },
	{ 0xc0, 0xc0, 0, BOTH, 1 },		/* shifts */
	{ 0xc1, 0xc1, 0, BOTH, OPERAND },
	{ 0xc6, 0xc6, 0x01, STORE, 1 },		/* mov of a constant */
	{ 0xc7, 0xc7, 0x01, STORE, OPERAND },
	{ 0xd0, 0xd0, 0, BOTH, 1 },
	{ 0xd1, 0xd1, 0, BOTH, OPERAND },
	{ 0xd2, 0xd2, 0, BOTH, 1 },
	{ 0xd3, 0xd3, 0, BOTH, OPERAND },
	{ 0xf6, 0xf6, 0xf3, LOAD, 1 },		/* test, mul, div */
	{ 0xf6, 0xf6, 0x0c, BOTH, 1 },		/* not, neg */
	{ 0xf7, 0xf7, 0xf3, LOAD, OPERAND },
	{ 0xf7, 0xf7, 0x0c, BOTH, OPERAND },
	{ 0xfe, 0xfe, 0x03, BOTH, 1 },		/* inc, dec */
	{ 0xff, 0xff, 0x03, BOTH, OPERAND },
	{ 0xff, 0xff, 0x54, LOAD, 8 },		/* call, jmp, push: what they read */
};

/* Opcodes after 0x0f, or with a VEX prefix that stands for it. */
static const struct meaning two_bytes[] = {
	{ 0x10, 0x10, 0, LOAD, VECTOR },	/* movups, movss, movsd */
	{ 0x11, 0x11, 0, STORE, VECTOR },
	{ 0x12, 0x12, 0, LOAD, 8 },		/* movlps, movhps */
	{ 0x13, 0x13, 0, STORE, 8 },
	{ 0x16, 0x16, 0, LOAD, 8 },
	{ 0x17, 0x17, 0, STORE, 8 },
	{ 0x28, 0x28, 0, LOAD, VECTOR },	/* movaps */
	{ 0x29, 0x29, 0, STORE, VECTOR },
	{ 0x2a, 0x2a, 0, LOAD, OPERAND },	/* cvtsi2sd */
	{ 0x2b, 0x2b, 0, STORE, VECTOR },	/* movntps */
	{ 0x40, 0x4f, 0, LOAD, OPERAND },	/* cmov */
	{ 0x51, 0x51, 0, LOAD, VECTOR },	/* sqrt and arithmetic */
	{ 0x54, 0x5f, 0, LOAD, VECTOR },
	{ 0x6e, 0x6e, 0, LOAD, OPERAND },	/* movd, movq */
	{ 0x6f, 0x6f, 0, LOAD, WHOLE },		/* movdqa, movdqu */
	{ 0x7f, 0x7f, 0, STORE, WHOLE },
	{ 0x90, 0x9f, 0, STORE, 1 },		/* setcc */
	{ 0xaf, 0xaf, 0, LOAD, OPERAND },	/* imul */
	{ 0xb0, 0xb0, 0, BOTH, 1 },		/* cmpxchg */
	{ 0xb1, 0xb1, 0, BOTH, OPERAND },
	{ 0xb6, 0xb6, 0, LOAD, 1 },		/* movzx, movsx */
	{ 0xb7, 0xb7, 0, LOAD, 2 },
	{ 0xbe, 0xbe, 0, LOAD, 1 },
	{ 0xbf, 0xbf, 0, LOAD, 2 },
	{ 0xc0, 0xc0, 0, BOTH, 1 },		/* xadd */
	{ 0xc1, 0xc1, 0, BOTH, OPERAND },
	{ 0xc3, 0xc3, 0, STORE, OPERAND },	/* movnti */
	{ 0xc7, 0xc7, 0x02, BOTH, PAIR },	/* cmpxchg8b, cmpxchg16b */
	{ 0xd6, 0xd6, 0, STORE, 8 },		/* movq */
	{ 0xe7, 0xe7, 0, STORE, WHOLE },		/* movntdq */
};

static const struct meaning *look_up(const struct meaning *table, size_t count, u8 opcode, u8 middle)
{
	size_t i;

	for (i = 0; i < count; ++i) {
		const struct meaning *meaning = &table[i];

		if (opcode >= meaning->first && opcode <= meaning->last &&
		    (!meaning->registers || meaning->registers & (1U << middle)))
			return meaning;
	}
	return NULL;
}

static bool has_prefix(const struct insn *insn, u8 prefix)
{
	int i;

	for (i = 0; i < insn->prefixes.nbytes && i < 4; ++i)
		if (insn->prefixes.bytes[i] == prefix)
			return true;
	return false;
}

/* insn_is_avx() would need a function that is not exported, although everything is decoded. */
static bool is_vex(const struct insn *insn)
{
	return insn->vex_prefix.nbytes != 0;
}

/* 0, 0x66, 0xf3 or 0xf2: which element a vector instruction is for. */
static u8 element_prefix(struct insn *insn)
{
	static const u8 of_vex[] = { 0, 0x66, 0xf3, 0xf2 };

	if (is_vex(insn))
		return of_vex[insn_vex_p_bits(insn)];
	if (has_prefix(insn, 0xf3))
		return 0xf3;
	if (has_prefix(insn, 0xf2))
		return 0xf2;
	return has_prefix(insn, 0x66) ? 0x66 : 0;
}

static bool is_wide(const struct insn *insn)
{
	u8 length = insn->vex_prefix.nbytes;

	return length && X86_VEX_L(insn->vex_prefix.bytes[length - 1]);
}

static u8 vector_bytes(struct insn *insn)
{
	switch (element_prefix(insn)) {
	case 0xf3:
		return 4;
	case 0xf2:
		return 8;
	default:
		return is_wide(insn) ? 32 : 16;
	}
}

static u8 bytes_of(u8 width, struct insn *insn)
{
	switch (width) {
	case OPERAND:
		return insn->opnd_bytes;
	case VECTOR:
		return vector_bytes(insn);
	case WHOLE:
		return is_wide(insn) ? 32 : 16;
	case PAIR:
		return insn->opnd_bytes == 8 ? 16 : 8;
	default:
		return width;
	}
}

/* add, or, adc, sbb, and, sub, xor, cmp: four forms each that can have an operand in memory. */
static void arithmetic(u8 opcode, const struct insn *insn, struct emulated_access *access)
{
	bool to_memory = !(opcode & 2);
	bool compares = (opcode & 0x38) == 0x38;

	access->load = true;
	access->store = to_memory && !compares;
	access->bytes = opcode & 1 ? insn->opnd_bytes : 1;
}

/* What the instruction does to its operand in memory. */
static void set_meaning(struct insn *insn, struct emulated_access *access)
{
	u8 middle = X86_MODRM_REG(insn->modrm.value);
	bool vex = is_vex(insn);
	bool two = vex || insn->opcode.bytes[0] == 0x0f;
	u8 opcode = two && !vex ? insn->opcode.bytes[1] : insn->opcode.bytes[0];
	const struct meaning *meaning;

	if (insn->vex_prefix.nbytes == 4 /* EVEX */ || (vex && insn_vex_m_bits(insn) != 1) || insn->opcode.nbytes > 2)
		return;
	if (!two && opcode < 0x40 && (opcode & 7) < 4) {
		arithmetic(opcode, insn, access);
		return;
	}
	meaning = two ? look_up(two_bytes, ARRAY_SIZE(two_bytes), opcode, middle) :
			look_up(one_byte, ARRAY_SIZE(one_byte), opcode, middle);
	if (!meaning && two && opcode == 0x7e) {	/* movd and movq, which way the prefix says */
		access->load = element_prefix(insn) == 0xf3;
		access->store = !access->load;
		access->bytes = access->load ? 8 : insn->opnd_bytes == 8 ? 8 : 4;
		return;
	}
	if (!meaning)
		return;
	access->load = meaning->does & LOAD;
	access->store = meaning->does & STORE;
	access->bytes = bytes_of(meaning->bytes, insn);
}

/* push, pop, call and return: their operand is not in ModRM. True: it was one of them. */
static bool stack_access(const struct insn *insn, struct pt_regs *regs,
			 struct emulated_access *access)
{
	u8 opcode = insn->opcode.bytes[0];

	if ((opcode >= 0x50 && opcode <= 0x57) || opcode == 0x68 || opcode == 0x6a ||
	    opcode == 0xe8) {
		access->store = true;
		access->address = regs->sp - 8;
	} else if ((opcode >= 0x58 && opcode <= 0x5f) || opcode == 0xc2 || opcode == 0xc3) {
		access->load = true;
		access->address = regs->sp;
	} else {
		return false;
	}
	access->bytes = 8;
	return true;
}

/* The bytes at the instruction pointer: fewer at the end of the last page that can be read. */
static int read_code(unsigned long ip, u8 *code)
{
	size_t in_page = PAGE_SIZE - offset_in_page(ip);

	if (!copy_from_user_nofault(code, (const void __user *)ip, MAX_INSN_SIZE))
		return MAX_INSN_SIZE;
	if (in_page < MAX_INSN_SIZE &&
	    !copy_from_user_nofault(code, (const void __user *)ip, in_page))
		return in_page;
	return 0;
}

bool emulated_find_access(struct pt_regs *regs, struct emulated_access *access)
{
	u8 code[MAX_INSN_SIZE];
	struct insn insn;
	int length;
	long address;

	memset(access, 0, sizeof(*access));
	access->ip = regs->ip;
	if (regs->cs != __USER_CS)	/* no 64-bit code */
		return false;
	length = read_code(regs->ip, code);
	if (!length || emulated_kernel.insn_decode(&insn, code, length, INSN_MODE_64) < 0)
		return false;
	if (stack_access(&insn, regs, access))
		return true;
	if (!insn.modrm.nbytes || X86_MODRM_MOD(insn.modrm.value) == 3)
		return true;
	address = (long)emulated_kernel.insn_get_addr_ref(&insn, regs);
	if (address == -1L)
		return true;
	set_meaning(&insn, access);
	access->address = access->load || access->store ? address : 0;
	access->locked = has_prefix(&insn, 0xf0) || insn.opcode.bytes[0] == 0x86 ||
			 insn.opcode.bytes[0] == 0x87;
	return true;
}
