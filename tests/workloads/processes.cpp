// SPDX-License-Identifier: Apache-2.0
// Processes hand a baton round in shared memory, and its holder adds to a word in each of some lines: true sharing
// between processes, each line once a turn. The memory is anonymous and made before the fork, so that all have it at
// one address, or a memfd, a file or a System V segment that each child maps itself, each at an address of its own.
// With `--wake urgent` they also send each other SIGURG, which they handle, as PostgreSQL's processes do.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_processes = 64;
constexpr int max_lines = 1024;
constexpr std::uint64_t over = UINT64_MAX;

struct alignas(workload::line_bytes) Line {
  std::uint64_t word = 0;
};

/// The exchanged data. A baton's round tells that the lines are there.
struct Table {
  Line batons[max_processes];  // stored by the process before, read by the process itself
  Line lines[max_lines];
};

/// Memory for unmeasured data: the processes present, and each one's results in the end.
struct Ledger {
  struct alignas(workload::line_bytes) Entry {
    std::uint64_t turns = 0, passes = 0, address = 0, urged = 0;
    std::uint64_t pid = 0;  // stored before anybody is ready
  };
  Line ready;
  Entry entries[max_processes];
};

/// Sets up the table in the processes. `file` and `segment` are -1 for anonymous memory; `name` is the kernel's, in a
/// user's words.
struct Memory {
  int file = -1, segment = -1;
  std::string name = "anonymous shared memory";
  Table* table = nullptr;
  char* places = nullptr;  // each process maps a file at its own place, one after the other
};

/// A multiple of the page, but of no larger alignment of mappings.
constexpr std::size_t place_bytes = (sizeof(Table) / 4096 + 3) * 4096;

/// Returns the result of mmap, or exits.
void* mapped(void* memory, std::size_t bytes) {
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "processes: mmap of %zu bytes failed: %s\n", bytes, std::strerror(errno));
    std::exit(1);
  }
  return memory;
}

void* map_shared(std::size_t bytes, int file) {
  const int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
  return mapped(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0), bytes);
}

char* reserve(std::size_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  return static_cast<char*>(mapped(mmap(nullptr, bytes, PROT_NONE, flags, -1, 0), bytes));
}

/// A segment that is gone when the last process has.
Memory open_segment() {
  Memory memory;
  memory.segment = shmget(IPC_PRIVATE, sizeof(Table), IPC_CREAT | 0600);
  void* table = memory.segment < 0 ? nullptr : shmat(memory.segment, nullptr, 0);
  if (table == nullptr || table == MAP_FAILED) {
    std::fprintf(stderr, "processes: no System V segment for the table: %s\n", std::strerror(errno));
    std::exit(1);
  }
  shmctl(memory.segment, IPC_RMID, nullptr);
  memory.table = static_cast<Table*>(table);
  memory.name = "System V segment 0x00000000";  // of its key
  return memory;
}

Memory open_file(const std::string& kind) {
  Memory memory;
  int& file = memory.file;
  if (kind == "memfd") {
    file = memfd_create("table", MFD_CLOEXEC);
    memory.name = "memfd table";
  } else {
    const char* folder = std::getenv("TMPDIR");
    std::string name = std::string(folder != nullptr ? folder : "/tmp") + "/table-XXXXXX";
    file = mkostemp(name.data(), O_CLOEXEC);
    if (file >= 0) {
      unlink(name.c_str());  // nothing is left behind, however the program ends
    }
    memory.name = name;
  }
  if (file < 0 || ftruncate(file, sizeof(Table)) != 0) {
    std::fprintf(stderr, "processes: no %s for the table: %s\n", kind.c_str(), std::strerror(errno));
    std::exit(1);
  }
  return memory;
}

/// In a child: gives up the parent's mapping and maps the file anew, at an address of its own.
Table* map_own(const Memory& memory, int me) {
  if (memory.file < 0 && memory.segment < 0) {
    return memory.table;
  }
  void* place = memory.places + static_cast<std::size_t>(me) * place_bytes;
  if (memory.segment >= 0) {
    void* own = mapped(shmat(memory.segment, place, SHM_REMAP), sizeof(Table));
    shmdt(memory.table);
    return static_cast<Table*>(own);
  }
  const int flags = MAP_SHARED | MAP_FIXED;
  void* own = mapped(mmap(place, sizeof(Table), PROT_READ | PROT_WRITE, flags, memory.file, 0), sizeof(Table));
  munmap(memory.table, sizeof(Table));
  return static_cast<Table*>(own);
}

std::uint64_t await_baton(const Line& baton, std::uint64_t round, bool yields) {
  unsigned spins = 0;
  for (;;) {
    const std::uint64_t word = __atomic_load_n(&baton.word, __ATOMIC_ACQUIRE);
    if (word == round || word == over) {
      return word;
    }
    workload::relax(spins, yields);
  }
}

constexpr int add_line = __LINE__ + 3;
void add_to_lines(Table& table, int lines) {
  for (int n = 0; n < lines; ++n) {
    __atomic_fetch_add(&table.lines[n].word, 1U, __ATOMIC_RELAXED);
  }
}

/// Every process has read its baton before any stores to one, so the copy that a store takes away is known.
void await_all(Ledger& ledger, const Line& baton, int processes) {
  __atomic_load_n(&baton.word, __ATOMIC_ACQUIRE);
  __atomic_add_fetch(&ledger.ready.word, 1U, __ATOMIC_ACQ_REL);
  for (unsigned spins = 0;
       __atomic_load_n(&ledger.ready.word, __ATOMIC_ACQUIRE) != static_cast<std::uint64_t>(processes);) {
    workload::relax(spins, true);
  }
}

struct Race {
  int processes = 0, lines = 0;
  bool yields = false, urges = false;
  Deadline deadline;
};

volatile sig_atomic_t urged = 0;  // of each process its own

void handle_urgent() {
  struct sigaction action {};
  action.sa_handler = [](int) { urged = urged + 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGURG, &action, nullptr);
}

/// Runs until the baton says that the race is over. Process 0 begins each round and, when the time is up, ends it.
void run(int me, const Race& race, Table& table, Ledger& ledger) {
  if (race.urges) {
    handle_urgent();
    ledger.entries[me].pid = static_cast<std::uint64_t>(getpid());
  }
  await_all(ledger, table.batons[me], race.processes);
  Line& next = table.batons[(me + 1) % race.processes];
  Ledger::Entry done;
  done.address = reinterpret_cast<std::uint64_t>(&table);
  for (std::uint64_t round = 1;; ++round) {
    const bool first = me == 0 && round == 1;
    const std::uint64_t expected = me == 0 ? round - 1 : round;
    std::uint64_t word = first ? expected : await_baton(table.batons[me], expected, race.yields);
    if (word != over) {
      ++done.turns;
      add_to_lines(table, race.lines);
      const bool stop = me == 0 && (round & 63U) == 0 && race.deadline.passed();
      word = stop ? over : round;
    } else if (me == 0) {
      break;  // it has been all the way round
    }
    ++done.passes;
    if (race.urges && (round & 63U) == 1 && word != over) {  // the next one waits for us: it is there
      kill(static_cast<pid_t>(ledger.entries[(me + 1) % race.processes].pid), SIGURG);
    }
    __atomic_store_n(&next.word, word, __ATOMIC_RELEASE);
    if (word == over && me != 0) {
      break;
    }
  }
  done.urged = static_cast<std::uint64_t>(urged);
  ledger.entries[me] = done;
}

pid_t start(int me, const Race& race, const Memory& memory, Ledger& ledger, const std::vector<pid_t>& so_far) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    std::fprintf(stderr, "processes: fork %d failed: %s\n", me + 1, std::strerror(errno));
    for (const pid_t other : so_far) {
      kill(other, SIGKILL);
    }
    std::exit(1);
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody goes on waiting for a baton that will not come
    if (getppid() != parent) {
      _exit(1);
    }
    run(me, race, *map_own(memory, me), ledger);
    std::exit(0);
  }
  return child;
}

/// True if all have ended well; the first failure ends the others.
bool join(const std::vector<pid_t>& children) {
  bool all_well = true;
  for (std::size_t n = 0; n < children.size(); ++n) {
    int status = 0;
    const bool well = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && all_well) {
      all_well = false;
      for (const pid_t other : children) {
        kill(other, SIGKILL);
      }
    }
  }
  return all_well;
}

/// A member of all processes' entries, as JSON.
std::string column_text(const char* name, const Ledger& ledger, int processes, std::uint64_t Ledger::Entry::*member) {
  std::string text;
  for (int n = 0; n < processes; ++n) {
    text += (n > 0 ? "," : "") + std::to_string(ledger.entries[n].*member);
  }
  return std::string("\"") + name + "\":[" + text + "]";
}

void print_truth(const Race& race, const Memory& memory, const Ledger& ledger, const std::vector<pid_t>& children,
                 const std::string& kind) {
  const auto lines = static_cast<std::uint64_t>(race.lines);
  Truth truth("processes", race.processes + 1);
  truth.add_data(memory.name, memory.table, sizeof(Table));
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = add_line;
  for (int me = 0; me < race.processes; ++me) {
    workload::note_thread(me + 1, children[static_cast<std::size_t>(me)]);
    const int before = (me + race.processes - 1) % race.processes;
    const std::uint64_t passed = ledger.entries[before].passes;
    const std::uint64_t unseen = me == 0 ? 1 : 0;  // process 0's first turn finds lines that nobody has stored to
    truth.add_true(before + 1, me + 1, passed + (ledger.entries[me].turns - unseen) * lines);
    truth.add_invalidations(before + 1, me + 1, passed);
  }
  truth.print(race.deadline.elapsed(), R"("memory":")" + kind + R"(",)" +
                                           column_text("addresses", ledger, race.processes, &Ledger::Entry::address) +
                                           "," + column_text("urged", ledger, race.processes, &Ledger::Entry::urged));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("processes", "processes hand a baton round in memory that they share");
  flags.number("--threads", 2, 2, max_processes, "processes, of one thread each");
  flags.number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--lines", 64, 1, max_lines, "lines that travel with the baton");
  flags.choice("--memory", {"anonymous", "memfd", "file", "sysv"}, "what is shared");
  flags.choice("--wait", {"spin", "yield"}, "how a process waits for the baton");
  flags.choice("--wake", {"never", "urgent"}, "signals that they send each other");
  flags.parse(argc, argv);
  const std::string& kind = flags.word("--memory");
  Race race{flags.integer("--threads"), flags.integer("--lines"), flags.word("--wait") == "yield",
            flags.word("--wake") == "urgent", Deadline(flags.real("--seconds"))};

  Memory memory = kind == "anonymous" ? Memory{} : kind == "sysv" ? open_segment() : open_file(kind);
  if (memory.table == nullptr) {
    memory.table = static_cast<Table*>(map_shared(sizeof(Table), memory.file));
  }
  memory.places = reserve(place_bytes * max_processes);
  auto& ledger = *static_cast<Ledger*>(map_shared(sizeof(Ledger), -1));
  std::vector<pid_t> children;
  children.reserve(static_cast<std::size_t>(race.processes));
  for (int me = 0; me < race.processes; ++me) {
    children.push_back(start(me, race, memory, ledger, children));
  }
  if (!join(children)) {
    std::fprintf(stderr, "processes: a child did not end well\n");
    return 1;
  }
  print_truth(race, memory, ledger, children, kind);
}
