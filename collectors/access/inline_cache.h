// SPDX-License-Identifier: Apache-2.0
// Caches by instruction pointer which access was found there, with its address as a sum of registers. Most samples fall
// on places that were sampled before, and a handler that finds a cached answer decodes nothing. This saves mostly cache
// misses: the decoder's code and tables are cold in each handler.
#pragma once

#include <array>
#include <cstdint>

#include "base/registers.h"
#include "collectors/access/code_cache.h"
#include "collectors/access/code_reader.h"
#include "collectors/access/found_access.h"
#include "collectors/access/route.h"

namespace crosstalk::in_target {

using InlineCache = CheckedTable<7, 4096>;  // accesses found before, by place

/// The kind of a cached answer: none, an access, no access, or that no access before the instruction pointer can be
/// determined, so that the next one must be found.
enum class CacheAnswer : std::uint8_t { nothing, access, no_access, look_ahead };

/// Looks for a cached answer for these registers; `nothing`: not learned, rewritten code, or execution has come from
/// elsewhere. Writes an access to `out`. Signal-safe; reads one or two lines of the table and up to 192 bytes of code.
CacheAnswer follow_cached(const InlineCache& table, const Registers& registers, std::uint64_t flags,
                          std::uint64_t fs_base, const CodeReader& reader, FoundAccess& out);

/// Keeps an answer, unless one of its place was disproved. `access`: null for no access. False: it cannot be kept.
bool learn_cached(InlineCache& table, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
                  const Route& route, const FoundAccess* access);

/// Keeps in the same way that the access before cannot be determined by this route.
void learn_to_look_ahead(InlineCache& table, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
                         const Route& route);

/// Marks a cached answer as contradicted by the code: no answer is kept for the place until the mark is displaced from
/// the table.
void disprove_cached(InlineCache& table, const Registers& registers, std::uint64_t flags);

}  // namespace crosstalk::in_target
