# SPDX-License-Identifier: Apache-2.0
"""Programs that cannot be observed from inside run as without us, and the profile names them: as watched from outside, or as
not observed, if they were too short for that."""

import json
import os
import shutil
import sys

import harness
from harness import run, workload

KINDS = {
    "static": "statically linked",
    "address_sanitizer": "sanitizer (libasan",
    "thread_sanitizer": "sanitizer (libtsan",
    "bits_32": "32-bit",
    "musl": "another C library (/lib/ld-musl",
}


def program(kind):
    return os.path.join(workload("unobservable"), kind)


def is_dynamic(path):
    with open(path, "rb") as file:
        return b"/ld-linux" in file.read(4096)


class Unobservable(harness.Case):
    def warnings_of(self, recorded):
        return [warning["message"] for warning in self.report(recorded.profile)["warnings"]
                if warning["code"] in ("program_not_observed", "program_watched_from_outside")]

    def needs(self, kind):
        if not os.path.exists(program(kind)):
            self.skipTest(f"{kind}: the compiler for it is missing; ./dev deps names its package")
        try:
            return run([program(kind)])
        except OSError as error:
            return self.skipTest(f"{kind}: this machine does not run it: {error.strerror}")

    def children(self, kind, command=None):
        bare = self.needs(kind)
        self.assertEqual((bare.status, bare.stdout, bare.stderr), (3, "hello\n", ""))
        for how in ("fork", "vfork", "spawn", "exec"):
            with self.subTest(how=how):
                recorded = self.record([workload("children"), how, "--", *(command or [program(kind)])])
                self.assertEqual((recorded.status, recorded.stdout, recorded.stderr), (3, "hello\n", ""))
                said = self.warnings_of(recorded)
                self.assertEqual(len(said), 1, said)
                self.assertIn(program(kind), said[0])
                self.assertIn(KINDS[kind], said[0])
                rows = self.report(recorded.profile)["processes"]
                unobserved = [row for row in rows if row["observation"] != "preloaded"]
                self.assertTrue(unobserved, rows)
                # A sanitizer looks for leaks from a process of its own, which is watched, too.
                self.assertTrue(all(row["parent"] == unobserved[0]["pid"] for row in unobserved[1:]), rows)
                if unobserved[0]["observation"] == "none":
                    self.assertIn(KINDS[kind], unobserved[0]["unobserved_because"])
                else:  # it lived long enough to be met
                    self.assertEqual(unobserved[0]["observation"], "outside")
                    self.assertNotEqual(kind, "bits_32")

    def test_static(self):
        self.children("static")

    def test_address_sanitizer(self):
        self.children("address_sanitizer")

    def test_thread_sanitizer(self):
        self.children("thread_sanitizer")

    def test_32_bits(self):
        self.children("bits_32")

    def test_another_c_library(self):
        self.children("musl")

    def test_interpreter_of_a_script(self):
        script = self.path("script")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#! {program('musl')} -x\n")
        os.chmod(script, 0o755)
        self.children("musl", [script])

    def test_found_in_path(self):
        os.environ["PATH"], path = f"/nonexistent:{workload('unobservable')}:{os.environ['PATH']}", os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        self.children("musl", ["musl"])

    @harness.needs_events
    def test_static_program_below_a_shell_is_watched(self):
        static = workload("static/false_sharing")
        recorded = self.record(["sh", "-c", f"{static} --seconds 2; exit 4"])
        self.assertEqual((recorded.status, recorded.stderr), (4, ""))
        truth = json.loads(recorded.stdout.strip().splitlines()[-1])
        report = self.report(recorded.profile)
        self.assertIn("program_watched_from_outside", {warning["code"] for warning in report["warnings"]})
        self.assertNotIn("program_not_observed", {warning["code"] for warning in report["warnings"]})
        watched = [row for row in report["processes"] if row["observation"] == "outside"]
        self.assertEqual([row["command"].split()[0] for row in watched], [static], report["processes"])
        threads = {thread["tid"]: thread for thread in report["threads"]}
        self.assertLessEqual(set(truth["tids"][1:]), set(threads))
        self.assertGreater(sum(threads[tid]["samples"] for tid in truth["tids"][1:]), 0)
        self.assertTrue(any("false_sharing.cpp" in (loop["file"] or "") for loop in report["loops"]), report["loops"])

    @harness.needs_watchpoints
    def test_sharing_in_a_static_program_below_a_shell(self):
        def observe(factor):
            recorded = self.record(["sh", "-c", f"{workload('static/false_sharing')} --seconds {3 * factor}; true"])
            self.assertEqual(recorded.status, 0, recorded.stderr)
            return self.report(recorded.profile), json.loads(recorded.stdout.strip().splitlines()[-1])
        report, truth = self.enough("static/false_sharing", observe)
        self.assertTrue(harness.object_named(report["objects"][0], truth["object"]), report["objects"][0]["name"])

    @harness.needs_events
    def test_time_of_a_program_that_executes_a_static_one_is_counted_once(self):
        code = ("import os, sys, time\n"
                "while time.thread_time() < 1: pass\n"
                f"os.execv({workload('static/false_sharing')!r}, ['false_sharing', '--seconds', '1'])\n")
        recorded = self.record([sys.executable, "-c", code])
        self.assertEqual(recorded.status, 0, recorded.stderr)
        before, after = self.report(recorded.profile)["processes"]
        self.assertEqual((before["observation"], after["observation"], after["exit_status"]), ("preloaded", "outside", 0))
        first = [thread for thread in self.report(recorded.profile)["threads"] if thread["tid"] == before["pid"]]
        self.assertEqual(len(first), 2)
        self.assertGreater(first[0]["cpu_s"], 0.9)
        self.assertLess(first[1]["cpu_s"], 0.6)

    @harness.needs_events
    def test_dynamic_program_below_a_static_one_observes_itself(self):
        """The static program keeps the environment, so the library is in the program that it executes."""
        shell = shutil.which("busybox")
        if shell is None or is_dynamic(shell):
            self.skipTest("there is no statically linked shell (busybox-static)")
        code = f"sleep 0.5; {workload('false_sharing')} --seconds 1; sleep 0.1; exit 5"
        recorded = self.record(["sh", "-c", f"{shell} sh -c '{code}'; exit $?"])
        self.assertEqual((recorded.status, recorded.stderr), (5, ""))
        report = self.report(recorded.profile)
        rows = report["processes"]
        how = [row["observation"] for row in rows if row["command"].startswith(workload("false_sharing"))]
        # The observer may meet the process at its exec, and leaves it then.
        self.assertEqual([one for one in how if one != "outside"], ["preloaded"], rows)
        self.assertIn("outside", [row["observation"] for row in rows if row["command"].startswith(shell)], rows)
        tids = [thread["tid"] for thread in report["threads"]]
        workers = json.loads(recorded.stdout.strip().splitlines()[-1])["tids"][1:]
        self.assertEqual([tids.count(tid) for tid in workers], [1, 1])

    @harness.needs_events
    def test_static_program_that_outlives_the_command(self):
        recorded = self.record(["sh", "-c", f"{program('static')} 20 > /dev/null 2>&1 & sleep 0.5; exit 3"])
        self.assertEqual((recorded.status, recorded.stderr), (3, ""))
        report = self.report(recorded.profile)
        self.assertEqual(sorted(warning["code"] for warning in report["warnings"]
                                if warning["code"] in ("children_left_running", "program_watched_from_outside")),
                         ["children_left_running", "program_watched_from_outside"])
        self.assertLess(report["duration_s"], 15)  # a second after the command's end, and not for its own twenty

    def test_without_events_it_is_named_with_the_reason(self):
        recorded = self.record(["sh", "-c", f"{workload('static/false_sharing')} --seconds 0.5; exit 4"],
                               ("--event", "thread-timer"))
        self.assertEqual((recorded.status, recorded.stderr), (4, ""))
        said = self.warnings_of(recorded)
        self.assertEqual(len(said), 1, said)
        self.assertIn("and it could not be watched from outside: ", said[0])

    def test_shell_that_starts_it(self):
        self.needs("address_sanitizer")
        recorded = self.record(["sh", "-c", f"{program('address_sanitizer')}; {program('address_sanitizer')}; exit 4"])
        self.assertEqual((recorded.status, recorded.stdout, recorded.stderr), (4, "hello\nhello\n", ""))
        self.assertIn(len(self.warnings_of(recorded)), (1, 2))  # one may be met and the other not

    def test_observed_children_of_a_static_program(self):
        recorded = self.record(["sh", "-c", f"{program('static')}; exec {workload('false_sharing')} --seconds 0.5"])
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertIn("false_sharing", {thread["name"] for thread in self.report(recorded.profile)["threads"]})

    def test_exec_that_fails_is_not_named(self):
        """E2BIG: an argument longer than the kernel takes."""
        code = ("import os\n"
                "try:\n"
                f"    os.execv({program('static')!r}, ['x', 'x' * 200000])\n"
                "except OSError as error:\n"
                "    print(error.strerror)\n")
        recorded = self.record([sys.executable, "-c", code])
        self.assertEqual((recorded.status, recorded.stdout), (0, "Argument list too long\n"))
        self.assertEqual(self.warnings_of(recorded), [])
        self.assertEqual([row["observation"] for row in self.report(recorded.profile)["processes"]], ["preloaded"])

    @harness.needs_watchpoints
    def test_launched_by_the_recorder(self):
        """Programs that no library can be preloaded into are watched from outside."""
        for kind, words in KINDS.items():
            with self.subTest(kind=kind):
                bare = self.needs(kind)
                recorded = self.record([program(kind)])
                if kind == "bits_32":
                    self.assert_one_line_error(recorded, (125,))
                    self.assertIn(words, recorded.stderr)
                    continue
                self.assertEqual((recorded.status, recorded.stdout, recorded.stderr),
                                 (bare.status, bare.stdout, bare.stderr))
                report = self.report(recorded.profile)
                first = report["processes"][0]  # a sanitizer looks for leaks from a process of its own
                self.assertEqual((first["command"], first["exit_status"]), (program(kind), bare.status))
                said = {warning["code"]: warning["message"] for warning in report["warnings"]}
                self.assertIn(words.split(" (")[0].replace("another C library", "the loader"),
                              said["watched_from_outside"])
                self.assertIn(program(kind), said["watched_from_outside"])

    def test_pid_namespace(self):
        command = ["unshare", "-pf"]
        if run([*command, "true"]).status != 0:
            self.skipTest("unshare -p is not permitted here; run as root")
        recorded = self.record([*command, workload("false_sharing"), "--seconds", "0.3"])
        self.assertEqual((recorded.status, recorded.stderr), (0, ""))
        report = self.report(recorded.profile)
        observed = [process for process in report["processes"] if process["observation"] != "none"]
        self.assertEqual([process["command"].split()[0] for process in observed], ["unshare"], report["processes"])
        others = [process for process in report["processes"] if process["observation"] == "none"]
        self.assertIn(workload("false_sharing"), [process["command"] for process in others])
        self.assertTrue(all("pid namespace" in process["unobserved_because"] for process in others), others)
        said = self.warnings_of(recorded)
        self.assertTrue(any("false_sharing was not observed" in text and "pid namespace" in text for text in said), said)
        musl = self.needs("musl")
        recorded = self.record([*command, "sh", "-c", f"{program('musl')}; exit $?"])
        self.assertEqual((recorded.status, recorded.stdout, recorded.stderr), (musl.status, musl.stdout, musl.stderr))


if __name__ == "__main__":
    harness.main()
