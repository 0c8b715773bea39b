// SPDX-License-Identifier: Apache-2.0
#include "daemon/host_info.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "base/proc_fields.h"
#include "daemon/host_topology.h"

namespace crosstalk::daemon {

void describe_host(profile::Session& session) {
  utsname names{};
  if (::uname(&names) == 0) {
    session.host = names.nodename;
    session.kernel = names.release;
    session.architecture = names.machine;
  }
  session.cpu_model = processor_field("model name");
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
  const std::string anonymous = proc_file_field("/proc/self/status", "RssAnon").value_or("");
  return anonymous.empty() ? 0 : std::stoull(anonymous) * 1024;
}

}  // namespace crosstalk::daemon
