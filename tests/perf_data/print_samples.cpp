// SPDX-License-Identifier: Apache-2.0
// Prints each sample of a perf.data file, one a line, its fields separated by tabs, as `perf script` has them: for
// test_recordings.py. "-" is what the event does not report.
//
//   comm pid tid cpu time_ns period event ip address data_src weight dso ip,ip,... of the call chain
#include <fcntl.h>
#include <linux/perf_event.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/perf_data/reader.h"

namespace {

using namespace crosstalk;
using namespace crosstalk::perf_data;

struct Mapped {
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // from an address to that in the file
  std::string name;
};
using Space = std::map<std::uint64_t, Mapped>;  // by begin

/// Names of threads, and mapped files by address, as of the current record.
class Machine {
 public:
  void take(const Record& record) {
    if (const auto* comm = std::get_if<Comm>(&record.content)) {
      names_[comm->tid] = comm->name;
      if (comm->exec) {
        spaces_[comm->pid].clear();
      }
    } else if (const auto* fork = std::get_if<Fork>(&record.content)) {
      names_[fork->tid] = names_[fork->parent_tid];
      if (fork->pid != fork->parent_pid && !fork->exec) {
        spaces_[fork->pid] = spaces_[fork->parent_pid];
      }
    } else if (const auto* mapping = std::get_if<Mapping>(&record.content)) {
      map(*mapping);
    }
  }
  [[nodiscard]] std::string name(std::int32_t tid) const {
    const auto found = names_.find(tid);
    return tid == 0 ? "swapper" : found == names_.end() ? ":" + std::to_string(tid) : found->second;
  }
  /// Returns the file at an address; for the kernel and other addresses without a process, pid is -1.
  [[nodiscard]] std::string file(std::int32_t pid, std::uint64_t address) {
    const Mapped* mapped = find(pid, address);
    constexpr std::string_view kernel = "[kernel.kallsyms]";
    return mapped == nullptr ? "[unknown]" : mapped->name.starts_with(kernel) ? std::string(kernel) : mapped->name;
  }
  /// For user code in files, perf script shows addresses in the file.
  [[nodiscard]] std::uint64_t shown(std::int32_t pid, std::uint64_t address) {
    const Mapped* mapped = find(pid, address);
    if (mapped == nullptr) {
      return address;
    }
    const bool in_file = mapped->name == "[vdso]" || (mapped->name.starts_with('/') && !mapped->name.starts_with("//"));
    return in_file ? address + mapped->offset : address;
  }

 private:
  const Mapped* find(std::int32_t pid, std::uint64_t address) {
    const Space& space = spaces_[pid];
    const auto found = space.upper_bound(address);
    return found == space.begin() || std::prev(found)->second.end <= address ? nullptr : &std::prev(found)->second;
  }
  void map(const Mapping& mapping) {
    Space& space = spaces_[mapping.pid];
    const std::uint64_t end = mapping.begin + mapping.bytes;
    auto other = space.lower_bound(mapping.begin);
    if (other != space.begin() && std::prev(other)->second.end > mapping.begin) {
      const Mapped before = std::prev(other)->second;
      std::prev(other)->second.end = mapping.begin;
      if (before.end > end) {
        space[end] = before;
      }
    }
    while (other != space.end() && other->first < end) {
      const Mapped over = other->second;
      other = space.erase(other);
      if (over.end > end) {
        other = space.emplace(end, over).first;
        break;
      }
    }
    space[mapping.begin] = {end, mapping.file_offset - mapping.begin, std::string(mapping.name)};
  }

  std::map<std::int32_t, std::string> names_;
  std::map<std::int32_t, Space> spaces_;
};

void print(bool known, const char* format, std::uint64_t value) {
  std::putchar('\t');
  if (known) {
    std::printf(format, value);
  } else {
    std::putchar('-');
  }
}

void print(const Record& record, const Sample& sample, const Event& event, Machine& machine) {
  constexpr std::uint64_t weights = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
  const Attribute& attribute = event.attribute;
  const bool user = (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
  std::printf("%s\t%d\t%d", machine.name(record.identity.tid).c_str(), record.identity.pid, record.identity.tid);
  print(attribute.samples(PERF_SAMPLE_CPU), "%" PRIu64, record.identity.cpu);
  std::printf("\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIx64, record.identity.time_ns, sample.period, event.name.c_str(),
              sample.ip);
  print(attribute.samples(PERF_SAMPLE_ADDR), "%" PRIx64, sample.address);
  print(attribute.samples(PERF_SAMPLE_DATA_SRC), "%" PRIx64, sample.data_source);
  print(attribute.samples(weights), "%" PRIu64, sample.weight);
  std::printf("\t%s\t", machine.file(user ? record.identity.pid : -1, sample.ip).c_str());
  const char* separator = "";
  bool in_user = user;
  for (std::size_t i = 0; i < sample.call_chain.size(); ++i) {
    const std::uint64_t ip = sample.call_chain[i];
    if (ip >= static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {  // a marker
      in_user = ip == static_cast<std::uint64_t>(PERF_CONTEXT_USER);
      continue;
    }
    std::printf("%s%" PRIx64, separator, in_user ? machine.shown(record.identity.pid, ip) : ip);
    separator = ",";
  }
  std::putchar('\n');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s perf.data\n", argv[0]);
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> file(std::istreambuf_iterator<char>(in), {});
  Result<Reader> reader = Reader::open(std::as_bytes(std::span(file)));
  if (!reader) {
    std::fprintf(stderr, "%s: %s\n", argv[1], reader.error().message.c_str());
    return 1;
  }
  Machine machine;
  const auto summary = reader->read([&](const Record& record) -> Result<void> {
    machine.take(record);
    if (const auto* sample = std::get_if<Sample>(&record.content)) {
      print(record, *sample, reader->events().list()[sample->event], machine);
    }
    return {};
  });
  if (!summary) {
    std::fprintf(stderr, "%s: %s\n", argv[1], summary.error().message.c_str());
    return 1;
  }
  std::fprintf(stderr, "records %" PRIu64 ", samples %" PRIu64 ", out of order %" PRIu64 "%s\n", summary->records,
               summary->samples, summary->out_of_order, summary->cut_off ? ", cut off" : "");
  return 0;
}
