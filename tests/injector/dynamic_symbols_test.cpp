// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/dynamic_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <string>

namespace crosstalk::injector::dynamic_symbols_test {
namespace {

/// The C library that this process has mapped: its bias and file. Sanitizers stand in for functions of it.
struct Libc {
  void* handle = nullptr;
  std::uint64_t bias = 0;
  std::string path;
};
Libc own_libc() {
  void* const handle = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(handle, nullptr);
  Dl_info info{};
  EXPECT_NE(::dladdr(::dlsym(handle, "gnu_get_libc_version"), &info), 0);
  return {handle, reinterpret_cast<std::uint64_t>(info.dli_fbase), info.dli_fname};
}

TEST(DynamicSymbols, AddressesAreThoseThatTheLoaderFinds) {
  const Libc libc = own_libc();
  const auto file = symbolizer::ElfFile::open(libc.path);
  ASSERT_TRUE(file) << file.error().message;
  const DynamicSymbols symbols(*file);
  for (const char* name : {"dlopen", "qsort", "pthread_create", "epoll_wait"}) {
    const auto address = symbols.address_of(name);
    ASSERT_TRUE(address) << name;
    EXPECT_EQ(libc.bias + *address, reinterpret_cast<std::uint64_t>(::dlsym(libc.handle, name))) << name;
  }
  EXPECT_FALSE(symbols.address_of("no_such_function"));
}

TEST(DynamicSymbols, FunctionsAreNamedByWhatIsPublic) {
  const Libc libc = own_libc();
  const auto file = symbolizer::ElfFile::open(libc.path);
  ASSERT_TRUE(file);
  const DynamicSymbols symbols(*file);
  for (const char* name : {"qsort", "nanosleep", "read", "poll", "malloc"}) {
    const auto address = symbols.address_of(name);
    ASSERT_TRUE(address);
    EXPECT_EQ(symbols.function_at(*address), name);
    EXPECT_EQ(symbols.function_at(*address + 1), name);
  }
  EXPECT_EQ(symbols.function_at(1), "");
  EXPECT_EQ(symbols.function_at(UINT64_MAX), "");
}

}  // namespace
}  // namespace crosstalk::injector::dynamic_symbols_test
