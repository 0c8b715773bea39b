# SPDX-License-Identifier: Apache-2.0
"""around.py WHAT COMMAND...: runs a command, or its recording, and does to it what WHAT says.
As the foreground of a terminal (its standard input; output stays a pipe), once the command has said something; prints
how the command ended and what it left in ending.txt:
  hang_up        the terminal goes away; the command leads the session
  interrupt      ^C
  quit           ^\\
Without a terminal:
  stop           waits for the command to stop itself, as a shell does, and lets its group go on
  kill_recorder  who records, if anybody does, is killed once the command has said something; prints the output
  stop_recorder  likewise, but stopped for half a second
"""

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time


def ending(status):
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"


def wait(process, options=0, patience=10):
    """The wait status, or None when the process goes on as before."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        pid, status = os.waitpid(process.pid, options | os.WNOHANG)
        if pid != 0:
            process.returncode = status  # waited for
            return status
        time.sleep(0.01)
    return None


def watch_stop(command):
    with subprocess.Popen(command, process_group=0) if sys.version_info >= (3, 11) else subprocess.Popen(
            command, preexec_fn=os.setpgrp) as process:
        status = wait(process, os.WUNTRACED)
        stopped = status is not None and os.WIFSTOPPED(status)
        print("stopped:", "yes" if stopped else "no", flush=True)
        os.killpg(process.pid, signal.SIGCONT)
        if stopped:
            status = wait(process)
        print(ending(status) if status is not None else "does not end")


def take_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def at_terminal(what, command):
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, preexec_fn=take_terminal) as process:
        os.close(slave)
        print(process.stdout.readline().decode().strip())
        time.sleep(0.3)
        if what == "hang_up":
            os.close(master)
        else:
            os.write(master, {"interrupt": b"\x03", "quit": b"\x1c"}[what])
        status = wait(process)
        print(ending(status) if status is not None else "does not end")
    with contextlib.suppress(OSError), open("ending.txt", encoding="utf-8") as file:
        print(file.read().strip())


def without_recorder(what, command):
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        print(process.stdout.readline().decode().strip(), flush=True)
        if os.path.basename(command[0]) == "crosstalk":
            process.send_signal(signal.SIGKILL if what == "kill_recorder" else signal.SIGSTOP)
            time.sleep(0.5)
            process.send_signal(signal.SIGCONT)
        print(process.stdout.read().decode(), end="")


def main():
    what, command = sys.argv[1], sys.argv[2:]
    if what == "stop":
        watch_stop(command)
    elif what.endswith("_recorder"):
        without_recorder(what, command)
    else:
        at_terminal(what, command)


if __name__ == "__main__":
    main()
