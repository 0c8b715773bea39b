// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/disturbance.h"

#include <cpuid.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/number.h"

namespace crosstalk::collectors::calibration {
namespace {

std::uint64_t involuntary_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

bool under_a_hypervisor() {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr std::uint32_t hypervisor = 1U << 31U;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & hypervisor) != 0;
}

std::string text_of_stat() {
  std::ifstream file("/proc/stat");
  std::string text;
  // Processors come first; what follows takes the kernel longer than they do.
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    text += line + '\n';
  }
  return text;
}

/// The next word of a line; the line loses it.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

}  // namespace

bool was_disturbed(const ThreadUse& use) {
  constexpr std::uint64_t hundredth = 100;
  return use.involuntary_switches > 0 || use.cpu_ns + use.wall_ns / hundredth < use.wall_ns;
}

void ThreadWatch::begin() {
  begin_.switches = involuntary_switches();
  begin_.cpu_ns = thread_cpu_ns();
  begin_.wall_ns = monotonic_ns();
}

void ThreadWatch::end() {
  end_.wall_ns = monotonic_ns();
  end_.cpu_ns = thread_cpu_ns();
  end_.switches = involuntary_switches();
}

ThreadUse ThreadWatch::use() const {
  return {end_.wall_ns - begin_.wall_ns, end_.cpu_ns - begin_.cpu_ns, end_.switches - begin_.switches};
}

std::uint64_t stolen_ticks(std::string_view stat, const std::vector<std::uint32_t>& cpus) {
  constexpr std::string_view key = "cpu";
  constexpr int columns_before = 7;  // user, nice, system, idle, iowait, irq, softirq
  std::uint64_t ticks = 0;
  while (!stat.empty()) {
    std::string_view line = stat.substr(0, stat.find('\n'));
    stat.remove_prefix(std::min(line.size() + 1, stat.size()));
    const std::string_view name = next_word(line);
    if (!name.starts_with(key) || name.size() == key.size() ||
        std::find(cpus.begin(), cpus.end(), leading_number<std::uint32_t>(name.substr(key.size())).value_or(0)) ==
            cpus.end()) {
      continue;
    }
    for (int i = 0; i < columns_before; ++i) {
      next_word(line);
    }
    ticks += leading_number<std::uint64_t>(next_word(line)).value_or(0);
  }
  return ticks;
}

StealTime::StealTime(std::vector<std::uint32_t> cpus) : cpus_(std::move(cpus)), possible_(under_a_hypervisor()) {
  static_cast<void>(any_since_last());
}

bool StealTime::any_since_last() {
  if (!possible_) {
    return false;
  }
  const std::uint64_t now = stolen_ticks(text_of_stat(), cpus_);
  return std::exchange(last_, now) < now;
}

}  // namespace crosstalk::collectors::calibration
