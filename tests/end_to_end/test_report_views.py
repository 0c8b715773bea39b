# SPDX-License-Identifier: Apache-2.0
"""Selection of a report's parts: groups, filters, annotated source; and servers of debug information that do not
answer."""

import csv
import os
import re
import shutil
import socket
import threading
import time
from xml.etree import ElementTree

import harness
from harness import CROSSTALK, run, workload


class Recorded(harness.Case):
    def recorded(self, name="false_sharing", *arguments):
        return self.record([workload(name), *(arguments or ("--seconds", "1"))]).profile

    def communicating(self):
        """A profile in which communication was seen: a machine that is busy otherwise may leave too little to see."""
        for seconds in ("1", "4", "16"):
            profile = self.recorded("false_sharing", "--seconds", seconds)
            if harness.total_cost(self.report(profile)) > 0:
                break
        return profile

    def text(self, profile, *options):
        shown = run([CROSSTALK, "report", profile, *options])
        self.assertEqual(shown.status, 0, shown.stderr)
        return shown.stdout

    def refused(self, profile, *options):
        result = run([CROSSTALK, "report", profile, *options])
        self.assert_one_line_error(result)
        return result


class Groups(Recorded):
    @harness.needs_watchpoints
    def test_groups_hold_all_that_threads_exchange(self):
        profile = self.communicating()
        whole = self.report(profile)
        cost = harness.total_cost(whole)
        self.assertGreater(cost, 0)
        for by in ("name", "process", "start-routine"):
            report = self.report(profile, "--by", by)
            groups = report["groups"]
            self.assertEqual(groups["by"], by)
            summed = sum(cell[sort]["cost_s"] or 0 for cell in groups["cells"] for sort in ("true", "false"))
            self.assertAlmostEqual(summed, cost, delta=1e-6 * cost)
            self.assertEqual(sorted(i for group in groups["groups"] for i in group["threads"]),
                             [thread["index"] for thread in whole["threads"]])
        self.assertNotIn("groups", whole)

    @harness.needs_watchpoints
    def test_threads_of_a_pool_began_in_one_function(self):
        # A thread's beginning is known once a sample of it that opened a watch came with a copy of its stack.
        for seconds in ("1", "4", "16"):
            profile = self.recorded("false_sharing", "--seconds", seconds)
            report = self.report(profile, "--by", "start-routine")
            busy = [group for group in report["groups"]["groups"] if group["samples"] > 50]
            if all(group["name"] != "not known" for group in busy):
                break
        self.assertEqual(len(busy), 1, report["groups"]["groups"])
        self.assertGreaterEqual(len(busy[0]["threads"]), 2)
        self.assertNotIn("std::", busy[0]["name"].split("(")[0])
        self.assertNotEqual(busy[0]["name"], "not known")

    @harness.needs_watchpoints
    def test_every_grouping_in_every_format(self):
        profile = self.recorded()
        sockets_known = self.report(profile)["machine"]["topology"] is not None
        for by in ("name", "process", "start-routine", "core") + (("socket",) if sockets_known else ()):
            for view in ("summary", "matrix", "threads"):
                for kind in ("text", "json", "csv"):
                    self.assertTrue(self.text(profile, "--by", by, "--view", view, "--format", kind).strip())
        if not sockets_known:
            self.assertEqual(self.refused(profile, "--by", "socket").status, 1)


class BusyView(Recorded):
    def test_it_is_the_same_loop_in_every_format(self):
        profile = self.recorded("busy_loops", "--seconds", "2", "--only", "chained_sum", "--far", "1")
        report = self.report(profile, "--view", "busy")
        hottest = max(report["loops"], key=lambda row: row["share"])
        self.assertIn("chained_sum", hottest["function"])
        text = self.text(profile, "--view", "busy", "--format", "text")
        for words in ("Busy times and waits", "chained_sum", "where the time went", "functional units", "performance: ",
                      "Where threads' time went"):
            self.assertIn(words, text)
        for row in text.splitlines():
            if "where the time went" in row:
                self.assertRegex(row, "where the time went +[a-zA-Z0-9.]{10,50}$")
        picture = ElementTree.fromstring(self.text(profile, "--view", "busy", "--format", "svg"))
        self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertIn("chained_sum", "".join(picture.itertext()))
        rows = list(csv.DictReader(self.text(profile, "--view", "busy", "--format", "csv").splitlines()))
        row = next(row for row in rows if int(row["id"]) == hottest["id"])
        waits = {name: value for name, value in hottest["waits"].items() if name != "notes"}
        for name, value in waits.items():
            self.assertEqual(float(row["waits." + name] or 0), value or 0, name)
        self.assertAlmostEqual(sum(value or 0 for value in waits.values()), float(row["cpu_s"]), delta=1e-6)

    def test_a_picture_is_of_busy_times_alone(self):
        profile = self.recorded("busy_loops", "--seconds", "1", "--only", "chained_sum", "--far", "1")
        self.assertEqual(self.text(profile, "--format", "svg"), self.text(profile, "--view", "busy", "--format", "svg"))
        self.assertEqual(self.refused(profile, "--view", "lines", "--format", "svg").status, 125)


class Filters(Recorded):
    @harness.needs_watchpoints
    def test_rows_are_restricted_and_shares_are_not(self):
        profile = self.communicating()
        whole = self.report(profile)
        thread = whole["communication"]["cells"][0]["consumer"]
        one = self.report(profile, "--thread", str(thread))
        self.assertEqual(one["cpu_s"], whole["cpu_s"])
        expected = [cell for cell in whole["communication"]["cells"] if thread in (cell["producer"], cell["consumer"])]
        self.assertEqual(one["communication"]["cells"], expected)
        self.assertEqual([t["index"] for t in one["threads"] if t["listed"]], [thread])
        self.assertIn("filtered: --thread %d; shares are of the whole program" % thread,
                      self.text(profile, "--thread", str(thread)))

    @harness.needs_watchpoints
    def test_an_object_has_the_matrix_of_its_own(self):
        profile = self.communicating()
        whole = self.report(profile)
        name = whole["objects"][0]["name"]
        report = self.report(profile, "--object", name)
        self.assertEqual({entry["name"] for entry in report["objects"]}, {name})
        cost = sum(pair["cost_s"] for pair in whole["line_pairs"] if pair["object"] == name)
        self.assertAlmostEqual(harness.total_cost(report), cost, delta=1e-6 * cost)

    @harness.needs_watchpoints
    def test_a_filter_that_fits_nothing_says_what_there_is(self):
        profile = self.recorded()
        for option, value, there_is in (("--thread", "nobody", "0 false_sharing"), ("--object", "nothing", "there are:"),
                                        ("--module", "libnone.so", "false_sharing"),
                                        ("--min-cost", "1000", "costs is")):
            result = self.refused(profile, option, value)
            self.assertEqual(result.status, 1)
            self.assertIn(there_is, result.stderr)
        self.assertEqual(self.refused(profile, "--min-cost", "lots").status, 125)
        self.assertEqual(self.refused(profile, "--by", "core", "--thread", "0").status, 125)


class Source(Recorded):
    @harness.needs_watchpoints
    def test_figures_stand_beside_the_lines_that_communicate(self):
        profile = self.communicating()
        report = self.report(profile)
        line = next(row for row in report["lines"] if row["role"] == "consumer" and row["file"] and row["line"])
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", "false_sharing.cpp")
        there = os.path.join(self.path("root"), os.path.normpath(line["file"]).lstrip("/"))
        os.makedirs(os.path.dirname(there))
        shutil.copy(source, there)
        text = self.text(profile, "--view", "source", "%(file)s:%(line)d" % line, "--sysroot", self.path("root"))
        self.assertNotIn("The source is not here", text)
        with open(source, encoding="utf-8") as file:
            statement = file.read().splitlines()[line["line"] - 1].strip()[:20]  # long lines are cut
        row = next(row for row in text.splitlines() if statement in row)
        self.assertRegex(row, r"[0-9](s|ms|us) ")
        self.assertIn("%d> " % line["line"], row)
        self.assertIn("%d" % line["line"], self.text(profile, "--view", "source", os.path.basename(line["file"])))

    @harness.needs_watchpoints
    def test_a_profile_in_the_place_of_a_place_is_the_profile(self):
        profile = self.communicating()
        costliest = self.text(profile, "--view", "source", "--no-pager")
        shown = run([CROSSTALK, "report", "--view", "source", profile])
        self.assertEqual((shown.status, shown.stdout), (0, costliest), shown.stderr)
        self.assertEqual(run([CROSSTALK, "report", "--view", "asm", profile]).status, 0)
        # If another profile is named, it is a place.
        self.assertIn("there are:", self.refused(profile, "--view", "source", profile).stderr)

    @harness.needs_watchpoints
    def test_no_such_file_and_no_such_folder(self):
        profile = self.recorded()
        result = self.refused(profile, "--view", "source", "nothing.cpp")
        self.assertEqual(result.status, 1)
        self.assertIn("there are:", result.stderr)
        self.assertEqual(self.refused(profile, "--sysroot", self.path("none")).status, 125)


class Warnings(Recorded):
    CLOCKS = """#include <chrono>
#include <thread>
void read_clock() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
  }
}
int main() {
  std::thread other(read_clock);
  read_clock();
  other.join();
}
"""

    @harness.needs_watchpoints
    def test_threads_that_ask_for_the_time_exchange_nothing(self):
        # Both read the kernel's pages all the time, which cannot be watched. Nobody stores there.
        program, source = self.path("clocks"), self.path("clocks.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(self.CLOCKS)
        compiled = run(["g++", "-O1", "-pthread", "-o", program, source])
        self.assertEqual(compiled.status, 0, compiled.stderr)
        report = self.report(self.record([program], ["--period", "1ms"]).profile)
        self.assertGreater(report["sampling"]["samples"], 20)
        self.assertNotIn("unwatchable_lines", {warning["code"] for warning in report["warnings"]})


class Assembly(Recorded):
    def rebuildable(self, body, build_id="--build-id"):
        """A program of two threads that increment neighbouring words, compiled where it can be compiled again."""
        source = self.path("pair.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(body)
        program = self.path("pair")
        compiled = run(["g++", "-O1", "-g", "-pthread", "-Wl," + build_id, "-o", program, source])
        self.assertEqual(compiled.status, 0, compiled.stderr)
        return program

    BODY = """#include <thread>
volatile long pair[2];
[[gnu::noinline]] void bump(int i) {
  for (long n = 0; n < 200000000; ++n) {
    pair[i] = n;
  }
}
int main() {
  std::thread a(bump, 0), b(bump, 1);
  a.join();
  b.join();
}
"""

    @harness.needs_watchpoints
    def test_the_instruction_that_stores_is_the_hot_one(self):
        profile = self.record([self.rebuildable(self.BODY)]).profile
        text = self.text(profile, "--view", "asm", "bump")
        rows = [row for row in text.splitlines() if re.match(r" *[0-9.]+ %", row)]
        hottest = max(rows, key=lambda row: float(row.split()[0]))
        self.assertRegex(hottest, r"mov\w* +%\w+, .*\(")
        self.assertGreater(float(hottest.split()[0]), 40, text)
        self.assertIn("pair.cpp:5  pair[i] = n;", text)
        self.assertIn(hottest, self.text(profile, "--view", "asm", "pair.cpp").splitlines())
        line = self.text(profile, "--view", "asm", "pair.cpp:5")
        self.assertRegex(line, r"[0-9a-f]+> mov")
        self.assertIn(hottest, self.text(profile, "--view", "asm").splitlines())

    ATOMICS = """#include <atomic>
std::atomic<long> one, other;
int main() {
  for (long n = 0; n < 60000000; ++n) {
    one.fetch_add(1);
    asm volatile("nop");
    other.fetch_add(1);
    asm volatile("nop");
  }
}
"""

    def test_the_line_of_an_access_has_its_time(self):
        profile = self.record([self.rebuildable(self.ATOMICS)]).profile
        text = self.text(profile, "--view", "source", "pair.cpp")
        shares = {int(row[2]): float(row[1])
                  for row in re.finditer(r"^ *([0-9.]+) %.*? (\d+)  .*(?:fetch_add|nop)", text, flags=re.MULTILINE)}
        self.assertGreater(shares.get(5, 0) + shares.get(7, 0), 80, text)
        self.assertLess(shares.get(6, 0) + shares.get(8, 0), 15, text)

    @harness.needs_watchpoints
    def test_what_can_not_be_shown_is_refused_in_one_line(self):
        program = self.rebuildable(self.BODY)
        profile = self.record([program]).profile
        for place, said in (("nothing", "there are: "), ("pair.cpp:1", "no instruction"), ("a.cpp", "there are: ")):
            result = self.refused(profile, "--view", "asm", place)
            self.assertEqual(result.status, 1)
            self.assertIn(said, result.stderr)
        self.assertEqual(self.refused(profile, "--view", "asm", "pair.cpp:0").status, 125)
        os.remove(program)
        for view in ("asm", "source"):
            self.assertIn("pair", self.refused(profile, "--view", view, "bump").stderr)

    @harness.needs_watchpoints
    def test_a_program_built_anew_is_not_shown_with_wrong_lines(self):
        profile = self.record([self.rebuildable(self.BODY)]).profile
        self.assertNotIn("written after", self.text(profile, "--view", "source", "pair.cpp"))
        self.rebuildable("// one more line\n" + self.BODY)
        # Without a place, `asm` shows the costliest function: the C library's, perhaps, in a run that saw little.
        whole = run([CROSSTALK, "report", profile, "--view", "asm", "--no-pager"])
        self.assertNotIn("pair.cpp", whole.stdout)
        self.assertNotIn("bump", whole.stdout)
        if whole.status != 0:
            self.assertIn("has changed since the recording", whole.stderr)
        for view, place in (("asm", "pair.cpp"), ("asm", "bump"), ("source", ""), ("source", "pair.cpp"), ("source", "bump")):
            result = self.refused(profile, "--view", view, *([place] if place else ["--no-pager"]))
            self.assertIn("has changed since the recording", result.stderr)
        later = self.record([self.path("pair")], output="later.db").profile
        compared = run([CROSSTALK, "diff", profile, later])
        self.assertIn("of the profile before", compared.stdout, compared.stderr)
        self.assertIn("the program was built anew in between", compared.stdout)

    @harness.needs_watchpoints
    def test_a_program_without_a_build_id_that_was_built_anew(self):
        profile = self.record([self.rebuildable(self.BODY, "--build-id=none")]).profile
        self.assertIn("pair.cpp:5", self.text(profile, "--view", "asm", "bump"))
        os.utime(self.path("pair"))  # a copy of it is still the same
        self.assertIn("pair.cpp:5", self.text(profile, "--view", "asm", "bump"))
        self.rebuildable("// one more line\n" + self.BODY, "--build-id=none")
        self.assertIn("has changed since the recording", self.refused(profile, "--view", "asm", "bump").stderr)
        text = " ".join(self.text(profile).split())
        self.assertIn("has changed since the recording", text)
        self.assertNotIn("threads are made in", text, "the program's own code there is not known")

    @harness.needs_watchpoints
    def test_a_program_is_called_as_it_was_started(self):
        link = self.path("by-this-name")
        os.symlink(self.rebuildable(self.BODY), link)
        profile = self.record([link]).profile
        whole = self.text(profile)
        self.assertIn("by-this-name", whole.splitlines()[0])
        self.assertNotIn("(by-this-name)", whole)  # no name that a user gave a thread
        self.assertTrue(self.text(profile, "--module", "by-this-name"))


class Waits(Recorded):
    @harness.needs_watchpoints
    def test_a_processor_that_is_not_enough_is_said(self):
        cpus = sorted(os.sched_getaffinity(0))[:1]
        result = self.record(["taskset", "-c", str(cpus[0]), workload("false_sharing"), "--seconds", "1"])
        report = self.report(result.profile)
        if report["waits"] is None:
            self.skipTest("this kernel does not count how long threads wait")
        self.assertGreater(report["waits"]["share"], 0.2)
        self.assertIn("overloaded", [warning["code"] for warning in report["warnings"]])
        self.assertIn("threads waited for a processor", self.text(result.profile))


class Debuginfod(Recorded):
    def report_with(self, url, timeout_s):
        profile = self.recorded()
        began = time.monotonic()
        shown = run([CROSSTALK, "report", profile], timeout=60,
                    env={**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": self.path("cache"),
                         "DEBUGINFOD_TIMEOUT": str(timeout_s)})
        self.assertEqual(shown.status, 0, shown.stderr)
        return shown, time.monotonic() - began

    @harness.needs_watchpoints
    def test_a_server_that_never_answers_holds_a_report_up_once(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            asked = []

            def accept():
                while True:
                    try:
                        asked.append(server.accept()[0])  # kept open, never answered
                    except OSError:
                        return

            threading.Thread(target=accept, daemon=True).start()
            shown, took = self.report_with("http://127.0.0.1:%d" % server.getsockname()[1], 2)
            server.shutdown(socket.SHUT_RDWR)
        self.assertTrue(asked, "the server was not asked: all debug information is here")
        self.assertLess(took, 20)  # one wait of 2 s, and the report itself
        self.assertEqual(shown.stdout.count("DEBUGINFOD_URLS: the servers sent nothing for 2 s"), 1, shown.stdout)
        for connection in asked:
            connection.close()

    @harness.needs_watchpoints
    def test_an_unreachable_server_is_said_once(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]  # free again below
        shown, _ = self.report_with("http://127.0.0.1:%d" % port, 2)
        self.assertEqual(shown.stdout.count("DEBUGINFOD_URLS: no server could be reached"), 1, shown.stdout)


if __name__ == "__main__":
    harness.main()
