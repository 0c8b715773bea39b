// SPDX-License-Identifier: Apache-2.0
// Parts of sentences for readers: amounts, places and names in words.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// "41 %", "less than 1 %"; clamps shares to 0..1.
[[nodiscard]] std::string percent(double share);
/// "55 to 75 %", "up to 8 %", "about 40 %" if both ends are nearly the same.
[[nodiscard]] std::string percent_range(const Interval& shares);
/// "3.2 ms", "1.25 s".
[[nodiscard]] std::string seconds_in_words(double s);
/// "216 bytes", "1.5 MiB".
[[nodiscard]] std::string size_in_words(std::uint64_t bytes);
/// "1 sample", "20 samples".
[[nodiscard]] std::string count_of(std::uint64_t n, const char* one, const char* many);
/// A function's name for a sentence, without anonymous namespaces, long template arguments and parameters.
[[nodiscard]] std::string in_short(std::string function);
/// "worker() at a.cpp:30", with the known parts.
[[nodiscard]] std::string place_in_words(const std::string& function, const std::string& file, std::uint32_t line);
/// With the field that communicates most: "Ring.head allocated at spsc.cpp:30 in main", "counters[1].hits",
/// "Line[3].hits #2 of 40 allocated at chain.cpp:6 in main". In an array on the heap, the index replaces the number.
[[nodiscard]] std::string object_in_words(const ObjectRow& object);
/// "thread 1 (reader)", "threads 1 and 2 (worker)", "4 threads (1, 2, 3, 4)": with names if they say more than the
/// program's name.
[[nodiscard]] std::string threads_in_words(const Analysis& analysis, const std::set<std::uint32_t>& threads);
/// A remedy for too few observations. A program that has ended cannot be recorded for longer.
[[nodiscard]] std::string to_see_more(const Analysis& analysis);
/// The sentence with an initial capital.
[[nodiscard]] std::string begun(std::string sentence);

}  // namespace crosstalk::attribution
