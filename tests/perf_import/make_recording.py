# SPDX-License-Identifier: Apache-2.0
"""Writes a perf.data file as `perf mem record` would: loads and stores of some threads, in rounds.

    make_recording.py FILE [SAMPLES]
"""

import struct
import sys

THREADS, PER_ROUND, PERIOD, FIRST_NS = 8, 10_000, 1000, 1_000_000_000
LOAD, STORE = 0x68100142, 0x68100144  # a hit of L1, as perf_mem_data_src has it
IP, TID, TIME, ADDR, ID, CPU, WEIGHT, DATA_SRC = (1 << bit for bit in (0, 1, 2, 3, 6, 7, 14, 15))
SAMPLE_TYPE = IP | TID | TIME | ADDR | ID | CPU | WEIGHT | DATA_SRC
IDENTITY = struct.Struct("<IIQQII")
SAMPLE = struct.Struct("<IHHQIIQQQIIQQ")


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(name):
    return name.encode() + bytes(8 - len(name) % 8)


def tasks():
    who = IDENTITY.pack(100, 100, 0, 0, 0, 0)
    yield record(3, 1 << 13, struct.pack("<II", 100, 100) + text("program") + who)
    yield record(10, 2, struct.pack("<IIQQQIIQQII", 100, 100, 0x400000, 0x10000, 0, 8, 1, 77, 0, 5, 2) +
                 text("/nowhere/program") + who)
    for thread in range(1, THREADS):
        yield record(7, 0, struct.pack("<IIIIQ", 100, 100, 100 + thread, 100, 1) + who)


def samples(count):
    for i in range(count):
        # Within a round, one thread after another, as their rings are emptied: not in order of time.
        place = i % PER_ROUND
        thread, turn = place * THREADS // PER_ROUND, place % (PER_ROUND // THREADS)
        time = FIRST_NS + (i // PER_ROUND) * PER_ROUND * 1000 + turn * THREADS * 1000 + thread
        yield SAMPLE.pack(9, 2 | 1 << 14, SAMPLE.size, 0x400100 + 4 * (i % 64), 100, 100 + thread, time,
                          0x7f0000000000 + 64 * (i % 4096), 1, thread, 0, 7 + i % 200, STORE if i % 4 == 0 else LOAD)
        if place == PER_ROUND - 1:
            yield record(68, 0, b"")


def recording(count):
    attribute = struct.pack("<IIQQQQQIIQQ", 4, 112, 0x1cd, PERIOD, SAMPLE_TYPE, 0, 1 << 18 | 2 << 15, 0, 0, 3, 0)
    attribute += bytes(112 - len(attribute))
    data = b"".join([*tasks(), *samples(count)])
    name = text("cpu/mem-loads,ldlat=3/P")
    cpu, identity = text("A processor @ 2.00GHz"), text("GenuineIntel,6,85,4")
    features = {6: struct.pack("<I", 8) + text("x86_64"), 8: struct.pack("<I", len(cpu)) + cpu,
                9: struct.pack("<I", len(identity)) + identity,
                12: struct.pack("<II", 1, 112) + attribute + struct.pack("<II", 1, len(name)) + name +
                struct.pack("<Q", 1)}
    ids_at, attributes_at = 104, 112
    data_at = attributes_at + 128
    bits = sum(1 << feature for feature in features)
    head = struct.pack("<13Q", 0x32454c4946524550, 104, 128, attributes_at, 128, data_at, len(data), 0, 0, bits, 0, 0, 0)
    sections, at = b"", data_at + len(data) + 16 * len(features)
    for feature in sorted(features):
        sections += struct.pack("<QQ", at, len(features[feature]))
        at += len(features[feature])
    return b"".join([head, struct.pack("<Q", 1), attribute, struct.pack("<QQ", ids_at, 8), data, sections,
                     *(features[feature] for feature in sorted(features))])


def main():
    with open(sys.argv[1], "wb") as file:
        file.write(recording(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000))


if __name__ == "__main__":
    main()
