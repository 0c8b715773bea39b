# SPDX-License-Identifier: Apache-2.0
"""Reads files of pprof's form (docs/export.md) and checks that they obey its rules."""

import dataclasses
import gzip
import zlib


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data):
    """Fields of a message by number: lists of numbers and of bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field ends behind its message"
        else:
            raise AssertionError(f"wire type {kind}")
        found.setdefault(number, []).append(value)
    return found


def numbers(packed):
    values, at = [], 0
    while at < len(packed):
        value, at = varint(packed, at)
        values.append(signed(value))
    return values


@dataclasses.dataclass
class Line:
    function: str
    file: str
    line: int


@dataclasses.dataclass
class Location:
    address: int
    mapping: object  # None: in no file
    lines: list      # innermost first


@dataclasses.dataclass
class Sample:
    locations: list  # innermost first
    values: dict     # by type
    labels: dict

    def functions(self):
        """Names, innermost first."""
        return [line.function for location in self.locations for line in location.lines]


class Profile:
    def __init__(self, path):
        with open(path, "rb") as file:
            packed = file.read()
        top = fields(gzip.decompress(packed))
        assert zlib.decompressobj(31).decompress(packed[:8]) == b"" and packed[4:8] == bytes(4), "a time in its header"
        self.strings = [text.decode() for text in top.get(6, [])]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings), "the table of strings"
        self.types = [(self.text(kind, 1), self.text(kind, 2)) for kind in map(fields, top[1])]
        self.mappings = {self.number(each, 1): {
            "begin": self.number(each, 2), "end": self.number(each, 3), "offset": self.number(each, 4),
            "file": self.text(each, 5), "build_id": self.text(each, 6)} for each in map(fields, top.get(3, []))}
        functions = {self.number(each, 1): (self.text(each, 2), self.text(each, 4)) for each in map(fields, top.get(5, []))}
        self.locations = {self.number(each, 1): self.location(each, functions) for each in map(fields, top.get(4, []))}
        for kind in (self.mappings, functions, self.locations):
            assert list(kind) == list(range(1, len(kind) + 1)), "ids go from 1 on"
        self.samples = [self.sample(each) for each in map(fields, top.get(2, []))]
        self.time_ns, self.duration_ns, self.period = (self.number(top, field) for field in (9, 10, 12))
        self.comments = [self.strings[number] for number in top.get(13, [])]
        self.default_type = self.text(top, 14)

    def number(self, message, field):
        return signed(message.get(field, [0])[0])

    def text(self, message, field):
        return self.strings[self.number(message, field)]

    def location(self, message, functions):
        lines = [Line(*functions[self.number(line, 1)], self.number(line, 2)) for line in map(fields, message[4])]
        mapping = self.mappings[self.number(message, 2)] if self.number(message, 2) else None
        address = self.number(message, 3)
        assert mapping is None or mapping["begin"] <= address < mapping["end"], "an address outside of its mapping"
        return Location(address, mapping, lines)

    def sample(self, message):
        values = numbers(message[2][0])
        assert len(values) == len(self.types) and min(values) >= 0
        labels = {self.text(label, 1): self.text(label, 2) for label in map(fields, message[3])}
        return Sample([self.locations[number] for number in numbers(message[1][0])],
                      {name: value for (name, _), value in zip(self.types, values)}, labels)

    def sum(self, kind, chosen=lambda sample: True):
        return sum(sample.values[kind] for sample in self.samples if chosen(sample))
