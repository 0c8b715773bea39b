// SPDX-License-Identifier: Apache-2.0
// Samples a thread of its own, whose instructions and accesses are known, by the given event, and prints every sample's
// fields as JSON, for comparison in tests of an emulated unit. It goes on until the thread has enough samples, since a
// guest may be slow, or a minute has passed.
//
//   perf_samples unit=ibs_op config=524288 period=262144 each_cpu=1 raw=1 [config1=N] [precise=N] [exclude_kernel=1]
//                [sigtrap=1] [pinned=1] [samples=N]
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

extern "C" {
alignas(64) std::uint64_t loaded;
alignas(64) std::uint32_t stored;
alignas(64) std::uint64_t counted;
alignas(64) std::uint8_t bytes[64];
alignas(64) float vector[16];
extern const char at_load[], at_store[], at_locked[], at_byte[], at_vector[], at_none[];
}

namespace {

/// One access to each word, in instructions whose addresses are known.
[[gnu::noinline, gnu::noclone]] void run_once(std::uint64_t index) {
  asm volatile(
      ".globl at_load, at_store, at_locked, at_byte, at_vector, at_none\n"
      "at_load: movq loaded(%%rip), %%rax\n"
      "at_store: movl $1, stored(%%rip)\n"
      "at_locked: lock addq $1, counted(%%rip)\n"
      "at_byte: movzbl (%[bytes],%[index],4), %%eax\n"
      "at_vector: movups vector(%%rip), %%xmm0\n"
      "at_none: addq $1, %%rax\n"
      :
      : [bytes] "r"(bytes), [index] "r"(index)
      : "rax", "xmm0", "memory", "cc");
}

std::map<std::string, std::uint64_t> options;
std::string unit;

std::uint64_t option(const char* name, std::uint64_t otherwise = 0) {
  const auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

std::atomic<int> signals{0}, signals_at_words{0};
void on_signal(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  ++signals;
  for (const void* word : {static_cast<const void*>(&loaded), static_cast<const void*>(&stored),
                           static_cast<const void*>(&counted), static_cast<const void*>(vector)}) {
    signals_at_words += at == reinterpret_cast<std::uintptr_t>(word) ? 1 : 0;
  }
}

perf_event_attr attribute() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  std::ifstream("/sys/bus/event_source/devices/" + unit + "/type") >> attr.type;
  attr.config = option("config");
  attr.config1 = option("config1");
  attr.sample_period = option("period");
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                     PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC |
                     (option("raw") != 0 ? PERF_SAMPLE_RAW : 0);
  attr.precise_ip = option("precise") & 3U;
  attr.exclude_kernel = option("exclude_kernel") & 1U;
  attr.sigtrap = option("sigtrap") & 1U;
  attr.pinned = option("pinned") & 1U;
  attr.remove_on_exec = attr.sigtrap;
  attr.disabled = 1;
  return attr;
}

class Ring {
 public:
  Ring(perf_event_attr attr, pid_t thread, int cpu)
      : fd_(static_cast<int>(syscall(SYS_perf_event_open, &attr, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC))) {
    if (fd_ < 0) {
      std::printf("{\"error\": \"%s\"}\n", strerrorname_np(errno));
      std::exit(0);
    }
    void* const at = mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    control_ = static_cast<perf_event_mmap_page*>(at);
  }
  void enable(bool on) const { ioctl(fd_, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0); }

  /// Whole records, in order.
  std::vector<std::vector<std::uint8_t>> records() {
    std::vector<std::vector<std::uint8_t>> all;
    const std::uint8_t* const data = reinterpret_cast<const std::uint8_t*>(control_) + page;
    const std::uint64_t head = __atomic_load_n(&control_->data_head, __ATOMIC_ACQUIRE);
    for (std::uint64_t at = control_->data_tail; at < head;) {
      perf_event_header header;
      for (std::size_t i = 0; i < sizeof header; ++i) {
        reinterpret_cast<std::uint8_t*>(&header)[i] = data[(at + i) % (pages * page)];
      }
      std::vector<std::uint8_t> record;
      for (std::size_t i = 0; i < header.size; ++i) {
        record.push_back(data[(at + i) % (pages * page)]);
      }
      at += header.size;
      all.push_back(std::move(record));
    }
    return all;
  }

 private:
  static constexpr std::size_t pages = 256, page = 4096;
  int fd_;
  perf_event_mmap_page* control_ = nullptr;
};

template <class Number>
Number take(const std::uint8_t*& at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

std::uint64_t samples_of(std::vector<Ring>& rings, pid_t tid) {
  std::uint64_t count = 0;
  for (Ring& ring : rings) {
    for (const auto& record : ring.records()) {
      const std::uint8_t* at = record.data();
      const bool sample = take<perf_event_header>(at).type == PERF_RECORD_SAMPLE;
      constexpr std::size_t before_tid = sizeof(std::uint64_t) + sizeof(std::uint32_t);
      at += sample ? before_tid : 0;
      count += sample && take<std::uint32_t>(at) == static_cast<std::uint32_t>(tid) ? 1 : 0;
    }
  }
  return count;
}

void print_sample(const std::vector<std::uint8_t>& record, bool first) {
  const std::uint8_t* at = record.data();
  const auto header = take<perf_event_header>(at);
  const auto ip = take<std::uint64_t>(at);
  take<std::uint32_t>(at);
  const auto tid = take<std::uint32_t>(at);
  take<std::uint64_t>(at);
  const auto address = take<std::uint64_t>(at);
  const auto cpu = take<std::uint64_t>(at) & 0xffffffffU;
  const auto period = take<std::uint64_t>(at);
  std::printf(
      "%s{\"exact\": %d, \"user\": %d, \"ip\": %llu, \"tid\": %u, \"address\": %llu, \"cpu\": %llu, \"period\": %llu",
      first ? "" : ",\n", (header.misc & PERF_RECORD_MISC_EXACT_IP) != 0,
      (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER, static_cast<unsigned long long>(ip), tid,
      static_cast<unsigned long long>(address), static_cast<unsigned long long>(cpu),
      static_cast<unsigned long long>(period));
  if (option("raw") != 0) {
    const std::uint8_t* raw = at + sizeof(std::uint32_t);
    at = raw + take<std::uint32_t>(at);
    std::printf(", \"caps\": %u, \"registers\": [", take<std::uint32_t>(raw));
    for (int i = 0; i < 7; ++i) {
      std::printf("%s%llu", i == 0 ? "" : ", ", static_cast<unsigned long long>(take<std::uint64_t>(raw)));
    }
    std::printf("]");
  }
  const auto weight = take<std::uint64_t>(at);
  perf_mem_data_src source{};
  source.val = take<std::uint64_t>(at);
  std::printf(", \"latency\": %llu, \"operation\": %d, \"locked\": %d, \"modified\": %d}",
              static_cast<unsigned long long>(weight & 0xffffffffU), static_cast<int>(source.mem_op),
              (source.mem_lock & PERF_MEM_LOCK_LOCKED) != 0, (source.mem_snoop & PERF_MEM_SNOOP_HITM) != 0);
}

void print_places() {
  const std::map<const char*, const void*> places = {{"load", at_load}, {"store", at_store},   {"locked", at_locked},
                                                     {"byte", at_byte}, {"vector", at_vector}, {"none", at_none}};
  const std::map<const char*, const void*> words = {
      {"load", &loaded}, {"store", &stored}, {"locked", &counted}, {"byte", bytes}, {"vector", vector}};
  for (const auto& [name, all] : {std::pair("places", &places), std::pair("words", &words)}) {
    std::printf("\"%s\": {", name);
    const char* separator = "";
    for (const auto& [what, where] : *all) {
      std::printf("%s\"%s\": %llu", separator, what,
                  static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(where)));
      separator = ", ";
    }
    std::printf("}, ");
  }
}

void print(std::vector<Ring>& rings, pid_t tid) {
  std::printf("{");
  print_places();
  std::printf("\"tid\": %d, \"signals\": %d, \"signals_at_words\": %d, \"samples\": [\n", tid, signals.load(),
              signals_at_words.load());
  bool first = true;
  int lost = 0;
  for (Ring& ring : rings) {
    for (const auto& record : ring.records()) {
      perf_event_header header;
      std::memcpy(&header, record.data(), sizeof header);
      lost += header.type == PERF_RECORD_LOST ? 1 : 0;
      if (header.type == PERF_RECORD_SAMPLE) {
        print_sample(record, first);
        first = false;
      }
    }
  }
  std::printf("], \"lost\": %d}\n", lost);
}

void read_options(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "perf_samples: '%s' is not NAME=VALUE\n", argv[i]);
      std::exit(2);
    }
    if (word.substr(0, equals) == "unit") {
      unit = word.substr(equals + 1);
    } else {
      options[word.substr(0, equals)] = std::strtoull(word.c_str() + equals + 1, nullptr, 0);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  read_options(argc, argv);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);

  std::atomic<pid_t> tid{0};
  std::atomic<bool> ready{false}, stop{false};
  std::thread thread([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    while (!ready) {
    }
    for (std::uint64_t i = 0; !stop; ++i) {
      run_once(i % 16);
      if (i % 1024 == 0) {
        syscall(SYS_getppid);
      }
    }
  });
  while (tid == 0) {
  }
  const perf_event_attr attr = attribute();
  std::vector<Ring> rings;
  if (option("each_cpu") != 0) {
    for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) {
      rings.emplace_back(attr, -1, static_cast<int>(cpu));
    }
  } else {
    rings.emplace_back(attr, tid, -1);
  }
  for (const Ring& ring : rings) {
    ring.enable(true);
  }
  ready = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (samples_of(rings, tid) < option("samples", 600) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (const Ring& ring : rings) {
    ring.enable(false);
  }
  stop = true;
  thread.join();
  print(rings, tid);
}
