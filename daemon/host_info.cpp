// SPDX-License-Identifier: Apache-2.0
#include "daemon/host_info.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "daemon/host_topology.h"

namespace crosstalk::daemon {
namespace {

/// The text after the colon of the first line of `file` that starts with `key`; empty when there is none.
std::string field(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) == 0 && colon != std::string::npos) {
      const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? std::string() : line.substr(begin);
    }
  }
  return {};
}

}  // namespace

void describe_host(profile::Session& session) {
  utsname names{};
  if (::uname(&names) == 0) {
    session.host = names.nodename;
    session.kernel = names.release;
  }
  session.cpu_model = field("/proc/cpuinfo", "model name");
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  session.cpus = cpus > 0 ? static_cast<std::uint32_t>(cpus) : 0;
  session.topology = read_topology().text();
  const long line = ::sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  session.line_bytes = line > 0 && (line & (line - 1)) == 0 ? static_cast<std::uint32_t>(line) : 64;
}

std::uint64_t own_cpu_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

std::uint64_t own_memory_bytes() {
  const std::string anonymous = field("/proc/self/status", "RssAnon");
  return anonymous.empty() ? 0 : std::stoull(anonymous) * 1024;
}

}  // namespace crosstalk::daemon
