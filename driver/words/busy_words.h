// SPDX-License-Identifier: Apache-2.0
// Letters, fills and words for the parts of a time and for the classes of loops, in text and in pictures.
#pragma once

#include <array>
#include <string>

#include "models/application_class.h"
#include "models/busy_time.h"
#include "models/cycle_accounting.h"

namespace crosstalk::driver {

struct WaitPart {
  models::CycleClass which;
  char letter;       // of a bar of text
  const char* fill;  // of a bar of a picture; neighbours differ in lightness, too, for print without colours
  const char* words;
};
inline constexpr std::array<WaitPart, models::cycle_classes> wait_parts = {{
    {models::CycleClass::committing, 'c', "#2a9d62", "committing"},
    {models::CycleClass::fpu, 'f', "#f2b134", "functional units"},
    {models::CycleClass::l1d, '1', "#d6e6f5", "L1D"},
    {models::CycleClass::l2, '2', "#9cc3e6", "L2"},
    {models::CycleClass::l3, '3', "#5b97cf", "L3"},
    {models::CycleClass::memory, 'm', "#1f5a9a", "memory"},
    {models::CycleClass::data, 'd', "#79a9d8", "data, level not known"},
    {models::CycleClass::frontend, 'i', "#cdb4e4", "instructions"},
    {models::CycleClass::branch, 'b', "#8a56b5", "branches"},
    {models::CycleClass::lock, 'l', "#f4a69b", "locks"},
    {models::CycleClass::barrier, 'B', "#c4402f", "barriers"},
    {models::CycleClass::condition, 'C', "#e77462", "conditions"},
    {models::CycleClass::io, 'I', "#5f6670", "I/O"},
    {models::CycleClass::blocked, 's', "#b9bec6", "asleep"},
    {models::CycleClass::runnable, 'r', "#878e99", "waiting for a processor"},
    {models::CycleClass::kernel, 'k', "#3c424b", "kernel"},
    {models::CycleClass::unattributed, '.', "#f3f3f3", "not attributed"},
}};

/// Returns a bar of `columns` letters, the parts one after another; the largest remainder method makes them fill it.
[[nodiscard]] std::string stacked(const models::CycleAccount& account, int columns);
/// "c committing 61 %, m memory 30 %": the parts worth saying.
[[nodiscard]] std::string waits_in_words(const models::CycleAccount& account);

/// "limited by memory", ...
[[nodiscard]] const char* class_in_words(models::BusyClass which);
/// "cache blocking", ...
[[nodiscard]] const char* application_in_words(models::ApplicationClass which);

}  // namespace crosstalk::driver
