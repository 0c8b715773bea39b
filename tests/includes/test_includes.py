# SPDX-License-Identifier: Apache-2.0
"""Checks the includes: files include each other in no circle, and rooms only those that docs/architecture.md allows. A
header and the source of the same name count as one: if two such pairs include each other, neither can be understood,
tested or moved without the other."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# By room, or folder of collectors/, those that it may use: the table of rooms in docs/architecture.md.
MAY_USE = {room.rstrip("/"): set(re.findall(r"`([\w/]+)/`", used)) for room, used in
           re.findall(r"^\| `([\w/]+)` \|.*\| ([^|]*) \|$", PAGE, re.MULTILINE)
           if room.split("/")[0] not in ("include", "kmod")}
ROOMS = sorted({room.split("/")[0] for room in MAY_USE})
# Headers of profile/ that are layouts: all that the library inside a target may use of it.
LAYOUTS = {"profile/arena", "profile/memory_sampling", "profile/records", "profile/ring", "profile/branch_trace", "profile/region_table", "profile/wait_table"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def unit(path):
    return path.rsplit(".", 1)[0]


def includes():
    """By unit, the units that it includes."""
    graph = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                name = unit(path.relative_to(ROOT).as_posix())
                found = INCLUDE.findall(path.read_text(encoding="utf-8"))
                graph.setdefault(name, set()).update(unit(other) for other in found if unit(other) != name)
    return graph


def room_of(name):
    """The room of a unit, or its folder of collectors/; empty: it is in none."""
    parts = name.split("/")
    room = "/".join(parts[:2 if parts[0] == "collectors" and len(parts) > 2 else 1])
    return room if room in MAY_USE or parts[0] == "kmod" else ""


def circle(graph):
    """Some names that include each other in turn; empty: there are none."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return []
        path.append(name)
        for other in sorted(graph.get(name, ())):
            if found := visit(other):
                return found
        path.pop()
        done.add(name)
        return []

    for start in sorted(graph):
        if found := visit(start):
            return found
    return []


class Includes(unittest.TestCase):
    def test_a_circle_is_found(self):
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])
        self.assertEqual(circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}), [])

    def test_all_rooms_are_looked_at(self):
        graph = includes()
        for room in ROOMS:
            self.assertTrue(any(name.startswith(room + "/") for name in graph), room)

    def test_files_include_each_other_in_no_circle(self):
        self.assertEqual(circle(includes()), [])

    def test_folders_are_layers(self):
        """Folders of a room, itself among them, include each other in one direction."""
        graph = {}
        for name, others in includes().items():
            folder = name.rsplit("/", 1)[0]
            graph.setdefault(folder, set()).update(
                there for other in others
                if (there := other.rsplit("/", 1)[0]) != folder and there.split("/")[0] == folder.split("/")[0])
        self.assertEqual(circle(graph), [])

    def test_rooms_include_what_they_may(self):
        wrong = [f"{name} includes {other}" for name, others in includes().items() for other in others
                 if (here := room_of(name)) != "driver" and (there := room_of(other)) != here
                 and there and there not in MAY_USE[here]]
        self.assertEqual(wrong, [])

    def test_the_page_names_no_more_than_is_used(self):
        used = {}
        for name, others in includes().items():
            used.setdefault(room_of(name), set()).update(room_of(other) for other in others)
        wrong = [f"{here} does not use {there}" for here, rooms in MAY_USE.items() for there in rooms - used[here]]
        self.assertEqual(wrong, [])

    def test_the_library_inside_a_target_uses_layouts_only(self):
        wrong = [f"{name} includes {other}" for name, others in includes().items() for other in others
                 if name.startswith("collectors/in_target/") and other.startswith("profile/") and other not in LAYOUTS]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
