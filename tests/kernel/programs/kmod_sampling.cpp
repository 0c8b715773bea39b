// SPDX-License-Identifier: Apache-2.0
// Contents of samples, their receivers, and their delivery: ring, read, poll, signal.
#include <linux/perf_event.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <set>
#include <thread>

#include "kmod_context.h"

using namespace kmod_test;

namespace {

alignas(64) std::uint64_t the_word = 0;

using Samples = std::vector<crosstalk_ibs_sample>;

Samples sampled(const crosstalk_ibs_setup& setup, std::uint64_t count, std::uint64_t* word = &the_word) {
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  if (!CHECK(context.map() != nullptr)) {
    return {};
  }
  CHECK_EQUAL(context.enable(), 0);
  store_until_sampled(word, context, count);
  CHECK_EQUAL(context.disable(), 0);
  const crosstalk_ibs_status status = context.status();
  CHECK_EQUAL(status.lost + status.throttled, 0U);
  CHECK(status.handler_ns > 0);
  Samples samples = context.drain();
  CHECK_EQUAL(samples.size(), status.samples);
  return samples;
}

/// How many are of the loop's store to `word`; each of those must have it right.
std::size_t stores_to(const Samples& samples, const std::uint64_t* word) {
  const auto begin = reinterpret_cast<std::uint64_t>(&store_often);
  std::size_t found = 0;
  for (const crosstalk_ibs_sample& sample : samples) {
    if (sample.ip < begin || sample.ip >= begin + 32 || (sample.flags & CROSSTALK_IBS_S_STORE) == 0) {
      continue;
    }
    CHECK_EQUAL(sample.address, reinterpret_cast<std::uint64_t>(word));
    CHECK_EQUAL(static_cast<unsigned>(sample.width), 8U);
    CHECK((sample.flags & CROSSTALK_IBS_S_LOAD) == 0);
    CHECK((sample.flags & CROSSTALK_IBS_S_ADDRESS) != 0);
    ++found;
  }
  return found;
}

void check_head(const crosstalk_ibs_sample& sample, const crosstalk_ibs_setup& setup) {
  CHECK_EQUAL(static_cast<unsigned>(sample.version), 1U);
  CHECK_EQUAL(static_cast<std::size_t>(sample.size), sizeof(sample));
  CHECK_EQUAL(sample.pid, static_cast<unsigned>(getpid()));
  CHECK_EQUAL(sample.tid, static_cast<unsigned>(thread_id()));
  CHECK(sample.cpu < 2);
  CHECK_EQUAL(static_cast<unsigned>(sample.flavour), setup.flavour);
  CHECK((sample.flags & CROSSTALK_IBS_S_EMULATED) != 0);
  CHECK((sample.flags & CROSSTALK_IBS_S_IP) != 0);
  CHECK(sample.period >= setup.period - setup.random);
  CHECK_EQUAL(sample.physical, 0U);
  CHECK_EQUAL(sample.branch_target, 0U);
}

void content() {
  const crosstalk_ibs_setup setup = usual_setup();
  const auto began = static_cast<std::uint64_t>(seconds_of(CLOCK_MONOTONIC) * 1e9);
  const Samples samples = sampled(setup, 1000);
  std::uint64_t time = began - 1'000'000;
  std::set<std::uint64_t> periods;
  for (const crosstalk_ibs_sample& sample : samples) {
    check_head(sample, setup);
    CHECK((sample.flags & CROSSTALK_IBS_S_USER) != 0);
    CHECK(sample.time > time);
    time = sample.time;
    periods.insert(sample.period);
  }
  CHECK(samples.size() >= 1000);
  CHECK(periods.size() > samples.size() / 2);  // drawn anew for each
  const std::size_t stores = stores_to(samples, &the_word);
  CHECK_FOUND(stores > samples.size() / 2, std::to_string(stores) + " of " + std::to_string(samples.size()));
}

void fetches() {
  crosstalk_ibs_setup setup = usual_setup();
  setup.flavour = CROSSTALK_IBS_FETCH;
  const Samples samples = sampled(setup, 200);
  CHECK(samples.size() >= 200);
  for (const crosstalk_ibs_sample& sample : samples) {
    check_head(sample, setup);
    CHECK_EQUAL(sample.address, sample.ip);
    CHECK((sample.flags & CROSSTALK_IBS_S_COMPLETE) != 0);
  }
}

void memory_only() {
  crosstalk_ibs_setup setup = usual_setup();
  setup.flags = CROSSTALK_IBS_MEMORY_ONLY;
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  CHECK(store_until(&the_word, [&] {
    count_often(20'000);
    const crosstalk_ibs_status status = context.status();
    return status.samples > 50 && status.filtered > 50;
  }));
  CHECK_EQUAL(context.disable(), 0);
  const Samples samples = context.drain();
  CHECK(samples.size() > 50);
  for (const crosstalk_ibs_sample& sample : samples) {
    CHECK((sample.flags & CROSSTALK_IBS_S_ADDRESS) != 0);
    CHECK((sample.flags & (CROSSTALK_IBS_S_LOAD | CROSSTALK_IBS_S_STORE)) != 0);
  }
}

/// Samples of a thread that is mostly in the kernel: {user's, kernel's, filtered}.
std::array<std::uint64_t, 3> in_kernel(unsigned flags) {
  crosstalk_ibs_setup setup = usual_setup();
  setup.flags = flags;
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  CHECK(store_until(&the_word, [&] {
    for (int i = 0; i < 100; ++i) {
      (void)syscall(SYS_getppid);
    }
    const crosstalk_ibs_status status = context.status();
    return status.samples + status.filtered > 400;
  }));
  CHECK_EQUAL(context.disable(), 0);
  std::array<std::uint64_t, 3> counts{0, 0, context.status().filtered};
  for (const crosstalk_ibs_sample& sample : context.drain()) {
    const bool user = (sample.flags & CROSSTALK_IBS_S_USER) != 0;
    CHECK_EQUAL(user, static_cast<std::int64_t>(sample.ip) >= 0);
    ++counts[user ? 0 : 1];
  }
  return counts;
}

void modes() {
  const auto user_only = in_kernel(0);
  CHECK_EQUAL(user_only[1], 0U);
  CHECK_FOUND(user_only[2] > 20, std::to_string(user_only[2]));
  const auto both = in_kernel(CROSSTALK_IBS_KERNEL);
  CHECK_FOUND(both[1] > 20, std::to_string(both[1]));
}

void full_ring() {
  crosstalk_ibs_setup setup = usual_setup();
  setup.records = 32;
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK(context.map() != nullptr);
  CHECK_EQUAL(context.enable(), 0);
  const auto lost = [&context](std::uint64_t count) { return [&, count] { return context.status().lost >= count; }; };
  CHECK(store_until(&the_word, lost(100)));
  const Samples oldest = context.drain();
  CHECK_EQUAL(oldest.size(), 32U);
  CHECK(store_until(&the_word, lost(200)));
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.ring()->lost, context.status().lost);
  const Samples newer = context.drain();
  if (CHECK(!oldest.empty() && !newer.empty())) {
    // The newest were dropped: the kept ones are contiguous, and the gap is before the samples after the read.
    CHECK(newer.front().time - oldest.back().time > 100 * (setup.period - setup.random));
    CHECK(newer.front().time - oldest.back().time > oldest.back().time - oldest.front().time);
  }
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_RESET), 0);
  CHECK_EQUAL(context.status().lost + context.status().samples + context.ring()->lost + context.ring()->head, 0U);
}

/// A consumer that writes nonsense into the header loses samples and nothing else.
void hostile_consumer() {
  Context context;
  crosstalk_ibs_setup setup = usual_setup();
  setup.records = 32;
  CHECK_EQUAL(context.setup(setup), 0);
  crosstalk_ibs_ring* ring = context.map();
  if (!CHECK(ring != nullptr)) {
    return;
  }
  CHECK_EQUAL(context.enable(), 0);
  for (const std::uint64_t tail : {1ULL, ~0ULL, 1ULL << 63, 0xffffffffULL, 31ULL}) {
    std::memset(static_cast<void*>(ring), 0xff, sizeof(*ring));
    ring->tail = tail;
    const crosstalk_ibs_status before = context.status();
    CHECK(store_until(&the_word, [&] {
      const crosstalk_ibs_status now = context.status();
      return now.samples + now.lost >= before.samples + before.lost + 40;
    }));
    std::array<crosstalk_ibs_sample, 64> records{};
    const ssize_t bytes = read(context.fd(), records.data(), sizeof(records));
    CHECK(bytes >= 0 && bytes <= static_cast<ssize_t>(32 * sizeof(records[0])));
  }
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_RESET), 0);
  CHECK_EQUAL(ring->records, 32U);
}

/// 'S' is asleep, 'R' runs or would run.
char state_of_thread(pid_t tid) {
  std::array<char, 256> text{};
  const int fd = open(("/proc/self/task/" + std::to_string(tid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = read(fd, text.data(), text.size() - 1);
  close(fd);
  const char* end_of_name = bytes > 0 ? std::strrchr(text.data(), ')') : nullptr;
  return end_of_name != nullptr ? end_of_name[2] : '?';
}

/// A thread that has a context, and works for it only after another one has gone to sleep over it: that waiting is
/// sleeping is then seen, whatever the load is.
class SleeperFed {
 public:
  static constexpr unsigned kWatermark = 16;

  explicit SleeperFed(pid_t sleeper) : worker_([this, sleeper] { work(sleeper); }) {
    while (context_ == nullptr) {
      sched_yield();
    }
  }
  SleeperFed(const SleeperFed&) = delete;
  SleeperFed& operator=(const SleeperFed&) = delete;
  ~SleeperFed() {
    done_ = true;
    worker_.join();
  }
  const Context& context() const { return *context_.load(); }

  /// Calls `wait`, for which there is nothing yet.
  template <typename Wait>
  void sleep_in(Wait wait) {
    while (works_) {
      usleep(1'000);
    }
    pollfd poll_fd{context().fd(), POLLIN, 0};
    while (poll(&poll_fd, 1, 0) == 1) {
      (void)read(context().fd(), records_.data(), sizeof(records_));
    }
    works_ = true;
    wait();
    fed_ = true;
  }

 private:
  void work(pid_t sleeper) {
    Context context;
    crosstalk_ibs_setup setup = usual_setup();
    setup.watermark = kWatermark;
    CHECK_EQUAL(context.setup(setup), 0);
    context_ = &context;
    while (!done_) {
      usleep(1'000);
      if (works_) {
        fed_ = false;
        const double end = seconds_of(CLOCK_MONOTONIC) + 20;
        while (state_of_thread(sleeper) != 'S') {
          if (!CHECK_FOUND(seconds_of(CLOCK_MONOTONIC) < end, "waiting must be sleeping")) {
            break;
          }
          usleep(1'000);
        }
        CHECK_EQUAL(context.enable(), 0);  // not before: looking is work, too
        CHECK(store_until(&the_word, [this] { return fed_.load(); }));
        CHECK_EQUAL(context.disable(), 0);
        works_ = false;
      }
    }
  }

  std::atomic<const Context*> context_{nullptr};
  std::atomic<bool> works_{false};
  std::atomic<bool> fed_{false};
  std::atomic<bool> done_{false};
  std::array<crosstalk_ibs_sample, 64> records_{};
  std::thread worker_;
};

void reading() {
  SleeperFed fed(thread_id());
  const Context& context = fed.context();
  std::array<crosstalk_ibs_sample, 64> records{};
  const auto read_some = [&] { return read(context.fd(), records.data(), sizeof(records)); };
  constexpr ssize_t kLeast = SleeperFed::kWatermark * sizeof(records[0]);
  for (int i = 0; i < 5; ++i) {
    fed.sleep_in([&] {
      pollfd poll_fd{context.fd(), POLLIN, 0};
      CHECK_EQUAL(poll(&poll_fd, 1, -1), 1);
      CHECK_EQUAL(poll_fd.revents, POLLIN);
      const ssize_t bytes = read_some();
      CHECK_FOUND(bytes >= kLeast, std::to_string(bytes));
    });
    fed.sleep_in([&] {
      const ssize_t bytes = read_some();  // sleeps until there are as many as the watermark says
      CHECK(bytes >= kLeast && bytes % static_cast<ssize_t>(sizeof(records[0])) == 0);
    });
  }
}

// ---- signals ----

struct Received {
  std::atomic<int> signals{0};
  std::atomic<int> wrong{0};
};
thread_local Received* received = nullptr;
thread_local std::uint64_t expected_cookie = 0;

void on_signal(int /*signal*/, siginfo_t* info, void* /*context*/) {
  if (received == nullptr) {
    ++failures;
    return;
  }
  ++received->signals;
  if (info->si_code != SI_ASYNCIO || reinterpret_cast<std::uint64_t>(info->si_value.sival_ptr) != expected_cookie) {
    ++received->wrong;
  }
}

void install(int signal) {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void signalled_thread(int signal, std::uint64_t cookie) {
  Received mine;
  expected_cookie = cookie;
  received = &mine;
  crosstalk_ibs_setup setup = usual_setup();
  setup.signal = static_cast<unsigned>(signal);
  setup.cookie = cookie;
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK_EQUAL(context.enable(), 0);
  std::uint64_t word = 0;
  CHECK(store_until(&word, [&] { return mine.signals >= 50; }));
  CHECK_EQUAL(context.disable(), 0);
  context.reset();  // nothing is sent after the file is closed
  received = nullptr;
  CHECK_EQUAL(mine.wrong.load(), 0);
}

void signals() {
  install(SIGRTMIN + 3);
  install(SIGPROF);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) {
    threads.emplace_back([i] { signalled_thread(i % 2 == 0 ? SIGRTMIN + 3 : SIGPROF, 0x1234'5678'9abc'0000 + i); });
  }
  std::atomic<bool> done{false};
  std::thread bystander([&] {  // has no context: a signal to it is a failure
    while (!done) {
      store_often(&the_word, 100'000);
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  bystander.join();
}

/// A thread that blocks the signal has one of it pending, not a queue of thousands.
void blocked_signal() {
  install(SIGRTMIN + 3);
  Received mine;
  expected_cookie = 77;
  received = &mine;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  crosstalk_ibs_setup setup = usual_setup();
  setup.signal = static_cast<unsigned>(SIGRTMIN + 3);
  setup.cookie = 77;
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK_EQUAL(context.enable(), 0);
  store_until_sampled(&the_word, context, 100);
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.status().signals, 1U);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  CHECK_EQUAL(mine.signals.load(), 1);
  received = nullptr;
}

// ---- shares ----

void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  CHECK_EQUAL(error_of(sched_setaffinity(0, sizeof(set), &set)), 0);
}

/// perf's own timer on the calling thread, an hrtimer as the module's: it measures the thread's share of the CPU, even
/// if the host delays the guest's interrupts.
class Reference {
 public:
  explicit Reference(std::uint64_t period) {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = period;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
    CHECK(fd_ >= 0);
    void* place = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    CHECK(place != MAP_FAILED);
    page_ = static_cast<perf_event_mmap_page*>(place);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() {
    munmap(page_, kBytes);
    close(fd_);
  }
  /// A sample of no fields is a header.
  std::uint64_t samples() const {
    return __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE) / sizeof(perf_event_header);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{65} * 4096;
  int fd_ = -1;
  perf_event_mmap_page* page_ = nullptr;
};

/// The module's intervals that the calling thread ran for, for each of the reference's. `move` is called now and then.
template <typename Move>
double share(std::uint64_t* word, std::set<unsigned>* cpus, Move move) {
  crosstalk_ibs_setup setup = usual_setup();
  setup.period = 1'000'000;
  Context context;
  CHECK_EQUAL(context.setup(setup), 0);
  CHECK(context.map() != nullptr);
  const Reference reference(setup.period);
  CHECK_EQUAL(context.enable(), 0);
  const std::uint64_t before = reference.samples();
  std::uint64_t counted = 0;
  CHECK(store_until(word, [&] {
    move();
    counted = reference.samples() - before;
    return counted >= 600;
  }));
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.status().lost + context.status().throttled, 0U);
  double stood_for = static_cast<double>(context.status().filtered * setup.period);
  for (const crosstalk_ibs_sample& sample : context.drain()) {
    CHECK_EQUAL(sample.tid, static_cast<unsigned>(thread_id()));
    cpus->insert(sample.cpu);
    stood_for += static_cast<double>(sample.period);
  }
  return stood_for / static_cast<double>(setup.period * counted);
}

void check_share(const char* what, double found) {
  std::printf("%s: %.3f samples for each of perf's\n", what, found);
  CHECK_FOUND(found > 0.9 && found < 1.1, std::string(what) + " " + std::to_string(found));
}

void pinned_and_moving() {
  std::set<unsigned> one;
  std::set<unsigned> both;
  std::thread([&] {
    run_on(0);
    check_share("pinned", share(&the_word, &one, [] {}));
  }).join();
  std::thread([&] {
    int calls = 0;
    check_share("moving", share(&the_word, &both, [&] { run_on(++calls / 50 % 2); }));
  }).join();
  CHECK_EQUAL(one.size(), 1U);
  CHECK_EQUAL(both.size(), 2U);
}

/// Each of several threads, more than there are CPUs, gets its own share.
void shares() {
  constexpr std::size_t kThreads = 6;
  std::array<double, kThreads> found{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([i, &found] {
      std::uint64_t word = 0;
      std::set<unsigned> cpus;
      found[i] = share(&word, &cpus, [] {});
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const double value : found) {
    check_share("one of six threads", value);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_checks({{"content", content},
                     {"fetches", fetches},
                     {"memory_only", memory_only},
                     {"modes", modes},
                     {"full_ring", full_ring},
                     {"hostile_consumer", hostile_consumer},
                     {"reading", reading},
                     {"signals", signals},
                     {"blocked_signal", blocked_signal},
                     {"pinned_and_moving", pinned_and_moving},
                     {"shares", shares}},
                    argc, argv);
}
