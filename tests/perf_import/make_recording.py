# SPDX-License-Identifier: Apache-2.0
"""Writes perf.data files whose truth is known.

    make_recording.py FILE [SAMPLES]   as `perf mem record` would: loads and stores of some threads, in rounds
    make_recording.py --sharing FILE   as `perf c2c record` would: see sharing()
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


def attribute(config, threshold):
    packed = struct.pack("<IIQQQQQIIQQ", 4, 112, config, PERIOD, SAMPLE_TYPE, 0, 1 << 18 | 2 << 15, 0, 0, threshold, 0)
    return packed + bytes(112 - len(packed))


def sized(name):
    name = text(name)
    return struct.pack("<I", len(name)) + name


def file_of(events, data, features):
    """`events`: name and attribute of each, whose id is its number, from 1 on."""
    features = {6: sized("x86_64"), 8: sized("A processor @ 2.00GHz"), 9: sized("GenuineIntel,6,85,4"),
                12: struct.pack("<II", len(events), 112) +
                b"".join(packed + struct.pack("<I", 1) + sized(name) + struct.pack("<Q", i + 1)
                         for i, (name, packed) in enumerate(events)), **features}
    ids_at, attributes_at = 104, 104 + 8 * len(events)
    data_at = attributes_at + 128 * len(events)
    bits = sum(1 << feature for feature in features)
    head = struct.pack("<13Q", 0x32454c4946524550, 104, 128, attributes_at, 128 * len(events), data_at, len(data), 0, 0,
                       bits, 0, 0, 0)
    sections, at = b"", data_at + len(data) + 16 * len(features)
    for feature in sorted(features):
        sections += struct.pack("<QQ", at, len(features[feature]))
        at += len(features[feature])
    ids = (struct.pack("<Q", i + 1) for i in range(len(events)))
    attributes = (packed + struct.pack("<QQ", ids_at + 8 * i, 8) for i, (_, packed) in enumerate(events))
    return b"".join([head, *ids, *attributes, data, sections, *(features[feature] for feature in sorted(features))])


def recording(count):
    data = b"".join([*tasks(), *samples(count)])
    return file_of([("cpu/mem-loads,ldlat=3/P", attribute(0x1cd, 3))], data, {})


# As Intel's kernels make them: a hit of its level, no snoop but where named, translated by a TLB.
TLB, NO_SNOOP, HITM, LOCKED, REMOTE = 0x68000000, 2 << 19, 16 << 19, 2 << 24, 1 << 37
LOADS = {
    "l1": 0x2 | (2 | 8) << 5 | NO_SNOOP | TLB,
    "line_fill_buffer": 0x2 | (2 | 16) << 5 | NO_SNOOP | TLB,
    "l2": 0x2 | (2 | 32) << 5 | NO_SNOOP | TLB,
    "l3": 0x2 | (2 | 64) << 5 | NO_SNOOP | TLB,
    "hitm": 0x2 | (2 | 64) << 5 | HITM | TLB,
    "remote_hitm": 0x2 | (2 | 0x400) << 5 | HITM | TLB,
    "local_memory": 0x2 | (2 | 128) << 5 | 8 << 19 | TLB,
    "remote_memory": 0x2 | (2 | 256) << 5 | 8 << 19 | TLB,
}
STORE_HIT, STORE_MISS = 0x4 | (2 | 8) << 5 | TLB, 0x4 | (4 | 8) << 5 | TLB
HOT_LINE, ROUNDS, SECOND_WRITER_EVERY, REMOTE_EVERY = 0x7f0000001000, 200, 4, 10


def sharing_samples():
    """Recording of threads 0 to 3 on processors 0 to 3, the last two of another node. In each of ROUNDS rounds of 100
    us, thread 0 stores to byte 8 of the hot line, and thread 1 loads it, modified; each 4th round thread 3 stores to
    byte 16, missing L1, and each 10th thread 2 loads byte 8, from the other node. Threads load lines of their own all
    the time."""
    def sample(event, thread, when, address, latency, source):
        return SAMPLE.pack(9, 2 | 1 << 14, SAMPLE.size, 0x400100 + 16 * event, 100, 100 + thread, FIRST_NS + when,
                           address, event, thread, 0, latency, source)
    own = [level for level in LOADS if "hitm" not in level]
    for i in range(ROUNDS):
        when = 100_000 * i
        yield sample(2, 0, when, HOT_LINE + 8, 0, STORE_HIT)
        if i % SECOND_WRITER_EVERY == 0:
            yield sample(2, 3, when + 10_000, HOT_LINE + 16, 0, STORE_MISS | LOCKED)
        yield sample(1, 1, when + 20_000, HOT_LINE + 8, 300 + i % 100, LOADS["hitm"])
        if i % REMOTE_EVERY == 0:
            yield sample(1, 2, when + 30_000, HOT_LINE + 8, 900, LOADS["remote_hitm"])
        level = own[i % len(own)]
        yield sample(1, i % 4, when + 40_000, HOT_LINE + 0x10000 * (1 + i % 4) + 64 * i, 10 + i % len(own), LOADS[level])
    yield record(68, 0, b"")


def sharing():
    events = [("cpu/mem-loads,ldlat=30/P", attribute(0x1cd, 30)), ("cpu/mem-stores/P", attribute(0x82d0, 0))]
    nodes = struct.pack("<I", 2) + b"".join(struct.pack("<IQQ", node, 0, 0) + sized(cpus)
                                            for node, cpus in enumerate(["0-1", "2-3"]))
    memory = struct.pack("<QQQ", 1, 1 << 27, 2) + b"".join(  # without which perf c2c report refuses the file
        struct.pack("<QQQQ", node, 2, 2, 1 << node) for node in (0, 1))
    data = b"".join([*tasks(), *sharing_samples()])
    return file_of(events, data, {7: struct.pack("<II", 4, 4), 14: nodes, 22: memory})


def main():
    if sys.argv[1] == "--sharing":
        contents, path = sharing(), sys.argv[2]
    else:
        contents, path = recording(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000), sys.argv[1]
    with open(path, "wb") as file:
        file.write(contents)


if __name__ == "__main__":
    main()
