// SPDX-License-Identifier: Apache-2.0
// How this library stands in for a libc function: a wrapper with the function's symbol name, and the real
// function found behind it.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// The definition of `name` that the target would have got without us: the first in load order after this
/// library, else (we were loaded late) the first of all others. Default version; data and indirect functions
/// are no answer. Null when there is none.
///
/// Reads the modules' own hash tables instead of asking dlsym: dlsym allocates when it fails (and with some
/// versions of glibc when it succeeds), which malloc itself can not afford, and it overwrites what the
/// target's dlerror() would say. It also finds what was loaded RTLD_LOCAL. Normal context.
void* next_definition(const char* name);

/// Load bias of this library.
std::uint64_t own_bias();

template <class Signature>
class RealFunction;

/// A real function, looked up once, at its first use. No constructor runs: usable before ours did.
template <class R, class... Args>
class RealFunction<R(Args...)> {
 public:
  using Pointer = R (*)(Args...);
  consteval explicit RealFunction(const char* name) : name_(name) {}

  /// Null when no other module defines it.
  [[nodiscard]] Pointer get() {
    const Pointer known = pointer_.load(std::memory_order_relaxed);
    return __builtin_expect(known != nullptr, 1) ? known : look_up();
  }

  /// So that no later call, in a signal handler perhaps, has to look it up.
  void prepare() { static_cast<void>(get()); }

  R operator()(Args... args) { return get()(args...); }

 private:
  __attribute__((noinline, cold)) Pointer look_up() {
    const auto found = reinterpret_cast<Pointer>(next_definition(name_));  // NOLINT: a symbol is an address
    pointer_.store(found, std::memory_order_relaxed);                      // every thread finds the same
    return found;
  }

  const char* name_;
  std::atomic<Pointer> pointer_{nullptr};
};

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

// Declares WRAPPER with the symbol name SYMBOL, visible to the target. The C++ name differs, so that libc's
// own declarations (noexcept, attributes, deprecation) do not have to be matched one by one.
#define CROSSTALK_INTERPOSE(RESULT, WRAPPER, SYMBOL, PARAMETERS) \
  extern "C" __attribute__((visibility("default"))) RESULT WRAPPER PARAMETERS asm(SYMBOL)
