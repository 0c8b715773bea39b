// SPDX-License-Identifier: Apache-2.0
#include "attribution/jit_hint.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "attribution/model/sentences.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {
namespace {

constexpr double worth_saying = 0.05;

struct Way {
  std::string_view program;  // its name begins so
  std::string_view how;
};
constexpr std::array ways = {
    Way{"java",
        "have it write them with jcmd PID Compiler.perfmap while it runs, or run it with java "
        "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (JDK 17 or later)"},
    Way{"node", "run it with node --perf-basic-prof"},
    Way{"dotnet", "set DOTNET_PerfMapEnabled=1 in its environment"},
};

std::string_view way_of(const std::string& executable) {
  const std::string program = base_name(executable);
  const auto found =
      std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return program.starts_with(way.program); });
  return found == ways.end() ? std::string_view() : found->how;
}

/// The part of the cost of communication in code without a name.
double nameless_share(const Communication& communication) {
  double all = 0, nameless = 0;
  for (const LineRow& row : communication.lines) {
    if (row.role == Role::consumer) {
      all += row.cost_s;
      nameless += row.function == "[unknown]" ? row.cost_s : 0;
    }
  }
  return all > 0 ? nameless / all : 0;
}

}  // namespace

std::optional<std::string> jit_hint(const std::map<std::uint32_t, double>& fileless_s, double cpu_s,
                                    const Communication& communication, std::span<const profile::ProcessRow> processes,
                                    bool some_named) {
  double all_s = 0;
  std::uint32_t most = 0;
  double most_s = -1;
  for (const auto& [process, s] : fileless_s) {
    all_s += s;
    if (s > most_s) {
      most = process;
      most_s = s;
    }
  }
  const double of_time = cpu_s > 0 ? all_s / cpu_s : 0;
  const double of_cost = nameless_share(communication);
  if (all_s <= 0 || std::max(of_time, of_cost) <= worth_saying) {
    return std::nullopt;
  }
  const std::string executable = most < processes.size() ? processes[most].executable : std::string();
  const std::string_view way = way_of(executable);
  const std::string amount = of_time > worth_saying ? percent(of_time) + " of the CPU time"
                                                    : percent(of_cost) + " of the cost of communication";
  const std::string where = amount + " is in code without names that lies in no file" +
                            (executable.empty() ? "" : " (most of it in " + base_name(executable) + ")");
  if (some_named) {
    return where +
           ". Other code of the program's just-in-time compiler has names. This code was probably compiled after the "
           "names were written";
  }
  if (!way.empty()) {
    return where + ": its just-in-time compiler made it. For names, " + std::string(way);
  }
  return where +
         ": memory that the program filled itself, or a file that was gone when it was looked for. Where a "
         "just-in-time compiler writes /tmp/perf-PID.map or a jitdump, names are taken from there";
}

}  // namespace crosstalk::attribution
