# SPDX-License-Identifier: Apache-2.0
"""in_guest.txt says of every end-to-end test that needs watchpoints whether it is run in a guest, and of no other."""

import ast
import glob
import os
import tempfile
import unittest

import in_guest_list
import kernel_case
from run_in_guest import END_TO_END


def tests_with_watchpoints():
    """Names, as ctest has them, of the tests that are marked with needs_watchpoints."""
    names = []
    for path in sorted(glob.glob(os.path.join(END_TO_END, "test_*.py"))):
        subject = os.path.basename(path).removeprefix("test_").removesuffix(".py")
        with open(path, encoding="utf-8") as file:
            classes = [node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)]
        names += [f"end_to_end.{subject}.{node.name}.{test.name}" for node in classes for test in node.body
                  if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")
                  and any("needs_watchpoints" in ast.unparse(mark) for mark in test.decorator_list)]
    return names


class List(unittest.TestCase):
    def test_it_has_all_that_need_watchpoints_and_no_other(self):
        names = tests_with_watchpoints()
        self.assertGreater(len(names), 10)
        self.assertEqual([name for name in names if in_guest_list.entry_of(name) is None], [], "not in the list")
        used = {in_guest_list.entry_of(name)[1].pattern for name in names if in_guest_list.entry_of(name)}
        self.assertEqual([expression.pattern for _, expression, _ in in_guest_list.entries() if expression.pattern not in used],
                         [], "no test is named so")

    def test_a_line_that_says_no_reason_is_refused(self):
        for line in ("left out | x", "left out | x |", "perhaps | x | y", "passes"):
            with self.subTest(line), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "list")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"# a list\n\npasses | a.*\n{line}\n")
                with self.assertRaisesRegex(ValueError, "list:4: .*is not"):
                    in_guest_list.entries(path)


if __name__ == "__main__":
    kernel_case.main()
