# SPDX-License-Identifier: Apache-2.0
"""Each program of the catalogue behaves under observation as it does bare."""

import unittest

import catalogue
import comparison
from comparison import harness


class Compared(unittest.TestCase):
    def no_difference(self, group, names=None):
        """Runs the programs of a group, or those with these names."""
        compared = 0
        for program in catalogue.CATALOGUE:
            if program.name not in names if names else not program.name.startswith(group + "."):
                continue
            lacks = comparison.missing(program)
            if lacks:
                print(f"{program.name}: left out, needs {', '.join(lacks)}")
                continue
            with self.subTest(program.name):
                compared += 1
                found = comparison.compare(program)
                self.assertEqual(found, [], f"{program.name} ({program.proves})")
        if compared == 0:
            self.skipTest(f"no program of {group} can run here")



class Chosen(Compared):
    """Some of each class, in two parts that run side by side."""

    def test_within_a_process(self):
        self.no_difference("chosen", catalogue.CHOSEN_WITHIN)

    def test_around_a_process(self):
        self.no_difference("chosen", catalogue.CHOSEN_AROUND)


@harness.verify("takes a quarter of an hour")
class Hostile(Compared):
    def test_attached(self):
        self.no_difference("attached")

    def test_children(self):
        self.no_difference("children")

    def test_descriptors(self):
        self.no_difference("descriptors")

    def test_interrupted_calls(self):
        self.no_difference("interrupted_calls")

    def test_libraries(self):
        self.no_difference("libraries")

    def test_limits(self):
        self.no_difference("limits")

    def test_marks(self):
        self.no_difference("marks")

    def test_memory(self):
        self.no_difference("memory")

    def test_namespaces(self):
        self.no_difference("namespaces")

    def test_openmp(self):
        self.no_difference("openmp")

    def test_seccomp(self):
        self.no_difference("seccomp")

    def test_signals(self):
        self.no_difference("signals")

    def test_stacks(self):
        self.no_difference("stacks")

    def test_states(self):
        self.no_difference("states")

    def test_threads(self):
        self.no_difference("threads")

    def test_timers(self):
        self.no_difference("timers")


@harness.together
class Catalogue(unittest.TestCase):
    def test_each_group_has_a_test(self):
        tests = {name.removeprefix("test_") for name in dir(Hostile) if name.startswith("test_")}
        self.assertEqual(tests, set(catalogue.groups()))

    def test_chosen_programs_are_there_and_of_each_group(self):
        chosen = catalogue.CHOSEN_WITHIN + catalogue.CHOSEN_AROUND
        self.assertLessEqual(set(chosen), {program.name for program in catalogue.CATALOGUE})
        self.assertEqual({name.split(".")[0] for name in chosen}, set(catalogue.groups()))

    def test_names_are_unique(self):
        names = [program.name for program in catalogue.CATALOGUE]
        self.assertEqual(sorted(set(names)), sorted(names))


if __name__ == "__main__":
    harness.main()
