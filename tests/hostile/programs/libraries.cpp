// SPDX-License-Identifier: Apache-2.0
// Libraries that come and go, that have a namespace of their own, and that others have preloaded.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

std::string beside_this_program(const char* name) {
  char path[4096] = {};
  require(readlink("/proc/self/exe", path, sizeof path - 1) > 0, "readlink");
  const std::string text = path;
  return text.substr(0, text.rfind('/') + 1) + name;
}

bool is_mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) {
      return true;
    }
  }
  return false;
}

using Work = int (*)(double);

/// A library is loaded, used by two threads, and unloaded: samples in it must not keep it.
int come_and_go(int, char**) {
  const Burners burners(1);
  const std::string path = beside_this_program("libplugin.so");
  int wrong = 0;
  int kept = 0;
  for (int n = 0; n < 25; ++n) {
    void* library = dlopen(path.c_str(), RTLD_NOW);
    require(library != nullptr, "dlopen");
    const auto work = reinterpret_cast<Work>(dlsym(library, "plugin_work"));
    std::thread other([work] { work(0.01); });
    wrong += work(0.01) == 77 ? 0 : 1;
    other.join();
    wrong += dlclose(library) == 0 ? 0 : 1;
    kept += is_mapped(path) ? 1 : 0;
  }
  say("wrong %d, still mapped %d times", wrong, kept);
  return 0;
}

/// The same with a libc of its own.
int other_namespace(int, char**) {
  const Burners burners(1);
  const std::string path = beside_this_program("libplugin.so");
  void* library = dlmopen(LM_ID_NEWLM, path.c_str(), RTLD_NOW);
  require(library != nullptr, "dlmopen");
  const auto work = reinterpret_cast<Work>(dlsym(library, "plugin_work"));
  int wrong = 0;
  for (int n = 0; n < 20; ++n) {
    wrong += work(0.02) == 77 ? 0 : 1;
  }
  say("wrong %d", wrong);
  return 0;
}

/// A preloaded library replaces clock_gettime, as libfaketime does: only the program calls it, and never recursively.
int fake_clock(int, char**) {
  const auto figure = [](const char* name) {
    const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
    require(ask != nullptr, name);
    return ask();
  };
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  say("year after 2100: %s", yes(t.tv_sec > 4'102'444'800));
  exchange(0.5);
  say("re-entered %d times, called by strangers %d times", figure("fake_clock_reentered"),
      figure("fake_clock_strangers"));
  return 0;
}

struct Farewell {
  const char* text;
  ~Farewell() { put(text); }
};

/// Functions registered to run at exit run, in order, while other threads are busy.
int farewells(int, char**) {
  static const Farewell first{"a static object\n"};
  std::atexit([] { put("atexit\n"); });
  std::at_quick_exit([] { put("at_quick_exit\n"); });
  thread_local const Farewell own{"an object of the thread\n"};
  static_cast<void>(own.text);
  std::thread([] {
    thread_local const Farewell its{"an object of another thread\n"};
    static_cast<void>(its.text);
    burn(0.1);
  }).join();
  std::thread([] { burn(10); }).detach();
  exchange(0.2);
  static_cast<void>(first.text);
  std::exit(51);
}

/// Libraries come and go in several threads, others start in them.
int storm(int, char**) {
  const std::string path = beside_this_program("libplugin.so");
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int n = 0; n < 4; ++n) {
    users.emplace_back([&] {
      for (int k = 0; k < 40; ++k) {
        void* library = dlopen(path.c_str(), RTLD_NOW);
        require(library != nullptr, "dlopen");
        const auto work = reinterpret_cast<Work>(dlsym(library, "plugin_work"));
        std::thread other([work, &wrong] { wrong += work(0.001) == 77 ? 0 : 1; });
        wrong += work(0.001) == 77 ? 0 : 1;
        other.join();
        wrong += dlclose(library) == 0 ? 0 : 1;
      }
    });
  }
  for (std::thread& user : users) {
    user.join();
  }
  say("wrong %d, still mapped: %s", wrong.load(), yes(is_mapped(path)));
  return 0;
}

/// While one thread iterates over the modules, which holds a lock of the loader's, it waits for others, which start and
/// allocate.
int looked_at_together(int, char**) {
  exchange(0.2);
  std::atomic<int> done{0};
  for (int n = 0; n < 5; ++n) {
    dl_iterate_phdr(
        [](dl_phdr_info*, std::size_t, void* data) {
          std::thread([] {
            burn(0.03);
            for (int k = 0; k < 1000; ++k) {
              std::free(std::malloc(static_cast<std::size_t>(k)));
            }
          }).join();
          ++*static_cast<std::atomic<int>*>(data);
          return 1;
        },
        &done);
  }
  say("done %d", done.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"come_and_go", come_and_go},
                   {"other_namespace", other_namespace},
                   {"fake_clock", fake_clock},
                   {"farewells", farewells},
                   {"storm", storm},
                   {"looked_at_together", looked_at_together}},
                  argc, argv);
}
