# SPDX-License-Identifier: Apache-2.0
"""`crosstalk roofline`: loops of known intensity on a calibrated machine."""

import json
import os
import re
import xml.etree.ElementTree as ElementTree

import harness
import test_busy_times


class Placed(harness.Case):
    @classmethod
    def setUpClass(cls):
        test_busy_times.calibrated(cls)

    def recorded(self, *arguments):
        profile = self.path("run.db")
        result = harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "--", *arguments])
        self.assertEqual(result.status, 0, result.stderr)
        return profile

    def roofline(self, *arguments, status=0):
        result = harness.run([harness.CROSSTALK, "roofline", *arguments])
        self.assertEqual(result.status, status, result.stderr)
        return result

    def test_a_triad_has_the_intensity_that_its_code_says(self):
        profile = self.recorded(harness.workload("busy_loops"), "--seconds", "1", "--only", "far_triad", "--far", "32")
        report = json.loads(self.roofline("--format", "json", profile).stdout)
        triad = next(loop for loop in report["loops"] if "triad" in loop["function"])
        self.assertAlmostEqual(triad["intensity"]["value"], 2 / 24)
        self.assertEqual((triad["intensity"]["low"], triad["intensity"]["high"]), (triad["intensity"]["value"],) * 2)
        self.assertEqual(triad["intensity"]["basis"], "decoded")
        rate = triad["performance"]
        self.assertLess(0, rate["low"])
        self.assertLess(rate["low"], rate["high"])
        text = self.roofline(profile).stdout
        self.assertIn("far_triad", text)
        self.assertRegex(text, "0.0833")
        picture = self.path("roofline.svg")
        self.roofline("--format", "svg", "-o", picture, profile)
        drawn = ElementTree.parse(picture).getroot()
        self.assertIn("far_triad", "".join(drawn.itertext()))
        rows = self.roofline("--format", "csv", profile).stdout.splitlines()
        self.assertEqual(len(rows), 1 + len(report["loops"]))
        alone = json.loads(self.roofline("--format", "json", "--loop", str(triad["id"]), profile).stdout)
        self.assertEqual([loop["id"] for loop in alone["loops"]], [triad["id"]])

    def test_each_model_has_a_place_or_a_reason_in_every_format(self):
        profile = self.recorded(harness.workload("numeric_loops"), "--seconds", "1", "--only", "stencil<3>")
        for model in ("carm", "orm", "hierarchical", "irm", "runtime", "sparse", "mansard"):
            report = json.loads(self.roofline("--format", "json", "--model", model, profile).stdout)
            self.assertEqual(report["model"], model)
            self.assertTrue(report["loops"] or report["unplaced"])
            for loop in report["loops"]:
                self.assertIsNone(loop[model]["unknown"])
                self.assertTrue(loop[model]["points"] and loop[model]["roofs"])
            for unplaced in report["unplaced"]:
                self.assertRegex(unplaced["why"], r"^\S[^\n]*$")
            text = self.roofline("--model", model, profile).stdout
            for loop in report["loops"][:5]:
                self.assertIn(loop["function"].split("::")[-1], text)
            drawn = ElementTree.fromstring(self.roofline("--model", model, "--format", "svg", profile).stdout)
            self.assertTrue(drawn.tag.endswith("svg"))
            for form in ("text", "svg", "json", "csv"):
                shown = self.roofline("--model", model, "--format", form, profile).stdout
                self.assertNotRegex(shown, r"\b(nan|inf|NaN|Infinity)\b")

    def test_rows_of_any_length_have_an_intensity(self):
        profile = self.recorded(harness.workload("numeric_loops"), "--seconds", "3", "--only", "sparse_product")
        report = json.loads(self.roofline("--format", "json", profile).stdout)
        placed = [loop for loop in report["loops"] if "sparse_product" in loop["function"]]
        if not placed:  # too few iterations of the rows were followed
            self.assertTrue(any(unplaced["why"] for unplaced in report["unplaced"]))
            return
        self.assertAlmostEqual(placed[0]["intensity"]["value"], 2 / 20)
        orm = placed[0]["orm"]
        if orm["unknown"]:  # a calibration that was disturbed has no rate of the memory
            self.assertRegex(orm["unknown"], r"^\S[^\n]*$")
            return
        self.assertAlmostEqual(orm["gathers"]["best"], 2 / 12)
        self.assertAlmostEqual(orm["gathers"]["worst"], 2 / 76)

    def test_threads_of_a_loop_have_points_of_their_own(self):
        profile = self.recorded(harness.workload("busy_loops"), "--seconds", "1", "--only", "far_triad", "--far", "32")
        by_thread = json.loads(self.roofline("--by", "thread", "--format", "json", profile).stdout)
        self.assertEqual(by_thread["by"], "thread")
        self.assertTrue(all(loop["thread"] is not None for loop in by_thread["loops"]))
        more = json.loads(self.roofline("--threads", "64", "--format", "json", profile).stdout)
        self.assertTrue(all(loop["roofs_of_threads"] == 64 for loop in more["loops"]))

    def test_a_file_of_another_machine_or_a_broken_one_is_told(self):
        profile = self.recorded(harness.workload("busy_loops"), "--seconds", "0.5", "--only", "near_triad")
        with open(os.path.join(os.environ["XDG_CONFIG_HOME"], "crosstalk", "machine.json"), encoding="utf-8") as file:
            text = file.read()
        other, broken = self.path("other.json"), self.path("broken.json")
        with open(other, "w", encoding="utf-8") as file:
            file.write(re.sub(r'("identity": \{.*?"name": )"[^"]*"', r'\1"Another processor"', text, flags=re.DOTALL))
        with open(broken, "w", encoding="utf-8") as file:
            file.write(text[:len(text) // 2])
        notes = json.loads(self.roofline("--machine", other, "--format", "json", profile).stdout)["notes"]
        self.assertEqual(len(notes), 1)
        self.assertIn("crosstalk calibrate", notes[0])
        result = self.roofline("--machine", broken, profile, status=1)
        self.assertEqual((result.stdout, result.stderr.count("\n")), ("", 1))
        self.assertIn("crosstalk calibrate", result.stderr)

    def test_what_cannot_be_drawn_is_said_in_one_line(self):
        profile = self.recorded(harness.workload("private_only"), "--seconds", "0.3")
        self.assertIn("--loop 4711: ", self.roofline("--loop", "4711", profile, status=1).stderr)
        self.assertIn("no-such.json", self.roofline("--machine", self.path("no-such.json"), profile, status=1).stderr)
        text = self.roofline(profile).stdout
        self.assertTrue(re.search("without a place: .+", text), text)


class Uncalibrated(harness.Case):
    def test_the_remedy_is_named(self):
        profile = self.path("run.db")
        environment = dict(os.environ, XDG_CONFIG_HOME=self.path("none"))
        harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "--", harness.workload("private_only"), "--seconds",
                     "0.3"], env=environment)
        result = harness.run([harness.CROSSTALK, "roofline", profile], env=environment)
        self.assertEqual((result.status, result.stdout), (1, ""))
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("crosstalk calibrate", result.stderr)


if __name__ == "__main__":
    harness.main()
