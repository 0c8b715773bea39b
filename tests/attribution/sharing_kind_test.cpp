// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/sharing_kind.h"

#include <gtest/gtest.h>

#include "attribution/program/own_code.h"

namespace crosstalk::attribution::test::sharing_kind_test {
namespace {

TEST(Purpose, ByFunctionsOfLibraries) {
  EXPECT_EQ(purpose_of_function("pthread_mutex_lock"), Purpose::lock);
  EXPECT_EQ(purpose_of_function("___pthread_mutex_unlock"), Purpose::lock);
  EXPECT_EQ(purpose_of_function("gomp_team_barrier_wait_end"), Purpose::barrier);
  EXPECT_EQ(purpose_of_function("pthread_barrier_wait"), Purpose::barrier);
  EXPECT_EQ(purpose_of_function("__pthread_cond_wait"), Purpose::condition);
  EXPECT_EQ(purpose_of_function("sem_getvalue@GLIBC_2.34"), Purpose::condition);
  EXPECT_EQ(purpose_of_function("std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release()"),
            Purpose::reference_count);
  EXPECT_EQ(purpose_of_function("_int_free"), Purpose::allocator);
  EXPECT_FALSE(purpose_of_function("memcpy"));
  EXPECT_FALSE(purpose_of_function("std::__atomic_base<long>::fetch_add(long, std::memory_order)"));
}

TEST(SharingKind, FalseSharingIsPaddedWhateverItIs) {
  PurposeSums sums;
  sums.add(Purpose::counter, false, 9);
  sums.add(Purpose::lock, false, 3);
  sums.add(Purpose::data, true, 1);
  EXPECT_EQ(kind_of(sums, false).kind, SharingKind::false_sharing);
  EXPECT_FALSE(kind_of(sums, false).perhaps);
}

TEST(SharingKind, ByWhatMostOfItIsFor) {
  const std::pair<Purpose, SharingKind> each[] = {{Purpose::counter, SharingKind::shared_counter},
                                                  {Purpose::fetch_add, SharingKind::fetch_add},
                                                  {Purpose::lock, SharingKind::lock},
                                                  {Purpose::exchange, SharingKind::lock},
                                                  {Purpose::barrier, SharingKind::barrier},
                                                  {Purpose::condition, SharingKind::condition},
                                                  {Purpose::waiting, SharingKind::spin},
                                                  {Purpose::reference_count, SharingKind::reference_count},
                                                  {Purpose::allocator, SharingKind::runtime},
                                                  {Purpose::data, SharingKind::true_sharing}};
  for (const auto& [purpose, kind] : each) {
    PurposeSums sums;
    sums.add(purpose, true, 5);
    EXPECT_EQ(kind_of(sums, false).kind, kind);
  }
}

TEST(SharingKind, IndicesOfAQueue) {
  PurposeSums sums;
  sums.add(Purpose::data, true, 5);
  EXPECT_EQ(kind_of(sums, true).kind, SharingKind::queue);
}

TEST(SharingKind, WhatElseItMayBeIsSaid) {
  PurposeSums sums;
  sums.add(Purpose::waiting, true, 6);
  sums.add(Purpose::data, true, 4);
  const KindOf kind = kind_of(sums, false);
  EXPECT_EQ(kind.kind, SharingKind::spin);
  EXPECT_EQ(kind.perhaps, SharingKind::true_sharing);
}

symbolizer::Frame frame(const char* function, const char* file) { return {function, {file, 10}, false}; }

TEST(OwnCode, HeadersAndRuntimesAreNot) {
  EXPECT_TRUE(is_library_code(frame("std::vector<int>::push_back(int&&)", "/usr/include/c++/12/bits/stl_vector.h")));
  EXPECT_TRUE(is_library_code(
      frame("core::sync::atomic::AtomicUsize::fetch_add", "/rustc/abc/library/core/src/sync/atomic.rs")));
  EXPECT_TRUE(is_library_code(frame("_mm256_load_pd", "/usr/lib/gcc/x86_64-linux-gnu/12/include/avxintrin.h")));
  EXPECT_TRUE(is_library_code(frame("std::__atomic_base<int>::load(std::memory_order) const", "")));
  EXPECT_TRUE(is_library_code(frame("void std::__invoke_impl<void, f>(std::__invoke_other, f&&)", "")));
  EXPECT_TRUE(is_library_code(frame("operator new(unsigned long)", "")));
  EXPECT_FALSE(is_library_code(frame("Pool::take()", "/home/me/pool.h")));
  EXPECT_FALSE(is_library_code(frame("standard_work(int)", "")));
  EXPECT_FALSE(is_library_code(frame("run(std::vector<int>&)", "/src/run.cpp")));
  EXPECT_FALSE(is_library_code(frame("int Pool::at<std::string>(std::string const&)", "/src/pool.cpp")));
}

TEST(OwnCode, RuntimeLibrariesByPath) {
  EXPECT_TRUE(is_runtime_library("/usr/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_TRUE(is_runtime_library("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0"));
  EXPECT_FALSE(is_runtime_library("/usr/lib/x86_64-linux-gnu/libcrypto.so.3"));
  EXPECT_FALSE(is_runtime_library("/home/me/app"));
}

}  // namespace
}  // namespace crosstalk::attribution::test::sharing_kind_test
