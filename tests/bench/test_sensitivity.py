# SPDX-License-Identifier: Apache-2.0
"""The study of sensitivity: what a run is worth, what many say, the plan of the runs, tables and sentences."""

import json
import math
import os
import pathlib
import random
import statistics
import sys
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "bench"), os.path.join(TOP, "tests", "end_to_end")]

import harness  # noqa: E402
import sensitivity  # noqa: E402
import sensitivity_model as model  # noqa: E402
import sensitivity_text as text  # noqa: E402


def cell(producer, consumer, true_s=0.0, false_s=0.0, seen=0):
    return {"producer": producer, "consumer": consumer, "true": {"cost_s": true_s, "seen": seen},
            "false": {"cost_s": false_s, "seen": 0}}


def some_report(cells, elsewhere=(), sync=(), warnings=()):
    objects = [{"name": "(anonymous namespace)::data", "cells": list(cells)}, {"name": "other", "cells": list(elsewhere)},
               {"name": "lock[2]", "cells": list(sync)}]
    return {"threads": [{"index": n, "tid": 100 + n, "cpu_s": 2.0} for n in range(3)],
            "communication": {"cells": [*cells, *elsewhere, *sync]}, "objects": objects,
            "warnings": [{"code": code, "message": f"about {code}"} for code in warnings],
            "sampling": {"samples": 500, "overhead": {"fraction": 0.02}}}


def some_truth(matrix, true, false):
    return {"tids": [100, 101, 102], "matrix": matrix, "true": true, "false": false, "data": ["data"], "sync": ["lock"]}


ONE_WAY = some_truth([[0, 0, 0], [0, 0, 80], [0, 0, 0]], true=60, false=20)  # 1 gives to 2


class Floor(unittest.TestCase):
    def test_is_the_mean_distance_of_random_draws(self):
        matrix = [[0, 30, 10], [5, 0, 25], [20, 10, 0]]
        draws, cells = 400, [(i, j) for i in range(3) for j in range(3)]
        weights = [matrix[i][j] for i, j in cells]
        source = random.Random(3)
        distances = []
        for _ in range(300):
            costs = {}
            for i, j in source.choices(cells, weights, k=draws):
                costs[i, j, "true"] = costs.get((i, j, "true"), 0) + 1
            distances.append(harness.matrix_distance(costs, {"matrix": matrix}))
        self.assertAlmostEqual(model.noise_floor(matrix, draws), statistics.fmean(distances), delta=0.004)

    def test_of_many_equal_cells_is_the_rule_of_thumb(self):
        matrix = [[0 if i == j else 7 for j in range(20)] for i in range(20)]
        self.assertAlmostEqual(model.noise_floor(matrix, 10000), 0.4 * math.sqrt(380 / 10000), delta=0.001)

    def test_of_one_cell_is_none_at_all(self):
        self.assertEqual(model.noise_floor([[0, 9], [0, 0]], 5), 0)

    def test_is_unknown_without_detections_or_truth(self):
        self.assertIsNone(model.noise_floor([[0, 9], [0, 0]], 0))
        self.assertIsNone(model.noise_floor([[0, 0], [0, 0]], 9))

    def test_is_no_greater_than_a_distance_can_be(self):
        matrix = [[0 if i == j else 1 for j in range(64)] for i in range(64)]
        self.assertEqual(model.noise_floor(matrix, 1), 1.0)


class Judged(unittest.TestCase):
    def test_a_right_report_is_at_no_distance(self):
        run = model.judged(some_report([cell(1, 2, 0.6, 0.2, seen=40)]), ONE_WAY)
        self.assertEqual(run["distance"], 0)
        self.assertAlmostEqual(run["split_points"], 0)
        self.assertEqual(run["phantom"], 0)
        self.assertEqual(run["elsewhere"], 0)
        self.assertEqual(run["detections"], 40)
        self.assertAlmostEqual(run["detections_per_s"], 40 / 6)
        self.assertAlmostEqual(run["work_per_s"], 80 / 6)
        self.assertAlmostEqual(run["cost"], 0.8 / 6)
        self.assertEqual(run["overhead"], 0.02)

    def test_costs_are_compared_with_those_that_the_program_has_timed(self):
        truth = {**ONE_WAY, "matrix": [[0, 0, 0], [0, 0, 40], [0, 40, 0]],
                 "true_cost": [[0, 0, 0], [0, 0, 0.6], [0, 0.2, 0]], "false_cost": [[0, 0, 0], [0, 0, 0.0], [0, 0.2, 0]]}
        run = model.judged(some_report([cell(1, 2, 0.6), cell(2, 1, 0.2, 0.2)]), truth)
        self.assertAlmostEqual(run["distance"], 0)
        self.assertAlmostEqual(run["split_points"], 0)
        run = model.judged(some_report([cell(1, 2, 0.5), cell(2, 1, 0.5)]), truth)
        self.assertAlmostEqual(run["distance"], 0.1)
        self.assertAlmostEqual(run["split_points"], 20)
        self.assertAlmostEqual(run["of_timed"], 1)

    def test_pairs_that_do_not_communicate_are_phantoms(self):
        run = model.judged(some_report([cell(1, 2, 0.3), cell(2, 1, 0.1)]), ONE_WAY)
        self.assertAlmostEqual(run["phantom"], 0.25)
        self.assertAlmostEqual(run["distance"], 0.25)
        self.assertAlmostEqual(run["split_points"], 25)

    def test_threads_that_the_truth_does_not_know_are_phantoms(self):
        report = some_report([cell(1, 2, 0.3), cell(0, 2, 0.1)])
        report["threads"][0]["tid"] = 999
        self.assertAlmostEqual(model.judged(report, ONE_WAY)["phantom"], 0.25)

    def test_the_largest_phantom_is_one_pair_with_both_sorts(self):
        costs = {(0, 1, "true"): 6.0, (1, 0, "true"): 1.0, (1, 0, "false"): 1.0, (2, 0, "true"): 1.5, (None, 2, "true"): 0.5}
        truth = {"matrix": [[0, 9, 0], [0, 0, 0], [0, 0, 0]]}
        self.assertAlmostEqual(model.largest_phantom(costs, truth), 0.2)
        self.assertAlmostEqual(model.phantom_share(costs, truth), 0.4)
        self.assertEqual(model.largest_phantom({(0, 1, "true"): 1.0}, truth), 0)
        self.assertIsNone(model.largest_phantom({}, truth))

    def test_synchronisation_is_neither_data_nor_elsewhere(self):
        run = model.judged(some_report([cell(1, 2, 0.6, 0.2, 9)], [cell(1, 2, 0.3, 0, 5)], [cell(2, 1, 0.9, 0, 7)]), ONE_WAY)
        self.assertAlmostEqual(run["elsewhere"], 0.3 / 6)
        self.assertEqual(run["detections"], 9)
        self.assertEqual(run["distance"], 0)

    def test_where_nothing_is_shared_there_is_no_distance(self):
        run = model.judged(some_report([], [cell(1, 2, 0.06)]), some_truth([[0] * 3] * 3, 0, 0))
        for key in ("distance", "floor", "split_points", "phantom", "work_per_s"):
            self.assertIsNone(run[key], key)
        self.assertAlmostEqual(run["elsewhere"], 0.01)

    def test_what_was_not_seen_is_as_far_as_can_be(self):
        run = model.judged(some_report([]), ONE_WAY)
        self.assertEqual(run["distance"], 1)
        for key in ("floor", "split_points", "phantom"):
            self.assertIsNone(run[key], key)

    def test_an_estimate_that_is_not_made_is_unknown_with_its_reason(self):
        run = model.judged(some_report([cell(1, 2)], warnings=["too_few_events"]), ONE_WAY)
        self.assertIsNone(run["distance"])
        self.assertEqual(run["unknown"], "about too_few_events")


class JudgedBare(unittest.TestCase):
    def test_threads_have_no_more_processors_than_there_are(self):
        truth = {"threads": 5, "true": 30, "false": 10}
        self.assertEqual(model.judged_bare(truth, 4.0, 2.0, 2), {"cpu_s": 4.0, "work_per_s": 10.0, "got": 1.0})
        self.assertEqual(model.judged_bare(truth, 4.0, 2.0, 4)["got"], 0.5)
        self.assertEqual(model.judged_bare(truth, 4.0, 2.0, 64)["got"], 0.5)  # main waits


def runs_at(distances, overhead=0.02, floor=0.01):
    return [{"round": n, "distance": distance, "overhead": overhead, "floor": floor, "work_per_s": 90.0,
             "detections_per_s": 5.0} for n, distance in enumerate(distances)]


class Statistics(unittest.TestCase):
    def test_a_range_leaves_out_what_is_unknown(self):
        self.assertEqual(model.range_of([3, None, 1, 2]), model.Range(2, 1, 3, 3))
        self.assertIsNone(model.range_of([None]))

    def test_failed_runs_do_not_count(self):
        runs = [{"round": 1, "distance": 0.2}, {"round": 0, "failed": "gone"}]
        self.assertEqual(model.column(runs, "distance"), [0.2])

    def test_lost_work_is_against_bare_runs_of_the_same_round(self):
        bare = [{"round": 0, "work_per_s": 100.0}, {"round": 0, "work_per_s": 80.0}, {"round": 1, "work_per_s": 180.0},
                {"round": 2, "failed": "gone"}]
        self.assertEqual(model.work_lost(runs_at([0.1, 0.1, 0.1]), bare), [0.0, 0.5])

    def test_a_score_is_the_mean_over_programs_by_round(self):
        score = model.score(4, [runs_at([0.1, 0.3], overhead=0.01), runs_at([0.3, 0.1, 0.9], overhead=0.03)])
        self.assertEqual(score.distance, model.Range(0.2, 0.2, 0.2, 2))
        self.assertEqual(score.overhead, 0.03)

    def test_values_without_a_common_round_have_no_score(self):
        self.assertIsNone(model.score(4, [runs_at([0.1]), [{"round": 0, "failed": "gone"}]]))
        self.assertIsNone(model.score(4, []))


def scored(value, distances, overhead=0.02):
    return model.score(value, [runs_at(distances, overhead)])


class Choosing(unittest.TestCase):
    def choose(self, *scores, budget=0.03):
        return model.choose(scores, 4, budget)

    def test_better_means_that_ranges_are_apart(self):
        choice = self.choose(scored(4, [0.20, 0.21, 0.22]), scored(2, [0.10, 0.11, 0.19]))
        self.assertEqual(choice.best.value, 2)
        self.assertTrue(choice.better)
        self.assertAlmostEqual(choice.chance, 1 / 20)

    def test_ranges_that_overlap_prove_nothing(self):
        choice = self.choose(scored(4, [0.20, 0.15, 0.22]), scored(2, [0.10, 0.11, 0.19]))
        self.assertEqual(choice.best.value, 2)
        self.assertFalse(choice.better)

    def test_one_run_proves_nothing(self):
        self.assertFalse(self.choose(scored(4, [0.2]), scored(2, [0.1])).better)

    def test_what_costs_too_much_is_no_choice(self):
        self.assertEqual(self.choose(scored(4, [0.2, 0.2]), scored(2, [0.1, 0.1], overhead=0.04)).best.value, 4)
        self.assertEqual(self.choose(scored(4, [0.2, 0.2], overhead=0.05), scored(2, [0.1, 0.1], overhead=0.04)).best.value, 2)

    def test_many_values_look_better_by_chance(self):
        others = [scored(value, [0.1] * 3) for value in (1, 2, 8)]
        self.assertAlmostEqual(self.choose(scored(4, [0.2] * 3), *others).chance, 3 / 20)

    def test_of_equals_the_default_is_best(self):
        self.assertEqual(self.choose(scored(2, [0.2] * 3), scored(4, [0.2] * 3)).best.value, 4)

    def test_needs_the_default(self):
        self.assertIsNone(self.choose(scored(2, [0.2] * 3), None))


class Plan(unittest.TestCase):
    def test_points_name_each_value_of_each_program(self):
        for quick in (False, True):
            points = model.points(quick)
            self.assertEqual(len(points), len({(p.sweep, p.value, p.label) for p in points}))
            for sweep in model.SWEEPS:
                self.assertEqual({p.value for p in points if p.sweep == sweep.name}, set(sweep.quick if quick else sweep.values))
                self.assertLessEqual(set(sweep.quick), set(sweep.values))
                self.assertTrue(sweep.default is None or sweep.default in sweep.quick, sweep.name)

    def test_a_default_needs_no_option(self):
        for point in model.points():
            sweep = model.sweep_named(point.sweep)
            if sweep.default is not None:
                self.assertEqual(point.value == sweep.default, point.subject.options == () and point.subject.estimator == "", point)

    def test_options_are_those_of_record(self):
        options = {(p.sweep, p.value): p.subject.options for p in model.points() if p.subject.options}
        self.assertEqual(options["period", 16], ("--period", "16ms"))
        self.assertEqual(options["board", 128], ("--board-slots", "128"))
        self.assertEqual(options["budget", 1.5], ("--budget", "1.5"))

    def test_the_defaults_are_recorded_once_and_reported_by_all_estimators(self):
        recordings = sensitivity.recordings(model.points())
        estimators = recordings[model.Subject(model.PROGRAMS["ring"])]
        self.assertEqual(len(estimators), len(model.sweep_named("estimator").values) - 1)
        self.assertFalse(any(subject.estimator for subject in recordings))

    def test_a_round_has_all_recordings_and_bare_runs_in_between(self):
        points = model.points()
        first, second = (sensitivity.steps_of_round(points, number) for number in (0, 1))
        self.assertNotEqual(first, second)
        self.assertEqual(first, sensitivity.steps_of_round(points, 0))
        bare = [index for index, (subject, _) in enumerate(first) if subject.bare]
        self.assertEqual(len(bare), sensitivity.BARE_RUNS * len(model.PROGRAMS))
        self.assertGreater(min(b - a for a, b in zip(bare, bare[1:])), 5)
        self.assertEqual({subject for subject, _ in first if not subject.bare}, set(sensitivity.recordings(points)))

    def test_programs_without_varied_settings_have_no_bare_runs(self):
        points = model.points(names=("true",))
        self.assertFalse(any(subject.bare for subject, _ in sensitivity.steps_of_round(points, 0)))

    def test_the_time_left_is_that_of_the_runs_so_far(self):
        self.assertAlmostEqual(sensitivity.remaining(60, 4, 0, 0), 5)
        self.assertAlmostEqual(sensitivity.remaining(30, 4, 10, 60), 3)


def results_at(path, distance=lambda point, number: 0.1):
    """A quick study in which nothing was measured, but all is known."""
    head = {"schema": sensitivity.SCHEMA, "machine": "a machine", "runs": 3, "seconds": 1.5, "quick": True}
    results = sensitivity.Results(path, head)
    for point in model.points(quick=True):
        runs = results.runs(point.subject)
        if not runs:
            runs += [{"round": number, "distance": distance(point, number), "floor": 0.05, "split_points": 2.0,
                      "phantom": 0.01, "elsewhere": 0.0, "cost": 0.4, "detections_per_s": 50.0, "overhead": 0.025,
                      "work_per_s": 97.0} for number in range(3)]
    for program in model.PROGRAMS.values():
        results.runs(model.Subject(program, bare=True)).extend({"round": n, "work_per_s": 100.0, "got": 0.99 - 0.01 * n}
                                                                for n in range(3))
    results.write()
    return results


class Files(harness.Case):
    def test_results_come_back_as_they_were_written(self):
        written = results_at(self.path("results.json"))
        again = sensitivity.results_for(self.path("results.json"), 3, 1.5, True, False)
        again.take(sensitivity.read(self.path("results.json")))
        self.assertEqual(again.measurements, written.measurements)

    def test_figures_keep_six_digits(self):
        self.assertEqual(sensitivity.rounded({"a": 0.000123456789, "b": 1234567.0, "c": None, "d": 3, "e": "x", "f": 0.0}),
                         {"a": 0.000123457, "b": 1234570.0, "c": None, "d": 3, "e": "x", "f": 0.0})

    def test_other_files_are_refused(self):
        with open(self.path("other.json"), "w", encoding="ascii") as file:
            json.dump({"schema": "something else"}, file)
        for name in ("other.json", "missing.json"):
            with self.assertRaises(SystemExit) as refused:
                sensitivity.read(self.path(name))
            self.assertTrue(str(refused.exception.code).startswith("bench: "), refused.exception.code)

    def test_resuming_with_other_settings_is_refused(self):
        results_at(self.path("results.json"))
        with self.assertRaises(SystemExit) as refused:
            sensitivity.results_for(self.path("results.json"), 3, 4, True, True)
        self.assertIn("seconds 1.5 instead of 4", str(refused.exception.code))


class Failures(harness.Case):
    def test_a_run_that_fails_is_a_run_that_says_so(self):
        with self.assertRaisesRegex(sensitivity.Failed, "sh ended with 3: broken"):
            sensitivity.run_to_end(["/bin/sh", "-c", "echo broken >&2; exit 3"], 1)
        with self.assertRaisesRegex(sensitivity.Failed, "no truth"):
            sensitivity.truth_of("nothing of use\n")
        self.assertEqual(sensitivity.run_to_end(["/bin/sh", "-c", "echo well"], 1), "well\n")

    def test_the_study_goes_on_and_its_table_says_why(self):
        path = self.path("results.json")
        results = results_at(path)
        point = next(p for p in model.points(quick=True) if p.subject.options)
        results.measurements[point.subject][:] = [{"round": 0, "failed": "crosstalk ended with 1: no | memory"}]
        results.write()
        study = text.Study(sensitivity.read(path))
        row = text.row(study, model.sweep_named(point.sweep), point)
        self.assertEqual(row[-1], "0 of 1; crosstalk ended with 1: no / memory")
        self.assertEqual(set(row[2:-1]), {"-"})
        self.assertTrue(text.sentences(study))


class Words(harness.Case):
    def study(self, distance=lambda point, number: 0.1):
        results_at(self.path("results.json"), distance)
        return text.Study(sensitivity.read(self.path("results.json")))

    def line_about(self, study, title):
        return next(line for line in text.sentences(study).splitlines() if line.startswith(f"- **{title}**"))

    def test_ranges(self):
        self.assertEqual(text.range_text([0.1, 0.3, 0.2]), "0.200 (0.100..0.300)")
        self.assertEqual(text.range_text([0.1]), "0.100")
        self.assertEqual(text.range_text([None]), "-")

    def test_tables_have_a_row_for_each_point_and_mark_the_default(self):
        study = self.study()
        sweep = model.sweep_named("period")
        lines = text.table(study, sweep).splitlines()
        self.assertEqual(len(lines) - 2, len(study.of(sweep)))
        self.assertEqual(sum(line.startswith("| **4** |") for line in lines), 2)
        self.assertTrue(all(line.count("|") == lines[0].count("|") for line in lines))
        self.assertIn("| 0.030 (0.030..0.030) |", lines[2])  # lost work: 97 against 100

    def test_a_better_value_is_said_to_be_better(self):
        study = self.study(lambda point, number: 0.05 if point.sweep == "period" and point.value == 16 else 0.1)
        line = self.line_about(study, "sampling period, ms")
        self.assertIn("16 has the smallest mean distance, 0.050", line)
        self.assertIn("do not overlap, but were all values alike, one would look so much better with a chance of 10 %", line)
        self.assertIn("the default **4** has the smallest", self.line_about(self.study(), "sampling period, ms"))

    def test_many_runs_that_are_apart_are_a_finding(self):
        sweep = model.sweep_named("watchpoints")
        choice = model.choose([scored(4, [0.2] * 5), scored(1, [0.1] * 5)], 4, 0.03)
        self.assertIn("**The ranges do not overlap**: were all values alike, one would look so much better with a chance of "
                      "less than 1 %", text.about_choice(sweep, choice))

    def test_a_difference_within_the_ranges_is_not(self):
        study = self.study(lambda point, number: 0.09 + 0.01 * number if point.sweep == "period" and point.value == 16 else 0.1 + 0.01 * number)
        self.assertIn("overlap: nothing speaks against the default", self.line_about(study, "sampling period, ms"))

    def test_other_programs_are_noticed(self):
        study = self.study()
        self.assertEqual(text.about_load(study), "Bare runs had 98% of its processors' time (97%..99%).")
        study.runs_of[model.Subject(model.PROGRAMS["ring"], bare=True)].append({"round": 0, "work_per_s": 50.0, "got": 0.5})
        self.assertIn("(50%..99%): **other programs ran", text.about_load(study))
        study.runs_of.clear()
        self.assertIn("not known", text.about_load(study))

    def test_half_the_overhead_is_reported(self):
        self.assertIn("with a budget of 1.5 %", self.line_about(self.study(), "half the overhead"))

    def test_the_section_holds_every_sweep_and_no_figure_of_its_own(self):
        section = text.section(self.study(), "results.json", [("a.svg", "what it shows")])
        for sweep in model.SWEEPS:
            self.assertIn(f"**{sweep.title}.**", section)
        self.assertIn("![what it shows](a.svg)", section)
        self.assertEqual(section, text.section(self.study(), "results.json", [("a.svg", "what it shows")]))

    def test_a_study_in_part_says_only_what_it_has(self):
        path = self.path("results.json")
        results = results_at(path)
        for subject in list(results.measurements):
            if subject.options or subject.estimator or subject.bare:
                del results.measurements[subject]
        results.write()
        study = text.Study(sensitivity.read(path))
        self.assertEqual([sweep.name for sweep in study.sweeps()], ["threads", "true", "shared"])
        self.assertNotIn("half the overhead", text.sentences(study))


class Plots(harness.Case):
    def test_the_same_results_give_the_same_files(self):
        try:
            import sensitivity_plots
        except ImportError:
            self.skipTest("needs python3-matplotlib; ./dev deps bench")
        results_at(self.path("results.json"))
        study = text.Study(sensitivity.read(self.path("results.json")))
        contents = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                written = sensitivity_plots.plots(study, folder)
                contents.append([pathlib.Path(folder, file).read_bytes() for file, _ in written])
        self.assertEqual(len(contents[0]), 3)
        self.assertEqual(contents[0], contents[1])


if __name__ == "__main__":
    harness.main()
