// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/signals/signal_wishes.h"

#include <ucontext.h>

#include <atomic>
#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/signals/handler_stubs.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

constinit SetMask libc_pthread_sigmask("pthread_sigmask");

namespace {

CROSSTALK_REAL constinit RealFunction<int(int, const struct sigaction*, struct sigaction*)> libc_sigaction("sigaction");

// ------------------------------------------------------------------------------ which signals

constexpr std::uint8_t trap_bit = 1;

struct Own {
  std::atomic<int> trap{0};  // its number, once told; it stays
  std::atomic<bool> filtering{false};
  std::atomic<bool> masks_alone{false};  // the target uses the signal: its masks are its own, once and for all
};
constinit Own own_wishes;

}  // namespace

std::uint8_t filtered_bit(int signal_number) {
  const bool ours = signal_number > 0 && own_wishes.filtering.load(std::memory_order_relaxed) &&
                    signal_number == own_wishes.trap.load(std::memory_order_relaxed);
  return ours ? trap_bit : 0;
}

namespace {

/// A child that shares our memory (vfork). Not asked when nothing is observed: a seccomp filter may kill the
/// target for a getpid() that it does not make itself.
bool in_other_process() { return observing() && attached_pid() != kernel_process_id(); }

/// True if our signals are kept out of masks.
bool filters_masks() {
  return own_wishes.filtering.load(std::memory_order_relaxed) &&
         !own_wishes.masks_alone.load(std::memory_order_relaxed) && observing();
}

// ----------------------------------------------------------------------------------- masks

std::uint64_t word_of_bits(std::uint8_t bits) {
  return (bits & trap_bit) != 0 ? bit_in_mask(own_wishes.trap.load(std::memory_order_relaxed)) : 0;
}

std::uint8_t bits_of(const sigset_t& set) {
  return (word_of(set) & word_of_bits(trap_bit)) != 0 ? trap_bit : std::uint8_t{0};
}

/// Signals of ours that the target has blocked and the kernel has not.
struct Shadow {
  std::uint8_t bits = 0;
  std::uint8_t child_bits = 0;  // the same in the vfork child `child`, which shares this memory
  std::int32_t child = 0;
};
constinit thread_local Shadow thread_shadow __attribute__((tls_model("initial-exec")));

std::uint8_t shadow_bits(bool other_process) {
  const bool of_child = other_process && thread_shadow.child == kernel_process_id();
  return of_child ? thread_shadow.child_bits : thread_shadow.bits;
}

void set_shadow_bits(bool other_process, std::uint8_t bits) {
  if (!other_process) {
    thread_shadow.bits = bits;
    return;
  }
  thread_shadow.child_bits = bits;
  thread_shadow.child = kernel_process_id();
}

}  // namespace

int change_mask(SetMask& real, int how, const sigset_t* set, sigset_t* old_set) {
  const std::uint8_t named = set == nullptr ? std::uint8_t{0} : bits_of(*set);
  if (named == 0 && thread_shadow.bits == 0) {
    return real(how, set, old_set);
  }
  const bool other_process = in_other_process();
  const bool filter = !other_process && filters_masks();
  const std::uint8_t before = shadow_bits(other_process);
  std::uint8_t after = before;
  sigset_t passed{};
  if (set != nullptr) {
    word_of(passed) = word_of(*set);
    after = how == SIG_SETMASK ? std::uint8_t{0} : static_cast<std::uint8_t>(before & ~named);
    if (filter && how != SIG_UNBLOCK) {
      word_of(passed) &= ~word_of_bits(named);
      after = static_cast<std::uint8_t>(after | named);
    }
  }
  if (named != 0 && how != SIG_UNBLOCK && !filter && !other_process && observing()) {
    on_trap_blocked();
  }
  const int result = real(how, set == nullptr ? nullptr : &passed, old_set);
  if (result == 0 && after != before) {
    set_shadow_bits(other_process, after);
  }
  if (result == 0 && old_set != nullptr) {
    word_of(*old_set) |= word_of_bits(before);
  }
  return result;
}

namespace {

// The kernel's mask is the first word of a sigset_t. The last word holds the target's wishes for our signals.
constexpr std::size_t spare_word = sizeof(sigset_t) / sizeof(std::uint64_t) - 1;
constexpr std::uint64_t spare_mark = 0x6b6c617473736f00;  // with Shadow's bits in the lowest byte

}  // namespace

void note_mask(sigset_t& mask) {
  if (own_wishes.filtering.load(std::memory_order_relaxed)) {
    (&word_of(mask))[spare_word] = spare_mark | shadow_bits(in_other_process());
  }
}

void recall_mask(const sigset_t& mask) {
  if (!own_wishes.filtering.load(std::memory_order_relaxed)) {
    return;
  }
  constexpr std::uint64_t all_bits = 0xff;
  std::uint64_t words[spare_word + 1];
  memcpy(static_cast<std::uint64_t*>(words), &mask, sizeof words);
  const bool other_process = in_other_process();
  if ((words[spare_word] & ~all_bits) == spare_mark) {
    set_shadow_bits(other_process, static_cast<std::uint8_t>(words[spare_word] & all_bits));
  }
  const std::uint8_t named = bits_of(mask);
  if (named != 0 && !other_process && filters_masks()) {  // the target has put it in by itself
    auto& changed = const_cast<sigset_t&>(mask);          // NOLINT: in the target's memory, which is not constant
    word_of(changed) &= ~word_of_bits(named);
    set_shadow_bits(other_process, named);
    (&word_of(changed))[spare_word] = spare_mark | named;
  }
}

PassingMask::PassingMask(const sigset_t* asked) : mask_(asked) {
  const std::uint8_t named = asked == nullptr ? std::uint8_t{0} : bits_of(*asked);
  if (named != 0 && filters_masks() && !in_other_process()) {
    word_of(stripped_) = word_of(*asked) & ~word_of_bits(named);
    mask_ = &stripped_;
  }
}

// ---------------------------------------------------------------------------- dispositions

namespace {

/// The action that the target wants for a signal. Readers never wait; an answer stays valid for the next 15 changes.
class Wish {
 public:
  [[nodiscard]] const struct sigaction* get() const { return &slots_[current_.load(std::memory_order_acquire)]; }
  void set(const struct sigaction& action) {
    const std::uint32_t slot = next_.fetch_add(1, std::memory_order_relaxed) % slot_count;
    slots_[slot] = action;
    current_.store(slot, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t slot_count = 16;
  struct sigaction slots_[slot_count] = {};
  std::atomic<std::uint32_t> current_{0};
  std::atomic<std::uint32_t> next_{1};
};
constinit Wish trap_wish;

/// Signals of ours in the sa_mask that the target gave for a signal.
constexpr int signal_limit = 65;
constinit std::atomic<std::uint8_t> mask_wishes[signal_limit] = {};

bool has_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

int wish_for_own_signal(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  const struct sigaction before = *trap_wish.get();
  int result = 0;
  if (in_other_process()) {
    result = sigaction_with_stubs(libc_sigaction, signal_number, action, nullptr);
  } else if (action != nullptr) {
    trap_wish.set(*action);
  }
  if (result == 0 && old_action != nullptr) {
    *old_action = before;
  }
  return result;
}

/// Any other signal: its handler must not block ours.
int change_action(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  const bool known = signal_number > 0 && signal_number < signal_limit;
  const std::uint8_t named = action == nullptr ? std::uint8_t{0} : bits_of(action->sa_mask);
  const std::uint8_t before = known ? mask_wishes[signal_number].load(std::memory_order_relaxed) : std::uint8_t{0};
  if ((named == 0 && before == 0) || !known || in_other_process()) {
    return sigaction_with_stubs(libc_sigaction, signal_number, action, old_action);
  }
  struct sigaction passed {};
  const bool filter = filters_masks();
  if (action != nullptr) {
    passed = *action;
    word_of(passed.sa_mask) &= filter ? ~word_of_bits(named) : ~std::uint64_t{0};
  }
  const int result =
      sigaction_with_stubs(libc_sigaction, signal_number, action == nullptr ? nullptr : &passed, old_action);
  if (result == 0) {
    if (action != nullptr) {
      mask_wishes[signal_number].store(filter ? named : std::uint8_t{0}, std::memory_order_relaxed);
    }
    if (old_action != nullptr) {
      word_of(old_action->sa_mask) |= word_of_bits(before);
    }
  }
  return result;
}

}  // namespace

int filtered_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  return filtered_bit(signal_number) == 0 ? change_action(signal_number, action, old_action)
                                          : wish_for_own_signal(signal_number, action, old_action);
}

SignalHandler filtered_signal(int signal_number, SignalHandler handler, int flags) {
  struct sigaction action {};
  struct sigaction old_action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if ((flags & SA_NODEFER) == 0) {
    ::sigaddset(&action.sa_mask, signal_number);
  }
  return filtered_sigaction(signal_number, &action, &old_action) == 0 ? old_action.sa_handler : SIG_ERR;
}

// ------------------------------------------------------------------------------- the contract

void own_signals(int trap_signal) {
  if (own_wishes.filtering.load(std::memory_order_relaxed)) {
    return;  // told before (a forked child goes on): the handlers in place are ours, not wishes
  }
  libc_sigaction.prepare();  // so that no later call, in a signal handler, looks it up
  libc_pthread_sigmask.prepare();
  prepare_signal_wrappers();
  struct sigaction found {};
  if (libc_sigaction(trap_signal, nullptr, &found) == 0) {
    trap_wish.set(found);
  }
  own_wishes.trap.store(trap_signal, std::memory_order_relaxed);
  own_wishes.filtering.store(true, std::memory_order_release);
}

void disown_signals() {
  if (own_wishes.filtering.exchange(false)) {
    real_sigaction(own_wishes.trap.load(std::memory_order_relaxed), trap_wish.get(), nullptr);
  }
}

void leave_masks_alone() { own_wishes.masks_alone.store(true, std::memory_order_relaxed); }

const struct sigaction* target_trap_action() { return trap_wish.get(); }

int real_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  return libc_sigaction(signal_number, action, old_action);
}

int real_sigmask(int how, const sigset_t* set, sigset_t* old_set) { return libc_pthread_sigmask(how, set, old_set); }

// First known, then unblocked: one that is pending comes at once.
void adopt_thread_mask() {
  sigset_t ours{};
  sigset_t before{};
  word_of(ours) = word_of_bits(trap_bit);
  if (real_sigmask(SIG_BLOCK, nullptr, &before) == 0) {
    thread_shadow.bits = static_cast<std::uint8_t>(thread_shadow.bits | bits_of(before));
    real_sigmask(SIG_UNBLOCK, &ours, nullptr);
  }
}

bool block_trap_as_wished(void* context) {
  const std::uint64_t blocked = word_of_bits(thread_shadow.bits);
  if (blocked == 0) {
    return false;
  }
  own_wishes.masks_alone.store(true, std::memory_order_relaxed);
  word_of(static_cast<ucontext_t*>(context)->uc_sigmask) |= blocked;
  thread_shadow.bits = 0;
  return true;
}

std::uint8_t mask_shadow() { return thread_shadow.bits; }
void inherit_mask_shadow(std::uint8_t bits) { thread_shadow.bits = bits; }

WishesInKernel::WishesInKernel() {
  const bool other_process = in_other_process();
  const int trap = own_wishes.trap.load(std::memory_order_relaxed);
  const struct sigaction* wish = trap_wish.get();
  // A vfork child may have set its own action: then the present handler is not ours.
  if (!has_handler(*wish) && wish->sa_handler == SIG_IGN && real_sigaction(trap, nullptr, &replaced_) == 0 &&
      has_handler(replaced_) && real_sigaction(trap, wish, nullptr) == 0) {
    ignored_ = trap;
  }
  const std::uint8_t blocked = shadow_bits(other_process);
  if (blocked != 0) {
    sigset_t set{};
    word_of(set) = word_of_bits(blocked);
    masked_ = real_sigmask(SIG_BLOCK, &set, &mask_) == 0;
  }
}

WishesInKernel::~WishesInKernel() {
  const SavedErrno saved;
  if (ignored_ != 0) {
    real_sigaction(ignored_, &replaced_, nullptr);
  }
  if (masked_) {
    real_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
}

}  // namespace crosstalk::in_target
