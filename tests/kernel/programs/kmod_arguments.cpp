// SPDX-License-Identifier: Apache-2.0
// Every call with wrong arguments: the errno that crosstalk_ibs.h names, and nothing changed.
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "kmod_context.h"

using namespace kmod_test;

namespace {

struct WrongSetup {
  const char* what;
  int error;
  std::function<void(crosstalk_ibs_setup&)> change;
};

// Beyond the emulation's abilities: it has no hardware filters, and periods of 20 us to 100 ms.
const WrongSetup kWrongSetups[] = {
    {"size 0", EINVAL, [](auto& s) { s.size = 0; }},
    {"size too small", EINVAL, [](auto& s) { s.size = sizeof(s) - 8; }},
    {"size too large", EINVAL, [](auto& s) { s.size = sizeof(s) + 8; }},
    {"no such flavour", EINVAL, [](auto& s) { s.flavour = 2; }},
    {"flavour -1", EINVAL, [](auto& s) { s.flavour = ~0U; }},
    {"unknown flag", EINVAL, [](auto& s) { s.flags = 1U << 5; }},
    {"all flags", EINVAL, [](auto& s) { s.flags = ~0U; }},
    {"reserved0", EINVAL, [](auto& s) { s.reserved0 = 1; }},
    {"reserved[3]", EINVAL, [](auto& s) { s.reserved[3] = 1; }},
    {"SIGKILL", EINVAL, [](auto& s) { s.signal = SIGKILL; }},
    {"SIGSTOP", EINVAL, [](auto& s) { s.signal = SIGSTOP; }},
    {"signal 65", EINVAL, [](auto& s) { s.signal = 65; }},
    {"signal -1", EINVAL, [](auto& s) { s.signal = ~0U; }},
    {"no records", EINVAL, [](auto& s) { s.records = 0; }},
    {"1000 records", EINVAL, [](auto& s) { s.records = 1000; }},
    {"16 records", ERANGE, [](auto& s) { s.records = 16; }},
    {"2^21 records", ERANGE, [](auto& s) { s.records = 1U << 21; }},
    {"2^31 records", ERANGE, [](auto& s) { s.records = 1U << 31; }},
    {"watermark beyond the ring", ERANGE, [](auto& s) { s.watermark = s.records + 1; }},
    {"period 0", ERANGE, [](auto& s) { s.period = 0; }},
    {"period too short", ERANGE, [](auto& s) { s.period = 19'999, s.random = 0; }},
    {"period too long", ERANGE, [](auto& s) { s.period = 100'000'001, s.random = 0; }},
    {"period -1", ERANGE, [](auto& s) { s.period = ~0ULL; }},
    {"random below the bound", ERANGE, [](auto& s) { s.period = 100'000, s.random = 80'001; }},
    {"random above the bound", ERANGE, [](auto& s) { s.period = 99'000'000, s.random = 1'000'001; }},
    {"random -1", ERANGE, [](auto& s) { s.random = ~0ULL; }},
    {"counting ops", EOPNOTSUPP, [](auto& s) { s.flags = CROSSTALK_IBS_COUNT_OPS; }},
    {"L3 misses", EOPNOTSUPP, [](auto& s) { s.flags = CROSSTALK_IBS_L3_MISS; }},
    {"load latency", EOPNOTSUPP, [](auto& s) { s.load_latency = 128; }},
    {"ops of fetches", EINVAL, [](auto& s) { s.flavour = CROSSTALK_IBS_FETCH, s.flags = CROSSTALK_IBS_COUNT_OPS; }},
    {"latency of fetches", EINVAL, [](auto& s) { s.flavour = CROSSTALK_IBS_FETCH, s.load_latency = 200; }},
};

void wrong_setups() {
  for (const WrongSetup& wrong : kWrongSetups) {
    Context context;
    crosstalk_ibs_setup setup = usual_setup();
    wrong.change(setup);
    const int error = context.setup(setup);
    CHECK_FOUND(error == wrong.error, std::string(wrong.what) + ": " + std::strerror(error));
    CHECK_EQUAL(context.status().state, 0U);
    CHECK_EQUAL(context.status().ring_bytes, 0U);
    CHECK_EQUAL(context.setup(usual_setup()), 0);  // nothing was taken: neither the context nor the thread's place
    CHECK_EQUAL(context.status().state, CROSSTALK_IBS_SET_UP);
  }
}

void bad_pointers() {
  Context context;
  void* hole = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const char* edge = static_cast<const char*>(hole) + 4096 - 8;
  for (const void* place : {static_cast<const void*>(nullptr), static_cast<const void*>(hole),
                            static_cast<const void*>(edge), reinterpret_cast<const void*>(0xffff888000000000)}) {
    CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_INFO, place), EFAULT);
    CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_SETUP, place), EFAULT);
    CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_STATUS, place), EFAULT);
  }
  for (const unsigned long command : {CROSSTALK_IBS_IOC_ENABLE, CROSSTALK_IBS_IOC_DISABLE, CROSSTALK_IBS_IOC_RESET}) {
    CHECK_EQUAL(context.call(command, edge), EINVAL);
  }
  CHECK_EQUAL(context.status().state, 0U);
}

void unknown_commands() {
  Context context;
  for (const unsigned long command :
       {0UL, 1UL, ~0UL, static_cast<unsigned long>(TCGETS), static_cast<unsigned long>(_IO(CROSSTALK_IBS_MAGIC, 6)),
        static_cast<unsigned long>(_IO(CROSSTALK_IBS_MAGIC, 1)),
        static_cast<unsigned long>(_IOW(CROSSTALK_IBS_MAGIC, 1, int)),
        static_cast<unsigned long>(_IOR(CROSSTALK_IBS_MAGIC, 1, crosstalk_ibs_setup))}) {
    CHECK_EQUAL(context.call(command), ENOTTY);
  }
}

void before_setup() {
  Context context;
  char buffer[1024];
  CHECK_EQUAL(context.enable(), ENXIO);
  CHECK_EQUAL(context.disable(), ENXIO);
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_RESET), ENXIO);
  CHECK_EQUAL(error_of(read(context.fd(), buffer, sizeof(buffer))), ENXIO);
  CHECK_EQUAL(error_of(write(context.fd(), buffer, sizeof(buffer))), EINVAL);
  CHECK_EQUAL(error_of(lseek(context.fd(), 0, SEEK_SET)), ESPIPE);
  CHECK(mmap(nullptr, 8192, PROT_READ, MAP_SHARED, context.fd(), 0) == MAP_FAILED && errno == ENXIO);
  pollfd poll_fd{context.fd(), POLLIN, 0};
  CHECK_EQUAL(poll(&poll_fd, 1, 0), 1);
  CHECK_EQUAL(poll_fd.revents, POLLERR);
}

int map_error(const Context& context, std::size_t bytes, int protection, int flags, off_t offset) {
  void* place = mmap(nullptr, bytes, protection, flags, context.fd(), offset);
  if (place == MAP_FAILED) {
    return errno;
  }
  munmap(place, bytes);
  return 0;
}

void wrong_mappings() {
  Context context;
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  const std::size_t bytes = context.status().ring_bytes;
  CHECK_EQUAL(bytes, 4096U + 4096U * 128U);
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  CHECK_EQUAL(map_error(context, bytes, kBoth, MAP_SHARED, 0), 0);
  CHECK_EQUAL(map_error(context, bytes, PROT_READ, MAP_SHARED, 0), 0);
  CHECK_EQUAL(map_error(context, bytes, kBoth, MAP_PRIVATE, 0), EINVAL);
  CHECK_EQUAL(map_error(context, bytes + 4096, kBoth, MAP_SHARED, 0), EINVAL);
  CHECK_EQUAL(map_error(context, bytes - 4096, kBoth, MAP_SHARED, 0), EINVAL);
  CHECK_EQUAL(map_error(context, bytes, kBoth, MAP_SHARED, 4096), EINVAL);
  CHECK_EQUAL(map_error(context, bytes, kBoth | PROT_EXEC, MAP_SHARED, 0), EPERM);
  crosstalk_ibs_ring* ring = context.map();
  if (CHECK(ring != nullptr)) {
    CHECK_EQUAL(error_of(mprotect(ring, bytes, PROT_READ | PROT_EXEC)), EACCES);
    CHECK(mremap(ring, bytes, bytes + 4096, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    CHECK_EQUAL(ring->version, 1U);
    CHECK_EQUAL(ring->record_size, 128U);
    CHECK_EQUAL(ring->records, 4096U);
  }
}

void wrong_moments() {
  Context context;
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK_EQUAL(context.setup(usual_setup()), EBUSY);
  Context second;
  CHECK_EQUAL(second.setup(usual_setup()), EBUSY);  // one of a flavour for a thread
  CHECK_EQUAL(second.status().state, 0U);
  crosstalk_ibs_setup fetch = usual_setup();
  fetch.flavour = CROSSTALK_IBS_FETCH;
  CHECK_EQUAL(second.setup(fetch), 0);
  std::thread([] {
    Context other;
    CHECK_EQUAL(other.setup(usual_setup()), 0);
  }).join();
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.enable(), 0);
  CHECK_EQUAL(context.enable(), 0);
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_RESET), EBUSY);
  CHECK_EQUAL(context.status().state, CROSSTALK_IBS_SET_UP | CROSSTALK_IBS_ENABLED);
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.disable(), 0);
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_RESET), 0);
  context.reset();
  Context third;
  CHECK_EQUAL(third.setup(usual_setup()), 0);  // the place of the closed one
}

void short_reads() {
  Context context(O_RDWR | O_NONBLOCK);
  char buffer[127];
  CHECK_EQUAL(context.setup(usual_setup()), 0);
  CHECK_EQUAL(error_of(read(context.fd(), buffer, sizeof(buffer))), EINVAL);
  char record[128];
  CHECK_EQUAL(error_of(read(context.fd(), record, sizeof(record))), EAGAIN);
}

/// Until the user's bound is reached, and again after all is closed.
void memory_bound() {
  for (int round = 0; round < 2; ++round) {
    crosstalk_ibs_setup setup = usual_setup();
    setup.records = 1U << 18;  // 32 MiB and a page: one fits into the default of 64 MiB, two do not
    Context first;
    CHECK_EQUAL(first.setup(setup), 0);
    Context second;
    setup.flavour = CROSSTALK_IBS_FETCH;
    CHECK_EQUAL(second.setup(setup), EDQUOT);
    setup.records = 1U << 17;
    CHECK_EQUAL(second.setup(setup), 0);
  }
}

/// As user 65534, at a level of perf_event_paranoid: errno of SETUP with these flags.
int unprivileged(int level, unsigned flags) {
  FILE* file = std::fopen("/proc/sys/kernel/perf_event_paranoid", "w");
  CHECK(file != nullptr && std::fprintf(file, "%d", level) > 0 && std::fclose(file) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) {
      _exit(255);
    }
    const Context context;
    crosstalk_ibs_setup setup = usual_setup();
    setup.flags = flags;
    _exit(context.fd() < 0 ? 254 : context.setup(setup));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

void permissions() {
  CHECK_EQUAL(unprivileged(2, 0), 254);  // the device is root's until the administrator says otherwise
  CHECK_EQUAL(error_of(chmod(kDevice, 0666)), 0);
  CHECK_EQUAL(unprivileged(3, 0), EACCES);
  CHECK_EQUAL(unprivileged(4, 0), EACCES);
  CHECK_EQUAL(unprivileged(2, 0), 0);
  CHECK_EQUAL(unprivileged(2, CROSSTALK_IBS_KERNEL), EACCES);
  CHECK_EQUAL(unprivileged(2, CROSSTALK_IBS_PHYSICAL), EPERM);
  CHECK_EQUAL(unprivileged(1, CROSSTALK_IBS_KERNEL), 0);
  CHECK_EQUAL(unprivileged(-1, CROSSTALK_IBS_PHYSICAL), EPERM);
  CHECK_EQUAL(unprivileged(-1, CROSSTALK_IBS_KERNEL), 0);
  CHECK_EQUAL(error_of(chmod(kDevice, 0600)), 0);
}

/// The module's unit is in sysfs, but only the module can make events of it.
void perf_users() {
  unsigned type = 0;
  FILE* file = std::fopen("/sys/bus/event_source/devices/crosstalk_ibs/type", "r");
  if (!CHECK(file != nullptr)) {
    return;
  }
  CHECK_EQUAL(std::fscanf(file, "%u", &type), 1);
  std::fclose(file);
  for (const unsigned flavour : {0U, 1U, 2U, 1000U}) {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = type;
    attr.config = flavour;
    CHECK_EQUAL(error_of(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)), ENOENT);
    CHECK_EQUAL(error_of(syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0)), ENOENT);
    attr.sample_period = 100'000;
    CHECK(error_of(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)) != 0);
  }
}

void information() {
  const Context context;
  crosstalk_ibs_info info{};
  CHECK_EQUAL(context.call(CROSSTALK_IBS_IOC_INFO, &info), 0);
  CHECK_EQUAL(info.version, static_cast<unsigned>(CROSSTALK_IBS_VERSION));
  CHECK_EQUAL(info.features,
              CROSSTALK_IBS_HAS_OP | CROSSTALK_IBS_HAS_FETCH | CROSSTALK_IBS_HAS_FOLLOW | CROSSTALK_IBS_EMULATED);
  CHECK_EQUAL(info.record_size, sizeof(crosstalk_ibs_sample));
  CHECK_EQUAL(info.op_period_min, 20'000U);
  CHECK_EQUAL(info.op_period_max, 100'000'000U);
  CHECK_EQUAL(info.load_latency_max, 0U);
}

}  // namespace

int main(int argc, char** argv) {
  return run_checks({{"information", information},
                     {"perf_users", perf_users},
                     {"wrong_setups", wrong_setups},
                     {"bad_pointers", bad_pointers},
                     {"unknown_commands", unknown_commands},
                     {"before_setup", before_setup},
                     {"wrong_mappings", wrong_mappings},
                     {"wrong_moments", wrong_moments},
                     {"short_reads", short_reads},
                     {"memory_bound", memory_bound},
                     {"permissions", permissions}},
                    argc, argv);
}
