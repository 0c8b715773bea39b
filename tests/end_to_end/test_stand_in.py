# SPDX-License-Identifier: Apache-2.0
"""The recorder stands where the command would: what is sent to it, waited for of it and inherited by it is the command's."""

import os
import signal
import subprocess
import sys

import harness
from harness import CROSSTALK, run

WAYS = ((), ("--observer",))

SENT = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM, signal.SIGPROF,
        signal.SIGCONT, signal.SIGWINCH, signal.SIGURG, signal.SIGRTMIN, signal.SIGRTMIN + 9]
LAST = signal.SIGRTMAX  # taken after all others

# Prints the signals that reach it, with the values that they come with, until the last one does.
LISTENER = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})
print("ready", flush=True)
while (number := signal.sigwaitinfo(signal.valid_signals() - {signal.SIGCHLD}).si_signo) != signal.SIGRTMAX:
    print(number)
"""

# Profiles its process by SIGPROF, as a library does that is preloaded into a whole shell.
PROFILER = """
#include <signal.h>
#include <sys/time.h>
static void tick(int signal) { (void)signal; }
__attribute__((constructor)) static void begin(void) {
  struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 2000}, {0, 2000}};
  sigaction(SIGPROF, &action, 0);
  setitimer(ITIMER_PROF, &often, 0);
}
"""


class StandIn(harness.Case):
    def recorder(self, *options):
        return [CROSSTALK, "record", "-q", *options, "-o", self.path("s.db"), "--"]

    def start(self, command):
        """In a group of its own, until it says that it is ready."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process


@harness.together
class Signals(StandIn):
    def received(self, send, options):
        """Returns the signals that reach the command when `send(recorder's pid, number)` sends them."""
        process = self.start([*self.recorder(*options), sys.executable, "-c", LISTENER])
        for number in SENT:
            send(process.pid, number)
        process.send_signal(LAST)  # to the recorder alone: it comes behind all that was sent before
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        return sorted(map(int, out.split()))

    def send_to_each(self, group, number):
        """As systemd does with a service."""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getpgid(int(name)) == group:
                    os.kill(int(name), number)
            except ProcessLookupError:
                pass

    def test_what_the_group_is_sent_reaches_the_command_once(self):
        for options in WAYS:
            with self.subTest(options):
                self.assertEqual(self.received(os.killpg, options), sorted(map(int, SENT)))

    def test_what_the_recorder_is_sent_reaches_the_command(self):
        for options in WAYS:
            with self.subTest(options):
                self.assertEqual(self.received(os.kill, options), sorted(map(int, SENT)))

    def test_what_each_process_of_the_group_is_sent_reaches_the_command_once(self):
        self.assertEqual(self.received(self.send_to_each, ()), sorted(map(int, SENT)))

    def test_what_the_command_sends_its_parent_reaches_who_started_the_recorder(self):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        signals = "import os, signal; os.kill(os.getppid(), signal.SIGUSR1)"
        self.assertEqual(subprocess.run([*self.recorder(), sys.executable, "-c", signals], check=False).returncode, 0)
        self.assertEqual(signal.sigtimedwait({signal.SIGUSR1}, 60).si_signo, signal.SIGUSR1)

    def test_the_recorders_own_timer_is_its_own(self):
        with open(self.path("profiler.c"), "w", encoding="ascii") as file:
            file.write(PROFILER)
        library = self.path("profiler.so")
        self.assertEqual(run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, self.path("profiler.c")]).status, 0)
        work = "import sys; sum(i * i for i in range(3000000)); sys.exit(5)"
        for options in WAYS:
            with self.subTest(options):
                result = run([*self.recorder(*options), sys.executable, "-c", work],
                             env={**os.environ, "LD_PRELOAD": library})
                self.assertEqual((result.status, result.stderr), (5, ""))

    def test_a_timer_that_was_set_before_is_the_commands(self):
        alarm = "import signal; print('asleep', flush=True); signal.pause()"
        starter = "import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 3); os.execv(sys.argv[1], sys.argv[1:])"
        result = run([sys.executable, "-c", starter, *self.recorder(), sys.executable, "-c", alarm])
        self.assertEqual((result.status, result.stdout), (128 + signal.SIGALRM, "asleep\n"))


@harness.together
class Endings(StandIn):
    def test_a_death_by_signal_is_one_of_the_recorder(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGRTMIN):
            result = subprocess.run([*self.recorder(), "sh", "-c", f"kill -{int(number)} $$"], cwd=self.folder, check=False)
            self.assertEqual(result.returncode, -number)
            self.assertEqual(self.report(self.path("s.db"))["exit_status"], 128 + number)
        self.assertEqual([name for name in os.listdir(self.folder) if "core" in name], [])

    def test_a_script_ends_with_its_interrupted_command(self):
        command = " ".join([*self.recorder(), "sh", "-c", "'echo ready; exec sleep 60'"])
        process = self.start(["bash", "-c", f"{command}; echo went on"])
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, ""))
        self.assertEqual(self.report(self.path("s.db"))["exit_status"], 128 + signal.SIGINT)

    def test_a_script_goes_on_behind_a_command_that_handles_the_interrupt(self):
        command = " ".join([*self.recorder(), "sh", "-c", "'trap \"exit 3\" INT; echo ready; while :; do sleep 0.1; done'"])
        process = self.start(["bash", "-c", f"{command}; echo went on with $?"])
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (0, "went on with 3\n"))


@harness.together
class Environment(StandIn):
    def test_variables_that_name_the_process_name_the_command(self):
        script = "export LISTEN_PID=$$ WATCHDOG_PID=$$ LISTEN_PIDFDID=7 OTHER_PID=1; exec \"$@\""
        show = "echo $$ $LISTEN_PID $WATCHDOG_PID $OTHER_PID ${LISTEN_PIDFDID-none}"
        for options in WAYS:
            with self.subTest(options):
                result = run(["bash", "-c", script, "bash", *self.recorder(*options), "sh", "-c", show])
                pid = result.stdout.split()[0]
                self.assertEqual(result.stdout.split(), [pid, pid, pid, "1", "none"])


if __name__ == "__main__":
    harness.main()
