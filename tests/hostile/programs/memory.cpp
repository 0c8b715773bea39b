// SPDX-License-Identifier: Apache-2.0
// Memory that is counted, limited, locked, dumped, read or protected as a whole, which includes all other mappings of
// the process.
#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

constexpr std::size_t page = 4096;
constexpr std::size_t mib = 1U << 20U;

char* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

/// The number at the begin of a field of /proc/self/status, which is in kB.
std::size_t status_mib(const char* name) { return std::stoul(status_field(name)) / 1024; }

/// The size on disk, and the apparent size, of a child's core file are those of a small program.
int core_size(int, char**) {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_CORE, &limit);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "memory", "crash", nullptr);
    _exit(90);
  }
  say("%s", end_of(child).c_str());
  DIR* folder = opendir(".");
  while (const dirent* entry = readdir(folder)) {
    struct stat core {};
    if (std::strncmp(entry->d_name, "core", 4) == 0 && stat(entry->d_name, &core) == 0) {
      say("core file of more than 8 MiB on disk: %s, of more than 200 MiB: %s",
          yes(static_cast<std::size_t>(core.st_blocks) * 512 > 8 * mib),
          yes(static_cast<std::size_t>(core.st_size) > 200 * mib));
    }
  }
  closedir(folder);
  return 0;
}

int crash(int, char**) {
  exchange(0.3);
  std::abort();
}

/// Allocates and uses what fits under a limit that the shell has set.
int allocate(int, char** argv) {
  exchange(0.2);
  std::vector<char> block(std::stoul(argv[0]) * mib, 1);
  say("allocated %zu MiB, last byte %d", block.size() / mib, block.back());
  exchange(0.1);
  return 0;
}

/// Memory that can still be mapped after the address space limit is set to so much above the present use.
int address_space_left(int, char**) {
  exchange(0.2);
  const rlimit limit{status_mib("VmSize") * mib + 100 * mib, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  int got = 0;
  while (map(4 * mib) != nullptr) {
    ++got;
    burn(0.005);
  }
  say("pieces of 4 MiB in 100 MiB: %s", got >= 23 && got <= 25 ? "24 or so" : std::to_string(got).c_str());
  std::thread([] { say("a thread can be made"); }).join();
  return 0;
}

/// The same with the limit of private writable memory.
int data_left(int, char**) {
  exchange(0.2);
  const rlimit limit{status_mib("VmData") * mib + 100 * mib, RLIM_INFINITY};
  setrlimit(RLIMIT_DATA, &limit);
  int got = 0;
  while (map(4 * mib) != nullptr) {
    ++got;
    burn(0.005);
  }
  say("pieces of 4 MiB in 100 MiB: %s", got >= 23 && got <= 25 ? "24 or so" : std::to_string(got).c_str());
  return 0;
}

/// Locks all memory, present and future; the locked amount is that of a small program. The limit of a plain user (8
/// MiB) has room for that.
int lock_all(int, char**) {
  burn(0.2);
  const int result = mlockall(MCL_CURRENT | MCL_FUTURE);
  say("mlockall: %s, more than 16 MiB locked: %s", result == 0 ? "done" : std::strerror(errno),
      yes(status_mib("VmLck") > 16));
  burn(0.2);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  const auto body = [](void*) -> void* {
    burn(0.2);
    return nullptr;
  };
  pthread_t thread{};
  const int made = pthread_create(&thread, &attributes, body, nullptr);
  burn(0.2);
  say("a thread: %s", std::strerror(made));
  if (made == 0) {
    pthread_join(thread, nullptr);
  }
  say("more than 16 MiB locked: %s, resident: %s", yes(status_mib("VmLck") > 16), yes(status_mib("VmRSS") > 24));
  return 0;
}

struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  std::string rights, name;
};

std::vector<Mapping> mappings() {
  std::ifstream file("/proc/self/maps");
  std::vector<Mapping> all;
  for (std::string line; std::getline(file, line);) {
    Mapping one;
    char dash = 0;
    std::string offset;
    std::string device;
    std::string inode;
    std::istringstream words(line);
    words >> std::hex >> one.begin >> dash >> one.end >> one.rights >> offset >> device >> inode;
    std::getline(words >> std::ws, one.name);
    all.push_back(one);
  }
  return all;
}

/// Reads all of its memory that can be read, as a conservative collector or a checkpointer does.
int read_all(int, char**) {
  const Burners burners(1);
  exchange(0.1);
  std::uint64_t sum = 0;
  std::uint64_t unreadable = 0;
  std::size_t writable = 0;
  for (int n = 0; n < 3; ++n) {
    writable = 0;
    for (const Mapping& one : mappings()) {
      if (one.rights[0] != 'r' || one.name == "[vvar]" || one.name == "[vvar_vclock]" || one.name == "[vsyscall]") {
        continue;
      }
      writable += one.rights[1] == 'w' ? one.end - one.begin : 0;
      for (std::uintptr_t at = one.begin; at < one.end; at += page) {
        std::uint64_t word = 0;
        const iovec local{&word, sizeof word};
        const iovec remote{reinterpret_cast<void*>(at), sizeof word};
        unreadable += process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof word ? 0 : 1;
        sum += word;
      }
    }
  }
  say("unreadable words: %llu, writable memory of more than 200 MiB: %s%s", static_cast<unsigned long long>(unreadable),
      yes(writable > 200 * mib), sum == 1 ? "." : "");
  return 0;
}

/// No mapping can be written and executed.
int writable_code(int, char**) {
  exchange(0.3);
  int both = 0;
  for (const Mapping& one : mappings()) {
    both += one.rights[1] == 'w' && one.rights[2] == 'x' ? 1 : 0;
  }
  say("mappings that can be written and executed: %d", both);
  return 0;
}

constexpr std::size_t heap_pages = 512;
char* heap = nullptr;
std::atomic<int> faults{0};
std::atomic<int> strange_faults{0};

/// A collector's write barrier: pages are protected, the first store to each faults and is noted. Threads exchange
/// lines in those pages.
int write_barrier(int, char**) {
  heap = map(heap_pages * page);
  handle(SIGSEGV, [](int, siginfo_t* info, void*) {
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const auto begin = reinterpret_cast<std::uintptr_t>(heap);
    if (at < begin || at >= begin + heap_pages * page || info->si_code != SEGV_ACCERR) {
      ++strange_faults;
      _exit(3);
    }
    ++faults;
    mprotect(reinterpret_cast<void*>(at & ~(page - 1)), page, PROT_READ | PROT_WRITE);
  });
  const auto mutate = [](int word) {
    for (std::size_t n = 0; n < heap_pages; ++n) {
      for (int turn = 0; turn < 3000; ++turn) {
        __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(heap + n * page + 8 * word), 1U, __ATOMIC_RELAXED);
      }
    }
  };
  exchange(0.1);
  int least = 1 << 30;
  for (int cycle = 0; cycle < 20; ++cycle) {
    mprotect(heap, heap_pages * page, PROT_READ);
    const int before = faults;
    std::thread one(mutate, 0);
    std::thread other(mutate, 1);
    one.join();
    other.join();
    least = std::min(least, faults - before);
  }
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n < heap_pages; ++n) {
    sum += reinterpret_cast<std::uint64_t*>(heap + n * page)[0] + reinterpret_cast<std::uint64_t*>(heap + n * page)[1];
  }
  say("a fault for each page: %s, strange ones %d, sum %llu", yes(least >= static_cast<int>(heap_pages)),
      strange_faults.load(), static_cast<unsigned long long>(sum));
  return 0;
}

/// Pages that another thread fills at the first access.
int user_faults(int, char**) {
  const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  require(fd >= 0, "userfaultfd");
  uffdio_api api{};
  api.api = UFFD_API;
  require(ioctl(fd, UFFDIO_API, &api) == 0, "UFFDIO_API");
  char* memory = map(heap_pages * page);
  uffdio_register region{};
  region.range = {reinterpret_cast<std::uintptr_t>(memory), heap_pages * page};
  region.mode = UFFDIO_REGISTER_MODE_MISSING;
  require(ioctl(fd, UFFDIO_REGISTER, &region) == 0, "UFFDIO_REGISTER");
  static std::atomic<int> filled{0};
  std::thread([fd] {
    alignas(page) static char content[page];
    for (uffd_msg message{}; read(fd, &message, sizeof message) == sizeof message;) {
      std::memset(content, 7, page);
      uffdio_copy copy{};
      copy.dst = message.arg.pagefault.address & ~(page - 1);
      copy.src = reinterpret_cast<std::uintptr_t>(content);
      copy.len = page;
      filled += ioctl(fd, UFFDIO_COPY, &copy) == 0 ? 1 : 0;
    }
  }).detach();
  const Burners burners(1);
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n < heap_pages; ++n) {
    sum += static_cast<unsigned char>(static_cast<volatile char*>(memory)[n * page + n % page]);
    burn(0.0005);
  }
  say("sum %llu, filled %d", static_cast<unsigned long long>(sum), filled.load());
  return 0;
}

/// Pages of a file that others cut off: the first access to each raises SIGBUS, and the handler puts memory there.
int truncated_file(int, char**) {
  constexpr int pages = 200;
  static std::atomic<int> cut{0};
  static char* memory = nullptr;
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  require(ftruncate(fd, pages * page) == 0, "ftruncate");
  memory = static_cast<char*>(mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  const auto use = [](int word) {
    for (int turn = 0; turn < 40; ++turn) {
      for (int n = 0; n < pages; ++n) {
        for (int i = 0; i < 2000; ++i) {
          __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(memory + n * page) + word, 1U, __ATOMIC_RELAXED);
        }
      }
    }
  };
  std::thread other(use, 1);
  use(0);
  other.join();
  require(ftruncate(fd, 0) == 0, "ftruncate");
  handle(SIGBUS, [](int, siginfo_t* info, void*) {
    ++cut;
    void* begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page - 1));
    mmap(begin, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  });
  const Burners burners(1);
  use(0);
  std::uint64_t sum = 0;
  for (int n = 0; n < pages; ++n) {
    sum += *reinterpret_cast<std::uint64_t*>(memory + n * page);
  }
  say("pages cut off %d, sum %llu", cut.load(), static_cast<unsigned long long>(sum));
  return 0;
}

/// Many threads, and a file size limit of some blocks: no file exceeds it.
int small_files(int, char**) {
  const Burners burners(2);
  for (int n = 0; n < 20; ++n) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([] { burn(0.001); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  handle(SIGXFSZ, [](int) { put("the signal came\n"); });
  const int fd = open("file", O_WRONLY | O_CREAT, 0600);
  const std::vector<char> block(mib, 'x');
  const ssize_t written = write(fd, block.data(), block.size());
  const ssize_t more = write(fd, block.data(), block.size());
  say("written %zd, then %s", written, more < 0 ? std::strerror(errno) : "more");
  return 0;
}

/// Memory from sbrk grows without holes.
int program_break(int, char**) {
  exchange(0.2);
  char* begin = static_cast<char*>(sbrk(0));
  int holes = 0;
  for (int n = 0; n < 100; ++n) {
    holes += sbrk(page) == begin + n * static_cast<std::ptrdiff_t>(page) ? 0 : 1;
    burn(0.002);
  }
  say("holes %d", holes);
  return 0;
}

/// The part of the heap that malloc reports as in use holds only the program's own blocks.
int heap_in_use(int, char**) {
  const auto before = mallinfo2();
  exchange(0.4);
  for (int n = 0; n < 20; ++n) {
    std::thread([] { burn(0.01); }).join();
  }
  const auto after = mallinfo2();
  say("bytes in use grew by more than 4 KiB: %s", yes(after.uordblks > before.uordblks + 4096));
  return 0;
}

/// The main stack's growth is limited to the program's request.
int small_stack(int, char**) {
  exchange(0.2);
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  say("limit of the stack %zu KiB", static_cast<std::size_t>(limit.rlim_cur) / 1024);
  volatile char used[64 * 1024];
  std::memset(const_cast<char*>(used), 1, sizeof used);
  exchange(0.1);
  say("last byte %d", used[sizeof used - 1]);
  return 0;
}

/// A page that two threads exchange moves to and fro; its contents stay each time.
int moving_page(int, char**) {
  char* const places = map(4 * page);
  require(places != nullptr && munmap(places + page, page) == 0, "mmap");
  char* here = places;
  char* there = places + page;
  int wrong = 0;
  for (int n = 1; n <= 50; ++n) {
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(here);
    const auto add = [words] {
      for (int k = 0; k < 500'000; ++k) {
        ++*words;
      }
    };
    std::thread other(add);
    add();
    other.join();
    void* const moved = mremap(here, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, there);
    require(moved == there, "mremap");
    std::swap(here, there);
    wrong += *reinterpret_cast<std::uint64_t*>(here) == static_cast<std::uint64_t>(n) * 1'000'000 ? 0 : 1;
  }
  say("wrong %d", wrong);
  return 0;
}

/// Memory that one thread maps, protects, drops and truncates all the time, while two others store to it.
struct Restless {
  static constexpr std::size_t pages = 32;  // of anonymous memory, and as many of a file
  static constexpr std::size_t bytes = 2 * pages * page;
  static constexpr int access = PROT_READ | PROT_WRITE;
  inline static char* place = nullptr;
  inline static int file = -1;
  inline static std::atomic<std::uint64_t> faults{0}, strange_faults{0};
  inline static std::atomic<bool> stop{false};

  static void map_anew() {
    mmap(place, bytes / 2, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mmap(place + bytes / 2, bytes / 2, access, MAP_SHARED | MAP_FIXED, file, 0);
  }

  /// The one instruction that may fault.
  [[gnu::noinline, gnu::noclone]] static void store(char* line, std::size_t word) {
    asm volatile(".globl restless_store\nrestless_store: addq $1, (%0)" ::"r"(line + 8 * word) : "memory", "cc");
  }

  static void store_until_stopped(std::size_t word) {
    std::uint64_t random = word + 1;
    while (!stop) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      char* const line = place + (random >> 33U) % (bytes / 64) * 64;
      for (int i = 0; i < 20'000 && !stop; ++i) {
        store(line, word);
      }
    }
  }

  static void change_until_stopped() {
    std::uint64_t random = 7;
    while (!stop) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      char* const some = place + (random >> 33U) % (2 * pages) * page;
      switch ((random >> 50U) % 5) {
        case 0:
          mprotect(some, page, PROT_NONE);
          break;
        case 1:
          mmap(some, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
          break;
        case 2:
          madvise(some, page, MADV_DONTNEED);
          break;
        case 3:
          require(ftruncate(file, static_cast<off_t>((random >> 20U) % pages * page)) == 0, "ftruncate");
          require(ftruncate(file, bytes / 2) == 0, "ftruncate");
          break;
        default:
          map_anew();
      }
    }
  }
};
extern "C" const char restless_store[];

void mend_mapping(int, siginfo_t* info, void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const at = static_cast<const char*>(info->si_addr);
  const bool expected = registers[REG_RIP] == reinterpret_cast<greg_t>(restless_store) && at >= Restless::place &&
                        at < Restless::place + Restless::bytes;
  ++(expected ? Restless::faults : Restless::strange_faults);
  if (!expected && Restless::strange_faults > 100) {
    _exit(98);
  }
  Restless::map_anew();
}

/// Faults are the program's own, each at its one store.
int restless_mappings(int, char**) {
  Restless::file = memfd_create("restless", MFD_CLOEXEC);
  require(Restless::file >= 0 && ftruncate(Restless::file, Restless::bytes / 2) == 0, "memfd_create");
  Restless::place = map(Restless::bytes);
  Restless::map_anew();
  handle(SIGSEGV, mend_mapping);
  handle(SIGBUS, mend_mapping);
  std::vector<std::thread> threads;
  for (const std::size_t word : {0, 0, 3}) {
    threads.emplace_back(Restless::store_until_stopped, word);
  }
  threads.emplace_back(Restless::change_until_stopped);
  const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin < 2) {
    usleep(10'000);
  }
  Restless::stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  say("own faults: %s, strange ones: %s", yes(Restless::faults > 0), yes(Restless::strange_faults > 0));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"core_size", core_size},
                   {"crash", crash},
                   {"allocate", allocate},
                   {"address_space_left", address_space_left},
                   {"data_left", data_left},
                   {"lock_all", lock_all},
                   {"read_all", read_all},
                   {"writable_code", writable_code},
                   {"write_barrier", write_barrier},
                   {"user_faults", user_faults},
                   {"truncated_file", truncated_file},
                   {"small_files", small_files},
                   {"program_break", program_break},
                   {"heap_in_use", heap_in_use},
                   {"small_stack", small_stack},
                   {"moving_page", moving_page},
                   {"restless_mappings", restless_mappings}},
                  argc, argv);
}
