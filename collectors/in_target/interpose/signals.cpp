// SPDX-License-Identifier: Apache-2.0
// The signal functions that stand in for libc's; signal_wishes does their work.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <cerrno>

#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/signals/handler_stubs.h"
#include "collectors/in_target/signals/signal_wishes.h"

namespace crosstalk::in_target {
namespace {

using Handler = SignalHandler;

CROSSTALK_REAL constinit RealFunction<Handler(int, Handler)> libc_signal("signal");
CROSSTALK_REAL constinit RealFunction<Handler(int, Handler)> libc_sysv_signal("sysv_signal");
CROSSTALK_REAL constinit RealFunction<int(int)> libc_sighold("sighold");
CROSSTALK_REAL constinit RealFunction<int(int)> libc_sigrelse("sigrelse");
CROSSTALK_REAL constinit RealFunction<int(int)> libc_sigignore("sigignore");
CROSSTALK_REAL constinit RealFunction<Handler(int, Handler)> libc_sigset("sigset");
constinit SetMask libc_sigprocmask("sigprocmask");
CROSSTALK_REAL constinit RealFunction<int(const sigset_t*)> libc_sigsuspend("sigsuspend");
CROSSTALK_REAL constinit RealFunction<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> libc_ppoll("ppoll");
CROSSTALK_REAL constinit RealFunction<int(pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t)>
    libc_ppoll_chk("__ppoll_chk");
CROSSTALK_REAL constinit RealFunction<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>
    libc_pselect("pselect");
CROSSTALK_REAL constinit RealFunction<int(int, epoll_event*, int, int, const sigset_t*)> libc_epoll_pwait(
    "epoll_pwait");
CROSSTALK_REAL constinit RealFunction<int(int, epoll_event*, int, const timespec*, const sigset_t*)> libc_epoll_pwait2(
    "epoll_pwait2");

sigset_t set_of(int signal_number) {
  sigset_t set{};
  word_of(set) = bit_in_mask(signal_number);
  return set;
}

}  // namespace

void prepare_signal_wrappers() {
  libc_signal.prepare();
  libc_sigprocmask.prepare();
  libc_sigsuspend.prepare();
  libc_ppoll.prepare();
  libc_pselect.prepare();
  prepare_queue_wrappers();
  prepare_jump_wrappers();
}

// ---------------------------------------------------------------------- interposed: dispositions

CROSSTALK_INTERPOSE(int, wrap_sigaction, "sigaction", (int, const struct sigaction*, struct sigaction*));
int wrap_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  return filtered_sigaction(signal_number, action, old_action);
}

CROSSTALK_INTERPOSE(int, wrap_sigaction_alias, "__sigaction", (int, const struct sigaction*, struct sigaction*));
int wrap_sigaction_alias(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  return filtered_sigaction(signal_number, action, old_action);
}

namespace {
Handler bsd_style(int signal_number, Handler handler) {
  return filtered_bit(signal_number) == 0 ? behind_stub(libc_signal(signal_number, handler))
                                          : filtered_signal(signal_number, handler, SA_RESTART);
}
Handler sysv_style(int signal_number, Handler handler) {
  constexpr int one_shot = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  return filtered_bit(signal_number) == 0 ? behind_stub(libc_sysv_signal(signal_number, handler))
                                          : filtered_signal(signal_number, handler, one_shot);
}
}  // namespace

CROSSTALK_INTERPOSE(Handler, wrap_signal, "signal", (int, Handler));
Handler wrap_signal(int signal_number, Handler handler) { return bsd_style(signal_number, handler); }
CROSSTALK_INTERPOSE(Handler, wrap_bsd_signal, "bsd_signal", (int, Handler));
Handler wrap_bsd_signal(int signal_number, Handler handler) { return bsd_style(signal_number, handler); }
CROSSTALK_INTERPOSE(Handler, wrap_ssignal, "ssignal", (int, Handler));
Handler wrap_ssignal(int signal_number, Handler handler) { return bsd_style(signal_number, handler); }
CROSSTALK_INTERPOSE(Handler, wrap_sysv_signal, "sysv_signal", (int, Handler));
Handler wrap_sysv_signal(int signal_number, Handler handler) { return sysv_style(signal_number, handler); }
CROSSTALK_INTERPOSE(Handler, wrap_sysv_signal_alias, "__sysv_signal", (int, Handler));
Handler wrap_sysv_signal_alias(int signal_number, Handler handler) { return sysv_style(signal_number, handler); }

// ------------------------------------------------------------------------------ interposed: masks

CROSSTALK_INTERPOSE(int, wrap_sigprocmask, "sigprocmask", (int, const sigset_t*, sigset_t*));
int wrap_sigprocmask(int how, const sigset_t* set, sigset_t* old_set) {
  return change_mask(libc_sigprocmask, how, set, old_set);
}

CROSSTALK_INTERPOSE(int, wrap_pthread_sigmask, "pthread_sigmask", (int, const sigset_t*, sigset_t*));
int wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* old_set) {
  return change_mask(libc_pthread_sigmask, how, set, old_set);
}

CROSSTALK_INTERPOSE(int, wrap_sigsuspend, "sigsuspend", (const sigset_t*));
int wrap_sigsuspend(const sigset_t* set) { return libc_sigsuspend(PassingMask(set).get()); }

CROSSTALK_INTERPOSE(int, wrap_ppoll, "ppoll", (pollfd*, nfds_t, const timespec*, const sigset_t*));
int wrap_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* set) {
  return libc_ppoll(fds, count, timeout, PassingMask(set).get());
}

CROSSTALK_INTERPOSE(int, wrap_ppoll_chk, "__ppoll_chk",
                    (pollfd*, nfds_t, const timespec*, const sigset_t*, std::size_t));
int wrap_ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* set, std::size_t bytes) {
  return libc_ppoll_chk(fds, count, timeout, PassingMask(set).get(), bytes);
}

CROSSTALK_INTERPOSE(int, wrap_pselect, "pselect", (int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*));
int wrap_pselect(int count, fd_set* in, fd_set* out, fd_set* other, const timespec* timeout, const sigset_t* set) {
  return libc_pselect(count, in, out, other, timeout, PassingMask(set).get());
}

CROSSTALK_INTERPOSE(int, wrap_epoll_pwait, "epoll_pwait", (int, epoll_event*, int, int, const sigset_t*));
int wrap_epoll_pwait(int epoll, epoll_event* events, int count, int timeout, const sigset_t* set) {
  return libc_epoll_pwait(epoll, events, count, timeout, PassingMask(set).get());
}

CROSSTALK_INTERPOSE(int, wrap_epoll_pwait2, "epoll_pwait2", (int, epoll_event*, int, const timespec*, const sigset_t*));
int wrap_epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout, const sigset_t* set) {
  if (libc_epoll_pwait2.get() == nullptr) {  // before glibc 2.35
    errno = ENOSYS;
    return -1;
  }
  return libc_epoll_pwait2(epoll, events, count, timeout, PassingMask(set).get());
}

// ------------------------------------------------------- interposed: BSD's and System V's older calls

namespace {
int change_low_mask(int how, const int* mask) {
  sigset_t set{};
  sigset_t before{};
  if (mask != nullptr) {
    word_of(set) = static_cast<std::uint32_t>(*mask);
  }
  wrap_sigprocmask(how, mask == nullptr ? nullptr : &set, &before);
  return static_cast<int>(static_cast<std::uint32_t>(word_of(before)));
}
}  // namespace

CROSSTALK_INTERPOSE(int, wrap_sigblock, "sigblock", (int mask));
int wrap_sigblock(int mask) { return change_low_mask(SIG_BLOCK, &mask); }
CROSSTALK_INTERPOSE(int, wrap_sigsetmask, "sigsetmask", (int mask));
int wrap_sigsetmask(int mask) { return change_low_mask(SIG_SETMASK, &mask); }
CROSSTALK_INTERPOSE(int, wrap_siggetmask, "siggetmask", ());
int wrap_siggetmask() { return change_low_mask(SIG_BLOCK, nullptr); }

CROSSTALK_INTERPOSE(int, wrap_sighold, "sighold", (int signal_number));
int wrap_sighold(int signal_number) {
  const sigset_t set = set_of(signal_number);
  return filtered_bit(signal_number) == 0 ? libc_sighold(signal_number) : wrap_sigprocmask(SIG_BLOCK, &set, nullptr);
}
CROSSTALK_INTERPOSE(int, wrap_sigrelse, "sigrelse", (int signal_number));
int wrap_sigrelse(int signal_number) {
  const sigset_t set = set_of(signal_number);
  return filtered_bit(signal_number) == 0 ? libc_sigrelse(signal_number) : wrap_sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

CROSSTALK_INTERPOSE(int, wrap_sigignore, "sigignore", (int signal_number));
int wrap_sigignore(int signal_number) {
  if (filtered_bit(signal_number) == 0) {
    return libc_sigignore(signal_number);
  }
  return filtered_signal(signal_number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

CROSSTALK_INTERPOSE(Handler, wrap_sigset, "sigset", (int, Handler));
Handler wrap_sigset(int signal_number, Handler handler) {
  if (filtered_bit(signal_number) == 0) {
    return behind_stub(libc_sigset(signal_number, handler));
  }
  const sigset_t set = set_of(signal_number);
  const bool hold = handler == SIG_HOLD;
  sigset_t mask_before{};
  struct sigaction before {};
  if (wrap_sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, &mask_before) != 0 ||
      filtered_sigaction(signal_number, nullptr, &before) != 0) {
    return SIG_ERR;
  }
  if (!hold && filtered_signal(signal_number, handler, 0) == SIG_ERR) {
    return SIG_ERR;
  }
  return (word_of(mask_before) & bit_in_mask(signal_number)) != 0 ? SIG_HOLD : before.sa_handler;
}

}  // namespace crosstalk::in_target
