# SPDX-License-Identifier: Apache-2.0
"""Programs of an interpreter, which has signals, threads, children and shared memory of its own way."""

import multiprocessing
import signal
import subprocess
import sys
import threading
import time


def burn(seconds):
    end = time.thread_time() + seconds
    count = 0
    while time.thread_time() < end:
        count += 1
    return count > 0


def threads():
    crew = [threading.Thread(target=burn, args=(0.1,)) for _ in range(4)]
    for thread in crew:
        thread.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX, signal.SIGUSR1])
    signal.raise_signal(signal.SIGRTMAX)
    print("got", int(signal.sigwait([signal.SIGRTMAX])))
    for thread in crew:
        thread.join()


def alarms():
    came = []
    signal.signal(signal.SIGALRM, lambda number, frame: came.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    while len(came) < 15:
        burn(0.02)
    signal.setitimer(signal.ITIMER_REAL, 0)
    begin = time.monotonic()
    time.sleep(0.3)
    print("slept in time:", 0.29 < time.monotonic() - begin < 0.8, "of", set(came))


def square(number):
    burn(0.03)
    return number * number


def processes():
    with multiprocessing.Pool(3) as pool:
        print(pool.map(square, range(12)))


def children():
    burn(0.2)
    for status in (0, 3):
        done = subprocess.run([sys.executable, "-c", f"import sys; print(input()); sys.exit({status})"], input="a line\n",
                              capture_output=True, text=True, check=False)
        print(done.returncode, done.stdout.strip(), done.stderr)
    with subprocess.Popen(["sleep", "10"]) as sleeper:
        sleeper.terminate()
        print(sleeper.wait())


{"threads": threads, "alarms": alarms, "processes": processes, "children": children}[sys.argv[1]]()
