# SPDX-License-Identifier: Apache-2.0
"""The distances between a reference and a report, on hand-made ones."""

import unittest

import distances


def cell(producer, consumer, true=0, false=0):
    return {"producer": producer, "consumer": consumer, "true": true, "false": false}


def amounts(producer, consumer, true=0.0, false=0.0, unit="cost_s"):
    other = "count" if unit == "cost_s" else "cost_s"
    return {"producer": producer, "consumer": consumer,
            "true": {unit: true, other: None}, "false": {unit: false, other: None}}


def some_line(line, role):
    return {"file": "/src/a.cpp", "line": line, "function": "f", "role": role}


def some_reference(**changes):
    work = {"instructions": 1000, "flops": 20, "loads": 30, "stores": 10, "load_bytes": 240, "store_bytes": 80}
    return {
        "threads": 3, "stolen_turns": 0, "work": work, "command": ["program"],
        "cells": [cell(1, 2, 30, 10), cell(2, 1, 60)],
        "objects": [{"name": "(anonymous namespace)::data", "cells": [cell(1, 2, 30, 10), cell(2, 1, 50)]},
                    {"name": "flag", "cells": [cell(2, 1, 10)]}],
        "lines": [some_line(7, "producer"), some_line(9, "consumer"), some_line(5, "producer")],
        "loops": [{"function": "f", "file": "/src/a.cpp", "line_begin": 4, "line_end": 8, "depth": 1,
                   "iterations": 10, "work": work}],
    } | changes


def some_report(**changes):
    return {
        "threads": [{"index": n, "pid": 5} for n in range(3)], "processes": [{"pid": 5}],
        "communication": {"cells": [amounts(1, 2, 0.5, 0.1), amounts(2, 1, 0.3), amounts(0, 1, 0.1)]},
        "objects": [{"name": "data[3]", "cells": [amounts(1, 2, 0.4)]}],
        "lines": [some_line(7, "producer"), some_line(8, "consumer"), some_line(9, "consumer")],
        "loops": [],
    } | changes


class Distances(unittest.TestCase):
    def test_equal_shapes_have_none(self):
        one = {(1, 2, "true"): 3.0, (2, 1, "false"): 1.0}
        other = {(1, 2, "false"): 300.0, (2, 1, "true"): 100.0}
        self.assertEqual(distances.shape_distance(one, other), 0.0)

    def test_nothing_in_common_is_one(self):
        self.assertEqual(distances.shape_distance({(1, 2, "true"): 3.0}, {(2, 1, "true"): 1.0}), 1.0)

    def test_half_the_sum_of_differences(self):
        one = {(1, 2, "true"): 75.0, (2, 1, "true"): 25.0}
        other = {(1, 2, "true"): 1.0, (2, 1, "true"): 1.0}
        self.assertAlmostEqual(distances.shape_distance(one, other), 0.25)

    def test_nothing_is_at_no_distance(self):
        self.assertIsNone(distances.shape_distance({}, {(1, 2, "true"): 1.0}))

    def test_whole_comparison(self):
        result = distances.compare(some_reference(), some_report())
        self.assertEqual(result["unit"], "cost_s")
        self.assertEqual(result["communications"], 100)
        self.assertAlmostEqual(result["matrix_distance"], 0.5 * (0.2 + 0.3 + 0.1))
        self.assertAlmostEqual(result["true_share"]["difference_points"], 0.0)
        self.assertEqual([(row["producer"], row["consumer"]) for row in result["pairs"]["silent_reported"]], [(0, 1)])
        self.assertEqual(result["pairs"]["missed"], [])
        self.assertTrue(result["objects"]["first_equal"])
        self.assertEqual(result["objects"]["shared"], 1)
        self.assertTrue(result["lines"]["producer"]["first_equal"])
        self.assertFalse(result["lines"]["consumer"]["first_equal"])
        self.assertEqual(result["lines"]["consumer"]["shared"], 1)
        self.assertEqual(result["warnings"], [])

    def test_one_object_alone(self):
        result = distances.compare(some_reference(), some_report(), ["data"])
        self.assertEqual(result["communications"], 90)
        self.assertAlmostEqual(result["matrix_distance"], 50 / 90)
        self.assertEqual([(row["producer"], row["consumer"]) for row in result["pairs"]["missed"]], [(2, 1)])

    def test_counts_are_preferred_to_costs(self):
        report = some_report(communication={"cells": [amounts(1, 2, 40, unit="count"), amounts(2, 1, 60, unit="count")]})
        result = distances.compare(some_reference(), report)
        self.assertEqual(result["unit"], "count")
        self.assertAlmostEqual(result["matrix_distance"], 0.0)
        self.assertAlmostEqual(result["true_share"]["difference_points"], 10.0)

    def test_loops_an_iteration(self):
        rates = {"iterations_per_s": 2.0, "loads_per_s": 8.0, "stores_per_s": None, "flops_per_s": 4.0}
        loop = {"function": "f", "file": "/other/a.cpp", "line_begin": 4, "line_end": 8, "depth": 1, "share": 0.5,
                "rates": rates}
        (row,) = distances.compare(some_reference(), some_report(loops=[loop]))["loops"]
        self.assertEqual(row["per_iteration"]["loads"], 3.0)
        self.assertEqual(row["found_per_iteration"]["loads"], 4.0)
        self.assertIsNone(row["found_per_iteration"]["stores"])
        self.assertEqual(row["found_share"], 0.5)

    def test_loops_without_rates(self):
        (row,) = distances.compare(some_reference(), some_report())["loops"]
        self.assertIsNone(row["found_per_iteration"]["loads"])
        self.assertIsNone(row["found_share"])

    def test_warnings(self):
        silent = some_report(communication={"cells": []}, threads=[{"index": 0, "pid": 5}])
        words = " ".join(distances.compare(some_reference(stolen_turns=4), silent)["warnings"])
        self.assertIn("3 threads and the profile 1", words)
        self.assertIn("the profile has no communication", words)
        self.assertIn("4 times", words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
