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
