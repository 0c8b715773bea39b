# SPDX-License-Identifier: Apache-2.0
"""Programs that cannot be observed from inside run as without us, and the profile names them."""

import os
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


class Unobservable(harness.Case):
    def warnings_of(self, recorded):
        return [warning["message"] for warning in self.report(recorded.profile)["warnings"]
                if warning["code"] == "program_not_observed"]

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
                self.assertEqual([row["observation"] for row in unobserved], ["none"], rows)
                self.assertIn(KINDS[kind], unobserved[0]["unobserved_because"])

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

    def test_shell_that_starts_it(self):
        self.needs("address_sanitizer")
        recorded = self.record(["sh", "-c", f"{program('address_sanitizer')}; {program('address_sanitizer')}; exit 4"])
        self.assertEqual((recorded.status, recorded.stdout, recorded.stderr), (4, "hello\nhello\n", ""))
        self.assertEqual(len(self.warnings_of(recorded)), 1)

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
