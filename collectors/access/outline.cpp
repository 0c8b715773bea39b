// SPDX-License-Identifier: Apache-2.0
// Lengths of instructions in 64-bit code, after the opcode maps of the Intel SDM, volume 2, appendix A. Instructions
// that compilers and assembler programmers do not write (privileged, far, obsolete, useless segment prefixes) count as
// invalid, because decoding backward often meets bytes that are no instruction.
#include <cstring>

#include "collectors/access/code.h"

namespace crosstalk::in_target {

namespace {

enum Shape : char {
  plain = '.',  // opcode alone
  modrm = 'm',  // ModRM
  byte = 'b',   // 8-bit immediate
  full = 'z',   // 32-bit immediate, 16 with an operand-size prefix
  modrm_byte = 'i',
  modrm_full = 'I',
  word = 'w',  // 16-bit immediate
  jump8 = 'j',
  jump32 = 'J',
  absolute = 'a',  // 64-bit address
  any = 'v',       // immediate of the operand's size
  none = 'x',
  special = 's',  // looked at apart
};

// Rows of 16 opcodes.
constexpr char one_byte_map[] =
    "mmmmbzxxmmmmbzxs"   // 00 add, or
    "mmmmbzxxmmmmbzxx"   // 10
    "mmmmbzxxmmmmbzxx"   // 20
    "mmmmbzxxmmmmbzxx"   // 30
    "xxxxxxxxxxxxxxxx"   // 40 REX, taken before
    "................"   // 50 push, pop
    "xxxmxxxxzIbixxxx"   // 60
    "jjjjjjjjjjjjjjjj"   // 70
    "iIximmmmmmmmmmmm"   // 80
    "..........x....."   // 90
    "aaaa....bz......"   // a0
    "bbbbbbbbvvvvvvvv"   // b0
    "iiw.xxiIx.xxxxxx"   // c0
    "mmmmxxxxmmmmmmmm"   // d0
    "bbbbxxxxJJxjxxxx"   // e0
    "xxxxx.ss..xx..ss";  // f0

constexpr char two_byte_map[] =
    "mmmmx.xxxxx.xmxx"   // 00
    "mmmmmmmmmmmmmmmm"   // 10
    "xxxxxxxxmmmmmmmm"   // 20
    "x.xxxxxxsxsxxxxx"   // 30
    "mmmmmmmmmmmmmmmm"   // 40
    "mmmmmmmmmmmmmmmm"   // 50
    "mmmmmmmmmmmmmmmm"   // 60
    "iiiimmm.xxxxmmmm"   // 70
    "JJJJJJJJJJJJJJJJ"   // 80
    "mmmmmmmmmmmmmmmm"   // 90
    "...mimxx..xmimmm"   // a0
    "mmmmmmmmmximmmmm"   // b0
    "mmimiiim........"   // c0
    "mmmmmmmmmmmmmmmm"   // d0
    "mmmmmmmmmmmmmmmm"   // e0
    "mmmmmmmmmmmmmmmx";  // f0
static_assert(sizeof(one_byte_map) == 257 && sizeof(two_byte_map) == 257);

struct Cursor {
  const std::uint8_t* code;
  std::size_t bytes;
  std::size_t at = 0;
  bool operand16 = false;
  bool address32 = false;
  bool segment = false;  // a prefix that only jumps and nops bear
  bool lock = false;
  bool wide = false;  // REX.W

  [[nodiscard]] bool has(std::size_t n) const { return at + n <= bytes; }
  [[nodiscard]] std::uint8_t peek(std::size_t ahead = 0) const { return code[at + ahead]; }
};

bool skip_prefixes(Cursor& c) {
  for (; c.has(1); ++c.at) {
    switch (c.peek()) {
      case 0x66:
        c.operand16 = true;
        break;
      case 0x67:
        c.address32 = true;
        break;
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
        c.segment = true;
        break;
      case 0xf0:
        c.lock = true;
        break;
      case 0x64:
      case 0x65:
      case 0xf2:
      case 0xf3:
        break;
      default:
        if ((c.peek() & 0xf0U) == 0x40) {
          c.wide = (c.peek() & 8U) != 0;
          ++c.at;
        }
        return c.has(1);
    }
  }
  return false;
}

/// Skips ModRM, SIB and displacement.
bool skip_modrm(Cursor& c) {
  if (!c.has(1)) {
    return false;
  }
  const unsigned modrm_byte_value = c.peek();
  const unsigned mode = modrm_byte_value >> 6U;
  const unsigned rm = modrm_byte_value & 7U;
  ++c.at;
  if (mode == 3) {
    return !c.lock;
  }
  std::size_t displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
  if (rm == 4) {
    if (!c.has(1)) {
      return false;
    }
    if (mode == 0 && (c.peek() & 7U) == 5) {
      displacement = 4;
    }
    ++c.at;
  } else if (mode == 0 && rm == 5) {
    displacement = 4;
  }
  c.at += displacement;
  return c.has(0);
}

/// Skips the operands that a shape puts after the opcode.
bool skip_operands(Cursor& c, char shape) {
  std::size_t immediate = 0;
  switch (shape) {
    case plain:
      return true;
    case modrm:
      return skip_modrm(c);
    case modrm_byte:
      return skip_modrm(c) && (++c.at, c.has(0));
    case modrm_full:
      if (!skip_modrm(c)) {
        return false;
      }
      immediate = c.operand16 && !c.wide ? 2 : 4;
      break;
    case byte:
    case jump8:
      immediate = 1;
      break;
    case word:
      immediate = 2;
      break;
    case full:
      immediate = c.operand16 && !c.wide ? 2 : 4;
      break;
    case jump32:
      immediate = 4;
      break;
    case absolute:
      immediate = c.address32 ? 4 : 8;
      break;
    case any:
      immediate = c.wide ? 8 : c.operand16 ? 2 : 4;
      break;
    default:
      return false;
  }
  c.at += immediate;
  return c.has(0);
}

void read_jump(const Cursor& c, char shape, Outline& out) {
  out.branches = true;
  if (shape == jump8) {
    const std::int32_t unsigned_offset = c.code[c.at - 1];
    out.offset = unsigned_offset < 0x80 ? unsigned_offset : unsigned_offset - 0x100;
  } else {
    std::memcpy(&out.offset, c.code + c.at - 4, sizeof(out.offset));
  }
}

/// VEX (c4, c5) and EVEX (62); the cursor is behind the first byte.
bool skip_vector(Cursor& c, std::uint8_t first) {
  const std::size_t payload = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;
  if (!c.has(payload + 1) || c.operand16 || c.lock || c.wide) {
    return false;
  }
  unsigned map = 1;
  if (first == 0xc4) {
    map = c.peek() & 0x1fU;
  } else if (first == 0x62) {
    map = c.peek() & 7U;
    if ((c.peek() & 8U) != 0 || (c.peek(1) & 4U) == 0) {
      return false;
    }
  }
  c.at += payload;
  const std::uint8_t opcode = c.peek();
  ++c.at;
  if (map == 0 || map > 6 || map == 4 || (first != 0x62 && map > 3)) {
    return false;
  }
  if (map == 1 && opcode == 0x77 && first != 0x62) {
    return true;  // vzeroupper
  }
  const bool immediate =
      map == 3 ||
      (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6)));
  return skip_operands(c, immediate ? modrm_byte : modrm);
}

bool two_byte(Cursor& c, Outline& out) {
  if (!c.has(1)) {
    return false;
  }
  const std::uint8_t opcode = c.peek();
  ++c.at;
  if (c.segment && opcode != 0x1f && (opcode & 0xf0U) != 0x80) {
    return false;
  }
  const char shape = two_byte_map[opcode];
  if (shape == special) {  // 0f38, 0f3a
    ++c.at;
    return c.has(0) && skip_operands(c, opcode == 0x3a ? modrm_byte : modrm);
  }
  if (!skip_operands(c, shape)) {
    return false;
  }
  if (shape == jump32) {
    read_jump(c, shape, out);
  }
  const bool long_nop = opcode == 0x1f && c.at >= 4;
  const bool landing = opcode == 0x1e && c.code[c.at - 1] == 0xfa;  // endbr64
  out.distinctive = long_nop || landing;
  return true;
}

/// Groups 3, 4 and 5: the ModRM byte selects the instruction.
bool group(Cursor& c, std::uint8_t opcode) {
  if (!c.has(1)) {
    return false;
  }
  const unsigned which = c.peek() >> 3U & 7U;
  if (opcode == 0xfe) {
    return which < 2 && skip_modrm(c);
  }
  if (opcode == 0xff) {
    return which != 3 && which != 5 && which != 7 && skip_modrm(c);
  }
  const Shape with_immediate = opcode == 0xf6 ? modrm_byte : modrm_full;
  return skip_operands(c, which < 2 ? with_immediate : modrm);
}

bool one_byte(Cursor& c, Outline& out) {
  const std::uint8_t opcode = c.peek();
  ++c.at;
  if (opcode == 0x0f) {
    return two_byte(c, out);
  }
  if (opcode == 0x62 || opcode == 0xc4 || opcode == 0xc5) {
    return skip_vector(c, opcode);
  }
  const char shape = one_byte_map[opcode];
  if (c.segment && shape != jump8 && opcode != 0xff && opcode != 0xe9 && opcode != 0xe8 && opcode != 0xc3) {
    return false;
  }
  if (shape == special) {
    return group(c, opcode);
  }
  if (!skip_operands(c, shape)) {
    return false;
  }
  if (shape == jump8 || opcode == 0xe9) {
    read_jump(c, shape, out);
  }
  return true;
}

}  // namespace

Outline outline_instruction(const std::uint8_t* code, std::size_t bytes) {
  Cursor cursor{code, bytes < longest_instruction ? bytes : longest_instruction};
  Outline out;
  const bool zeros = bytes >= 2 && code[0] == 0 && code[1] == 0;  // add %al, (%rax): data, or the end of a long nop
  if (!zeros && skip_prefixes(cursor) && one_byte(cursor, out) && !(out.branches && out.offset == 0)) {
    out.length = static_cast<std::uint8_t>(cursor.at);
    out.doubtful = code[0] == 0;
  } else {
    out = Outline{};
  }
  return out;
}

}  // namespace crosstalk::in_target
