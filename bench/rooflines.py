# SPDX-License-Identifier: Apache-2.0
"""Rooflines of programs that count their own work, and roofs against likwid-bench. Writes docs/accuracy.md; fails if a
check does not hold. `undecided`: the machine was too unsteady to tell."""

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys

import common
import test_busy_times

EXPLANATION = """## Rooflines

Written by `./dev bench rooflines`. The machine is calibrated (`crosstalk calibrate`); programs count their own work
(`tests/workloads/roofline_loops.cpp`, `nested_loops.cpp`, `sparse_matrices.cpp`), and kernels of the calibration run in
turns with what they are compared with (`roofs.cpp`), as the speed of a shared machine changes. `undecided`: the intervals do not tell.

{checks}

**Roofs against likwid-bench**: {peer}

Machine: {machine}; load average when it began, of other programs: {load:.1f}.
"""

MIB = 1024  # KiB
HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


class Machine:
    """The machine file."""

    def __init__(self):
        self.file = test_busy_times.machine_file()
        self.cache_kib = {cache["level"]: cache["bytes"] / 1024 for cache in self.file["caches"]}

    def figure(self, table, **key):
        for row in self.file[table]:
            if key.items() <= row.items():
                return row["value"]
        return None

    @property
    def widths(self):
        return [row["width"] for row in self.file["accesses"]
                if row["level"] == "l1d" and row["loads_to_stores"] == "1:0" and row["threads"] == 1]


def json_of(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def workload(name, *arguments):
    return [os.path.join(common.WORKLOADS, name), *map(str, arguments)]


def roof(*arguments):
    """A kernel's rate, on average over 0.1 s of CPU time."""
    return json_of(workload("roofs", "--seconds", 0.1, *arguments))["per_s"]


def in_turns(turns, *measurements):
    """Calls each in turn; a list of values for each."""
    values = [[] for _ in measurements]
    for _ in range(turns):
        for measured, measure in zip(values, measurements):
            measured.append(measure())
    return values


def loop_rates(turns, only, *roofs, **options):
    """The loop's own figures, its iterations a second of CPU time, and what each of the roofs reached, in turns."""
    arguments = [f"--{name}" if part == 0 else value for name, value in options.items() for part in (0, 1)]

    def run():
        truth = json_of(workload("roofline_loops", "--only", only, "--seconds", 0.2, "--visit", 0.05, *arguments))
        run.loop = truth["loops"][0]
        return run.loop["iterations"] / run.loop["cpu_s"]
    values = in_turns(turns, run, *[lambda arguments=arguments: roof(*arguments) for arguments in roofs])
    return run.loop, values


def ratio(measured, reference):
    """The ratio of what two could do: others on the machine only slow a run; with its interval."""
    def best(values):
        return statistics.quantiles(values, n=10, method="inclusive")[8] if len(values) > 1 else values[0]
    low, high = common.bootstrap(lambda choose: best(choose(measured)) / best(choose(reference)))
    return common.Spread(best(measured) / best(reference), low, high)


def within(spread, low, high):
    if low <= spread.median <= high:
        return HOLDS
    return UNDECIDED if spread.high >= low and spread.low <= high else FAILS


def placed(folder, *arguments, seconds=1.0, model="carm", program="roofline_loops"):
    """The first row of the roofline of a recorded loop, and the truth."""
    profile = folder.file("run.db")
    truth = common.observe(workload(program, "--seconds", seconds, *arguments), profile)
    shown = subprocess.run([common.CROSSTALK, "roofline", "--model", model, "--format", "json", profile], check=False,
                           capture_output=True, text=True)
    if shown.returncode != 0:
        return None, truth, shown.stderr.strip()
    found = json.loads(shown.stdout)
    rows = found["loops"]  # most time first
    name = truth["loops"][0]["function"]
    rows = [row for row in rows if name in row["function"]]
    return (rows[0] if rows else None), truth, "; ".join(sorted({group["why"] for group in found["unplaced"]}))


def of_level(row, level):
    for point in row["irm"].get("points") or []:
        if point["level"].lower() == level:
            return point
    return None


def check_triads(folder, machine, options):
    """1"""
    kib = int(3 * max(machine.cache_kib.values()))
    for name, memory_bytes in (("triad", 32), ("triad_streaming", 24)):
        row, _, why = placed(folder, "--only", name, "--kib", kib)
        if row is None:
            yield f"`{name}`: a place", why, UNDECIDED
            continue
        yield (f"`{name}`: intensity at the core 2/24", f"{row['intensity']['value']:.6f}",
               HOLDS if math.isclose(row["intensity"]["value"], 2 / 24) else FAILS)
        point = of_level(row, "memory")
        value = point and point["x"]["value"]
        yield (f"`{name}`: intensity at memory 2/{memory_bytes} within 10 %",
               f"{value:.5f}" if value else f"not known: {row['irm']['unknown'] or 'no such level'}",
               HOLDS if value and abs(value * memory_bytes / 2 - 1) <= 0.1 else FAILS if value else UNDECIDED)


def check_multiply_adds(folder, machine, options):
    """2"""
    for width in machine.widths:
        loop, (rates, roofs) = loop_rates(options.turns, f"fma_{width}", ["--flops", "fma", "--width", width])
        found = ratio([loop["flops"] * rate for rate in rates], roofs)
        yield f"multiply-adds in registers, {width}: 90 to 102 % of the roof", f"{found}", within(found, 0.90, 1.02)


def sum_sizes(machine):
    """Sizes in KiB by level, outside the transitions from half of a capacity to twice of it."""
    l1, l2, l3 = (machine.cache_kib.get(level, 0) for level in (1, 2, 3))
    sizes = [("l1d", l1 * part) for part in (1 / 8, 1 / 4, 1 / 2)] + [("l2", kib) for kib in (2 * l1, 3 * l1, l2 / 2)]
    sizes += [("l3", kib) for kib in (2 * l2, 3 * l2, 4 * l2)] if l3 >= 8 * l2 else []
    return sizes + [("memory", (l3 or l2) * part) for part in (3, 4, 6)]


def check_sums(folder, machine, options):
    """3"""
    for level, kib in sum_sizes(machine):
        kib = int(kib)
        # L2 is faster over large arrays, for some loops earlier than for others: its roof is from one rate to the other.
        sizes = [3 * machine.cache_kib[1], machine.cache_kib[2] * 9 / 16] if level == "l2" else [kib]
        loop, (rates, *roofs) = loop_rates(options.turns, "sum", *[["--width", "avx2", "--mix", "1:0", "--kib", int(size)]
                                                                   for size in sizes], kib=kib)
        least, most = (ratio([loop["bytes"] * rate for rate in rates], roof) for roof in (roofs[0], roofs[-1]))
        verdicts = {within(least, 0.9, 1.1 if len(sizes) == 1 else math.inf), within(most, 0, 1.1)}
        yield (f"sum over {kib} KiB: within 10 % of the roof of {level}",
               f"{least}" + (f", of its upper end {most}" if len(sizes) > 1 else ""),
               next(verdict for verdict in (FAILS, UNDECIDED, HOLDS) if verdict in verdicts))


def check_bottlenecks(folder, machine, options):
    """3"""
    right, named, sizes = 0, [], sum_sizes(machine)
    for level, kib in sizes:
        row, _, why = placed(folder, "--only", "sum", "--kib", int(kib))
        reached = row["carm"]["reached"] if row else [why]
        # In L1D the additions bound it, where their roof is the lower one.
        above = row["carm"]["above"]["roof"] if row and row["carm"]["above"] else "none"
        bounds = [name.lower() for name in (*reached, above)]
        right += level in bounds or (level == "l1d" and "fp units" in bounds)
        named.append(f"{int(kib)} KiB: " + (f"at {' or '.join(reached)}" if reached else f"below {above}"))
    yield ("sums: the level that holds the array is the roof that they are at, or the next one above",
           f"{right} of {len(sizes)}: {', '.join(named)}", HOLDS if right == len(sizes) else FAILS)


def check_threads(folder, machine, options):
    """6"""
    row, _, why = placed(folder, "--only", "dot<4>", "--threads", 4, "--first", 4, "--visit", 0.02,
                         seconds=4 * options.seconds)
    if row is None:
        yield "4 threads with work of 4:1:1:1", why, UNDECIDED
        return
    yield ("4 threads with work of 4:1:1:1: 1.75 +- 0.05 at work at a time", f"{row['at_work']:.3f}",
           HOLDS if abs(row["at_work"] - 1.75) <= 0.05 else FAILS)
    yield ("4 threads with work of 4:1:1:1: balance is the first advice", ", ".join(row["carm"]["advice"]),
           HOLDS if row["carm"]["advice"][:1] == ["balance_load"] else FAILS)


def check_nests(folder, machine, options):
    """9"""
    sizes = [argument for level in (1, 2, 3) if level in machine.cache_kib
             for argument in (f"--l{level}", int(machine.cache_kib[level]))]
    for name in ("stencil", "blocked_stencil", "product", "blocked_product"):
        truth = json_of(workload("nested_loops", "--only", name, "--print", "traffic", *sizes))["bytes_a_flop"]
        row, _, why = placed(folder, "--only", name, program="nested_loops", model="hierarchical")
        what = f"`{name}`: bytes from each level within 20 % of a simulation of its accesses"
        if row is None:
            yield what, f"not known: {why}", UNDECIDED
            continue
        found = {level: 1 / of_level(row, level)["x"]["value"] if of_level(row, level) else 0 for level in truth}
        near = all(abs(found[level] - value) <= max(0.2 * value, 0.05) for level, value in truth.items())
        yield (what, "; ".join(f"{level} {found[level]:.2f} ({value:.2f}) B/flop" for level, value in truth.items()),
               HOLDS if near else FAILS)


def check_vectorised(folder, machine, options):
    """11"""
    found = []
    for name in ("mixed<0>", "mixed<8>"):
        row, truth, why = placed(folder, "--only", name, model="mansard")
        if row is None or row["mansard"]["unknown"]:
            yield "scalar additions, then vectors", why or row["mansard"]["unknown"], UNDECIDED
            return
        loop = truth["loops"][0]
        found.append((row["mansard"]["points"][0]["y"]["value"], loop["flops"] * loop["iterations"] / loop["cpu_s"]))
    efficiency, faster = (after / before for before, after in zip(*found))
    yield ("scalar additions, then vectors of 4: the ratio of instructions a cycle is the ratio of times over 4 within 5 %",
           f"{efficiency:.3f}, {faster / 4:.3f}", HOLDS if abs(efficiency / (faster / 4) - 1) <= 0.05 else FAILS)


def check_dots(folder, machine, options):
    """4"""
    latency = machine.figure("flop_latencies", width="scalar", precision="double", operation="fma")
    loads = machine.figure("accesses", level="l1d", width="scalar", loads_to_stores="1:0", threads=1)
    if latency is None or loads is None:
        yield "dot products", "the calibration lacks the latency or the loads", UNDECIDED
        return
    rates = {}
    for sums in (1, 2, 4, 8):
        loop, (found,) = loop_rates(options.turns, f"dot<{sums}>")
        rates[sums] = [loop["flops"] * rate for rate in found]
        # A multiply-add waits for the one before in its sum; each takes two loads.
        expected = min(2 * sums / latency, 2 * loads / 8 / 2)
        spread = ratio(rates[sums], [expected])
        yield f"dot product with {sums} sums in L1D: ILP ceiling within 10 %", f"{spread}", within(spread, 0.9, 1.1)
    spread = ratio(rates[8], rates[1])
    expected = min(8, latency * loads / 8 / 2)
    yield (f"its ratio of 8 sums to 1: {expected:.2f} within 10 %", f"{spread}",
           within(spread, 0.9 * expected, 1.1 * expected))


def check_mixes(folder, machine, options):
    """5"""
    for vectors, share in ((0, 0), (2, 0.25), (4, 0.5), (8, 1)):
        loop, (rates, roofs) = loop_rates(options.turns, f"mixed<{vectors}>", ["--flops", "add", "--width", "avx2"])
        found = ratio([loop["flops"] * rate for rate in rates], roofs)
        ceiling = (1 + 3 * share) / 4
        # A ceiling bounds from above; below, the loop keeps the units as busy as 90 %.
        yield (f"{share:.0%} vector additions: at most the SIMD ceiling of {ceiling:.3f}", f"{found}",
               within(found, 0, 1.02 * ceiling))
        row, _, why = placed(folder, "--only", f"mixed<{vectors}>")
        widest = INSTRUCTIONS[machine.widths[-1]][2]
        expected = widest / (1 + (widest - 1) * share)
        costs = {cost["feature"]: cost["cost"]["value"] for cost in row["runtime"].get("costs") or []} if row else {}
        value = costs.get("vectors")
        yield (f"{share:.0%} vector additions: they cost {expected:.4f} of the peak, exactly",
               f"{value:.4f}" if value else why or "not known",
               UNDECIDED if not value else HOLDS if math.isclose(value, expected) else FAILS)


def mansard_ipc(hill, other, retire_width, intensity):
    """Instructions a cycle that a level allows: equations 5, 10 and 11 of the model's source."""
    most, at_ridge = hill["most"]["value"], hill["at_ridge"]["value"]
    ridge = other / most
    cycles = min(intensity, ridge) * (1 + 1 / ridge) / ((ridge + 1) * at_ridge) + abs(intensity / ridge - 1) / most
    return min((1 + intensity) / cycles, retire_width)


def check_mansard(folder, machine, options):
    """10"""
    near = total = 0
    figures = []
    for level, kib in (("l1d", machine.cache_kib[1] / 2), ("memory", 3 * max(machine.cache_kib.values()))):
        for adds, times in ((0, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4), (8, 8)):
            row, _, why = placed(folder, "--only", f"loads_and_adds<{adds}, {times}>", "--kib", int(kib), model="mansard")
            place = row["mansard"] if row else {"unknown": why}
            if place["unknown"]:
                figures.append(f"{level}, {adds * times}: {place['unknown']}")
                continue
            point = place["points"][0]
            roofs = {roof["name"]: roof["height"]["value"] for roof in place["roofs"]}
            hill = next(hill for hill in place["hills"] if hill["level"] == level)
            expected = mansard_ipc(hill, roofs["its other instructions"], max(roofs.values()), point["x"]["value"])
            part = point["y"]["value"] / expected
            near += abs(part - 1) <= 0.15
            total += 1
            figures.append(f"{level}, {adds * times}: {part:.2f}")
    yield ("two loads and a store, additions between them: instructions a cycle within 15 % of the mansard in 80 %",
           f"{near} of {total}, of it: {'; '.join(figures)}",
           UNDECIDED if total < 12 else HOLDS if near >= 0.8 * total else FAILS)


def nested_intensity(folder, *arguments):
    """Flop/B at the core of a nest of loops, or why it is not known: the outermost loop whose work is."""
    profile = folder.file("run.db")
    common.observe(workload("roofline_loops", *arguments), profile)
    why = "no loop"
    rows = [row for row in common.report(profile)["loops"] if "spmv" in (row["function"] or "")]
    for row in sorted(rows, key=lambda row: row["depth"]):
        rates = row["rates"]
        if rates["flops_per_s"] and rates["bytes_per_s"] and row["depth"] < max(other["depth"] for other in rows):
            return rates["flops_per_s"] / rates["bytes_per_s"], ""
        why = rates["reasons"].get("bytes_per_s", why)
    return None, why


def check_sparse_intensities(folder, machine, options):
    """7"""
    for k in (1, 2, 8, 64, 4096):
        rows = max(1024, min(65536, (1 << 22) // k))
        expected = 2 / (20 + 24 / k)
        value, why = nested_intensity(folder, "--only", "spmv", "--row", k, "--rows", rows, "--seconds", 3)
        yield (f"SpMV, {k} non-zeros a row: 2/(20+24/{k}) = {expected:.5f} within 2 %",
               f"{value:.5f}" if value else f"not known: {why}",
               UNDECIDED if not value else HOLDS if abs(value / expected - 1) <= 0.02 else FAILS)


def utilisation_shown(folder, *shape):
    """What the command says of 8 threads that take equal numbers of rows."""
    path = folder.file("matrix.mtx")
    with open(path, "w", encoding="ascii") as file:
        subprocess.run(workload("sparse_matrices", "--print", "matrix", *shape), check=True, stdout=file)
    return json_of([common.CROSSTALK, "roofline", "--matrix", path, "--threads", "8", "--format", "json"])["utilisation"]


def check_bands(folder, machine, options):
    """8"""
    inside = gains = said = total = 0
    rates, reordered = [], []
    for kind in ("banded", "random", "power_law", "shuffled", "blocks"):
        for columns in (16384, 262144):
            shape = ["--kind", kind, "--columns", columns, "--row", 16]
            truth = json_of(workload("sparse_matrices", *shape, "--turns", options.turns))
            part, worst, best = truth["flops_per_s"], truth["worst"], truth["best"]
            inside += 0.9 * worst <= part <= 1.1 * best
            # Another order is between the two of the pair, too.
            gain = truth["reordered"] / part
            gains += 0.9 * worst / part <= gain <= 1.1 * best / part
            said += math.isclose(utilisation_shown(folder, *shape), truth["utilisation_of_8"], rel_tol=1e-3)
            total += 1
            rates.append(f"{kind} {part / best:.2f} ({worst / best:.2f})")
            reordered.append(f"{kind} {gain:.2f} ({best / part:.2f})")
    yield (f"matrices between worst and best of their pair within 10 %: 9 of 10", f"{inside} of {total}: rate (worst), "
           f"of the best: {', '.join(rates)}", HOLDS if inside >= 0.9 * total else FAILS)
    yield ("the order of Cuthill and McKee, gain in the interval of the pair within 10 %: 8 of 10",
           f"{gains} of {total}: gain (at most) {', '.join(reordered)}", HOLDS if gains >= 0.8 * total else FAILS)
    yield ("utilisation of 8 threads as counted, 10 of 10", f"{said} of {total}", HOLDS if said == total else FAILS)


def check_intervals(folder, machine, options):
    """12"""
    held, verdicts, runs = 0, set(), options.recordings
    for _ in range(runs):
        row, truth, why = placed(folder, "--only", "dot<4>", seconds=options.seconds)
        if row is None:
            yield "recordings of one loop", why, FAILS
            return
        loop = truth["loops"][0]
        true = loop["flops"] * loop["iterations"] / loop["cpu_s"]
        held += row["performance"]["low"] <= true <= row["performance"]["high"]
        verdicts.add(row["carm"]["region"])
    yield (f"{runs} recordings of one loop: the interval holds the true rate in 9 of 10", f"{held} of {runs}",
           HOLDS if held >= 0.9 * runs else FAILS)
    yield (f"{runs} recordings of one loop: the same region", ", ".join(sorted(verdicts)),
           HOLDS if len(verdicts - {"undecided"}) <= 1 else FAILS)


CHECKS = [check_triads, check_multiply_adds, check_sums, check_bottlenecks, check_dots, check_mixes, check_threads,
          check_nests, check_mansard, check_vectorised, check_sparse_intensities, check_bands, check_intervals]

# By width: a register, the instruction that loads and stores it, its doubles, and its multiply-add.
INSTRUCTIONS = {"scalar": ("xmm", "movsd", 1, "vfmadd213sd"), "sse": ("xmm", "movups", 2, "vfmadd213pd"),
                "avx2": ("ymm", "vmovups", 4, "vfmadd213pd"), "avx512": ("zmm", "vmovups", 8, "vfmadd213pd")}
PEER_KERNEL = """STREAMS {streams}
TYPE DOUBLE
FLOPS {flops}
BYTES {bytes}
DESC the calibration's kernel
LOADS {loads}
STORES {stores}
INSTR_CONST 0
INSTR_LOOP {instructions}
UOPS {instructions}
{before}LOOP {elements}
{body}
"""


def peer_stream(width, mix):
    """The calibration's loop in likwid-bench's language: a group for each of eight vectors of the arrays."""
    register, move, doubles, _ = INSTRUCTIONS[width]
    loads, stores = int(mix != "0:1"), int(mix != "1:0")
    body = []
    for vector in range(8):
        at = f"GPR1 * 8 + {8 * doubles * vector}"
        if loads:
            body.append(f"{move} {register}{vector % 7}, [STR{stores} + {at}]")
        if stores:
            body.append(f"{move} [STR0 + {at}], {register}{vector % 7 if loads else 7}")
    return PEER_KERNEL.format(streams=loads + stores, flops=0, bytes=8 * (loads + stores), loads=loads, stores=stores,
                              instructions=len(body) + 3, before="", elements=8 * doubles, body="\n".join(body))


def peer_multiply_adds(width):
    """The same for 24 multiply-adds in 12 chains."""
    register, _, doubles, operation = INSTRUCTIONS[width]
    body = [f"{operation} {register}{i % 12}, {register}15, {register}14" for i in range(24)]
    return PEER_KERNEL.format(streams=1, flops=48, bytes=8, loads=1, stores=0, instructions=len(body) + 3,
                              before="vzeroall\n", elements=doubles, body="\n".join(body))


AHEAD = ["nice", "-n", "-20"]  # of other programs where that is allowed, lest one of the two is interrupted more often


class Peer:
    """likwid-bench, which takes kernels from the folder that it runs in, and pins itself to the first processor."""

    def __init__(self, folder):
        self.folder = folder
        self.processor = str(min(os.sched_getaffinity(0)))

    def work_and_cpu_s(self, name, kib, iterations):
        """Flops or bytes of a run, and its CPU time; nothing: it cannot run here."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = subprocess.run([*AHEAD, "likwid-bench", "-t", name, "-i", str(iterations), "-w", self.arrays(name, kib)],
                               check=False, capture_output=True, text=True, cwd=self.folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        counted = dict(line.split(":", 1) for line in shown.stdout.splitlines() if ":" in line)
        work = counted.get("Number of Flops" if "_fma_" in name else "Data volume (Byte)")
        return work and (float(work), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def a_pass(self, name, kib, expected):
        """Work of a pass, and its CPU time by the difference of a long and a brief run: it reports a rate by the elapsed
        time only, and by a rate of the time-stamp counter that it finds at its start, which goes wrong on a busy machine.
        Nothing: it cannot run here. `expected`: a rate, for the length of a run."""
        work = kib * 1000 / 8 * 48 if "_fma_" in name else kib * 1000
        passes = max(8, int(0.2 * expected / work))
        brief, long = (self.work_and_cpu_s(name, kib, count) for count in (passes // 8, passes))
        if not brief or not long or long[1] <= brief[1]:
            return None
        return long[0] / passes, (long[1] - brief[1]) / (passes - passes // 8)

    def rate(self, name, kib, expected):
        """Flops or bytes a second without the calls of the kernel, of which each pass has one. Their time is twice that of
        a pass over a quarter of the arrays, less that of one over half of them. It matters within L1D alone."""
        whole = self.a_pass(name, kib, expected)
        parts = [self.a_pass(name, kib // part, expected) for part in (4, 2)] if kib < 64 and "_fma_" not in name else []
        if not whole or not all(parts):
            return None
        calls = max(0, 2 * parts[0][1] - parts[1][1]) if parts else 0
        return whole[0] / (whole[1] - calls)

    @staticmethod
    def arrays(name, kib):
        """As the calibration's: the second array does not begin where the first does in its page."""
        return f"M0:{kib}kB:1" + ("-0:M0,1:M0:192" if "_copy_" in name else "-0:M0")

    def add(self, name, text):
        with open(os.path.join(self.folder, name + ".ptt"), "w", encoding="ascii") as file:
            file.write(text)

    def ours(self, *arguments):
        return json_of([*AHEAD, "taskset", "-c", self.processor, *workload("roofs", "--seconds", 0.2, *arguments)])["per_s"]


def peer_kernels(machine):
    """Name, text, size, arguments of ours, and the figure of the machine file."""
    l1, l2 = (int(machine.cache_kib[level]) for level in (1, 2))
    memory = 4 * int(machine.cache_kib.get(3, l2))
    for width in machine.widths:
        calibrated = machine.figure("flops", width=width, precision="double", operation="fma", scope="one_core")
        if calibrated is not None:
            yield f"crosstalk_fma_{width}", peer_multiply_adds(width), 16, ["--flops", "fma", "--width", width], calibrated
    for level, kib in (("l1d", l1 * 5 // 6), ("l2", min(3 * l1, l2 // 2)), ("memory", memory)):
        for width in machine.widths if level == "l1d" else machine.widths[-2:]:
            for mix, name in (("1:0", "load"), ("1:1", "copy"), ("0:1", "store"))[:3 if level == "l1d" else 2]:
                calibrated = machine.figure("accesses", level=level, width=width, loads_to_stores=mix, threads=1)
                yield (f"crosstalk_{name}_{width}", peer_stream(width, mix), kib,
                       ["--mix", mix, "--width", width, "--kib", kib, "--pages", "small"], calibrated)


def compare_with_peer(folder, machine, options):
    """13"""
    if shutil.which("likwid-bench") is None:
        return "there is no likwid-bench here (`./dev deps bench` installs it).", []
    peer = Peer(folder.path)
    rows, verdicts = [], []
    for name, text, kib, arguments, calibrated in peer_kernels(machine):
        peer.add(name, text)
        expected = peer.ours(*arguments)
        if peer.rate(name, kib, expected) is None:
            return "likwid-bench cannot run here.", []
        ours, theirs = in_turns(options.interleaved, lambda: peer.ours(*arguments),
                                lambda: peer.rate(name, kib, expected))
        spread = ratio(ours, theirs)
        joint = max(spread.high - spread.median, spread.median - spread.low)
        verdict = UNDECIDED if joint > 0.1 else HOLDS if abs(spread.median - 1) <= max(0.03, joint) else FAILS
        against = f"{calibrated / max(theirs):.3f}" if calibrated else "absent"
        print(name, kib, spread, against, verdict, flush=True)
        rows.append([f"`{name.removeprefix('crosstalk_')}`, {kib} KiB", f"{max(theirs) / 1e9:.1f}", f"{max(ours) / 1e9:.1f}",
                     f"{spread}", verdict, against])
        verdicts.append(verdict)
    explained = (f"the calibration's kernels, {options.interleaved} runs of each in turns on one processor, by CPU time. The best "
                 "runs in GB/s or Gflop/s; the ratio of the ninth tenths with its 95 % interval, which is to be within 3 % of "
                 "1, or to hold 1 if it is wider; `undecided` if that is more than 10 %. `calibrated`: the machine file's "
                 "roof, of some minutes before, against likwid-bench's best. likwid-bench calls a kernel for each pass over "
                 "the arrays; within L1D, these calls' time is measured and taken out. Both have their arrays in pages of 4 KiB; "
                 "the machine file's are in huge ones.\n\n")
    return explained + common.table(["kernel", "likwid-bench", "crosstalk", "ratio", "verdict", "calibrated"], rows), verdicts


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench rooflines", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the runs")
    parser.add_argument("--print", action="store_true", help="do not write docs/accuracy.md")
    parser.add_argument("--only", default="", help="checks whose name has this word, or 'peer'")
    options = parser.parse_args()
    options.turns = 5 if options.quick else 15
    options.recordings = 10 if options.quick else 20
    options.interleaved = 10 if options.quick else 20
    options.seconds = 0.7 if options.quick else 1.0
    return options


def main():
    options = parse()
    load = os.getloadavg()[0]
    rows, verdicts, peer = [], [], "not compared."
    with common.Folder() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder.file("config")
        os.makedirs(folder.file("config"), exist_ok=True)
        subprocess.run([common.CROSSTALK, "calibrate", "-q", *(["--quick"] if options.quick else [])], check=True)
        machine = Machine()
        for check in CHECKS:
            if options.only in check.__name__:
                for what, found, verdict in check(folder, machine, options):
                    print(f"{what}: {found}: {verdict}", flush=True)
                    rows.append([what, found, verdict])
                    verdicts.append(verdict)
        if options.only in "peer":
            peer, of_peer = compare_with_peer(folder, machine, options)
            verdicts += of_peer
    text = EXPLANATION.format(checks=common.table(["check", "found", "verdict"], rows), peer=peer,
                              machine=common.machine(), load=load)
    print(text)
    counts = {verdict: verdicts.count(verdict) for verdict in (HOLDS, UNDECIDED, FAILS)}
    print("rooflines: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if not options.print and not options.only:
        common.write_section("accuracy.md", "rooflines", text)
    return 1 if counts[FAILS] else 0


if __name__ == "__main__":
    sys.exit(main())
