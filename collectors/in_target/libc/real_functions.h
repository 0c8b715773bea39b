// SPDX-License-Identifier: Apache-2.0
// How this library stands in for a libc function: a wrapper with the function's symbol name, and the real
// function found behind it.
#pragma once

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// The definition of `name` that the target would have got without us: the first in load order after this library, else
/// (we were loaded late) the first of all others. Default version; skips data and indirect functions. Null when there
/// is none.
///
/// Reads the modules' own hash tables instead of asking dlsym: dlsym allocates when it fails (and with some versions of
/// glibc when it succeeds), which malloc itself cannot afford, and it overwrites the target's dlerror(). It also finds
/// definitions in modules loaded RTLD_LOCAL. Normal context.
void* next_definition(const char* name);

/// libc's dl_iterate_phdr(), which we stand in for.
using ModuleVisitor = int (*)(dl_phdr_info*, std::size_t, void*);
int iterate_modules(ModuleVisitor visitor, void* data);

/// Load bias of this library.
std::uint64_t own_bias();

/// A name, and the result of next_definition() for it.
class RealDefinition {
 public:
  constexpr explicit RealDefinition(const char* name) : name_(name) {}
  /// Null when no other module defines it.
  [[nodiscard]] void* address() {
    void* const known = address_.load(std::memory_order_relaxed);
    return __builtin_expect(known != nullptr, 1) ? known : look_up();
  }
  /// Looks it up early, so that no later call has to: in a signal handler, say, or in a forked child, whose copy of the
  /// loader's lock may be taken for ever.
  void prepare() { static_cast<void>(address()); }

 private:
  __attribute__((noinline, cold)) void* look_up() {
    void* const found = next_definition(name_);
    address_.store(found, std::memory_order_relaxed);  // every thread finds the same
    return found;
  }

  const char* name_;
  std::atomic<void*> address_{nullptr};
};

template <class Signature>
class RealFunction;

/// A real function, looked up once: by prepare_real_functions(), or at its first use if that is earlier. No constructor
/// runs: usable before ours did.
template <class R, class... Args>
class RealFunction<R(Args...)> : public RealDefinition {
 public:
  using Pointer = R (*)(Args...);
  consteval explicit RealFunction(const char* name) : RealDefinition(name) {}
  /// Null when no other module defines it.
  [[nodiscard]] Pointer get() { return reinterpret_cast<Pointer>(address()); }  // NOLINT: a symbol is an address
  R operator()(Args... args) { return get()(args...); }
};

/// Looks up all of the library's RealFunctions that are defined by now. Normal context.
void prepare_real_functions();

/// Puts errno back at the end of a scope.
class SavedErrno {
 public:
  SavedErrno() : saved_(errno) {}
  ~SavedErrno() { errno = saved_; }
  SavedErrno(const SavedErrno&) = delete;
  SavedErrno& operator=(const SavedErrno&) = delete;

 private:
  int saved_;
};

}  // namespace crosstalk::in_target

// Before each RealFunction: they lie in a row, for prepare_real_functions().
#define CROSSTALK_REAL __attribute__((section("crosstalk_real"), used, aligned(16)))

// Declares WRAPPER with the symbol name SYMBOL, visible to the target. The C++ name differs, so that libc's
// own declarations (noexcept, attributes, deprecation) do not have to be matched one by one.
#define CROSSTALK_INTERPOSE(RESULT, WRAPPER, SYMBOL, PARAMETERS) \
  extern "C" __attribute__((visibility("default"))) RESULT WRAPPER PARAMETERS asm(SYMBOL)

// The same for a function that waits for other threads. If the library was brought in late and will leave again, such
// functions are left alone: they are adjacent, for got_patches.cpp.
#define CROSSTALK_INTERPOSE_WAIT(RESULT, WRAPPER, SYMBOL, PARAMETERS) \
  extern "C" __attribute__((visibility("default"), section("crosstalk_waits"))) RESULT WRAPPER PARAMETERS asm(SYMBOL)
