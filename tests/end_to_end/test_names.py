# SPDX-License-Identifier: Apache-2.0
"""Names of functions are those of the code that ran, or there are none: files that were replaced, deleted or in memory
alone; symbols in all the places where they may be; code that was made at run time."""

import contextlib
import glob
import lzma
import os
import shutil
import sqlite3
import subprocess

import harness
from harness import CROSSTALK, run

SPIN = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((noinline)) void FIRST(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) void SECOND(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink ^= i * 3; }
int main(int c, char **v) {  // SECONDS [delete | NEXT]
  if (c > 2 && strcmp(v[2], "delete") == 0) unlink(v[0]);
  else if (c > 2) rename(v[2], v[0]);
  double seconds = atof(v[1]), begin = now();
  puts("runs");
  fflush(stdout);
  while (now() - begin < seconds) { FIRST(20000); SECOND(5000); }
  return 0;
}
"""
FROM_MEMORY = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
int main(int c, char **v) {
  int to = memfd_create("payload", 0), from = open(v[1], O_RDONLY);
  char b[65536];
  for (ssize_t n; (n = read(from, b, sizeof b)) > 0;) write(to, b, n);
  fexecve(to, v + 1, environ);
  return 1;
}
"""
LIBRARY = """
volatile unsigned long sink;
static __attribute__((noinline)) void hidden(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) void exported(unsigned long n) { hidden(n); for (unsigned long i = 0; i < n; i++) sink ^= i * 3; }
"""
CALLER = """
#include <time.h>
void exported(unsigned long);
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(void) { for (double t = now(); now() - t < 0.3;) exported(20000); return 0; }
"""
# As glibc gives its own callers another name, which debug information has.
INNER = """
volatile unsigned long sink;
extern void exported(unsigned long);
extern __typeof(exported) inner __asm__("__GI_exported") __attribute__((visibility("hidden")));
__attribute__((noinline)) void inner(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
extern __typeof(inner) exported __attribute__((alias("__GI_exported")));
"""
GO = """
package main
import "os"
//go:noinline
func one(n uint64) (s uint64) { for i := uint64(0); i < n; i++ { s ^= i * s + 1 }; return }
func main() { if one(200000000) == 1 { os.Exit(1) } }
"""
COMPILER = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static const unsigned char code[] = {0xb9, 0x40, 0x9c, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
int main(int c, char **v) {  // MAP_LINE [fork]
  unsigned char *m = mmap((void *)0x10000000000, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(m + 0x4000, code, sizeof code);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE *out = fopen(path, "w");
  fputs(v[1], out);
  fclose(out);
  puts(path);
  fflush(stdout);
  if (c > 2 && fork() != 0) { wait(0); return 0; }
  for (double t = now(); now() - t < 0.4;) for (int i = 0; i < 10; i++) ((void (*)(void))(m + 0x4000))();
  return 0;
}
"""
NO_BUILD_ID = "-Wl,--build-id=none"


class Programs(harness.Case):
    def build(self, name, source, *options, language="c", compiler="gcc"):
        program = self.path(name)
        with open(program + "." + language, "w", encoding="ascii") as file:
            file.write(source)
        built = run([compiler, "-O1", "-g", "-o", program, program + "." + language, *options], cwd=self.folder)
        self.assertEqual(built.status, 0, built.stderr)
        return program

    def spin(self, name, *options, first="one", second="two"):
        return self.build(name, SPIN.replace("FIRST", first).replace("SECOND", second), *options)

    def tool(self, *command):
        done = run(list(command), cwd=self.folder)
        self.assertEqual(done.status, 0, done.stderr)
        return done.stdout

    def shares(self, profile, *options):
        report = self.report(profile, *options)
        return {function["function"]: function["share"] for function in report["functions"]}

    def warnings(self, profile, *options):
        return [warning["message"] for warning in self.report(profile, *options)["warnings"]]

    def kept(self, profile):
        with contextlib.closing(sqlite3.connect(profile)) as database:
            return [path for path, in database.execute("SELECT path FROM kept_file")]


@harness.together
class FilesThatWentAway(Programs):
    """`one` has four fifths of the time, so that fifty samples tell it from `two`, which lies there in the file that takes
    the place."""

    def check(self, profile):
        shares = self.shares(profile)
        self.assertGreater(shares.get("one", 0), shares.get("two", 0))

    @harness.needs_events
    def test_a_program_that_was_replaced_before_it_is_attached_to(self):
        for options in ([NO_BUILD_ID], ["-Wl,--build-id=sha1"]):
            program, other = self.spin("program", *options), self.spin("other", *options, first="two", second="one")
            with subprocess.Popen([program, "60"], stdout=subprocess.PIPE) as process:
                self.addCleanup(process.kill)
                process.stdout.readline()
                os.rename(other, program)
                profile = self.path("run.db")
                recorded = run([CROSSTALK, "record", "-q", "-o", profile, "-p", str(process.pid), "--duration", "0.7"])
                process.kill()
            self.assertEqual(recorded.status, 0, recorded.stderr)
            self.check(profile)
            self.assertEqual(self.kept(profile), [program])

    def test_a_program_that_is_replaced_while_it_runs(self):
        for options in ([NO_BUILD_ID], ["-Wl,--build-id=sha1"]):
            program, other = self.spin("program", *options), self.spin("other", *options, first="two", second="one")
            profile = self.record([program, "0.4", other]).profile
            self.check(profile)

    def test_a_program_that_deletes_itself(self):
        program = self.spin("program")
        profile = self.record([program, "0.4", "delete"]).profile
        self.assertFalse(os.path.exists(program))
        self.check(profile)

    def test_a_program_in_memory(self):
        program, start = self.spin("program"), self.build("start", FROM_MEMORY)
        profile = self.record([start, program, "0.4"]).profile
        self.check(profile)
        self.assertEqual(self.kept(profile), ["/memfd:payload"])

    def test_a_file_that_stays_is_not_kept(self):
        program = self.spin("program", NO_BUILD_ID)
        profile = self.record([program, "0.2"]).profile
        self.check(profile)
        self.assertEqual(self.kept(profile), [])

    def test_a_program_that_only_its_own_mount_namespace_has(self):
        own = ["unshare", "-m", "sh", "-c"]
        if os.geteuid() != 0 or run([*own, "mount -t tmpfs none /mnt"]).status != 0:
            self.skipTest("a mount namespace needs root")
        program, other = self.spin("program", NO_BUILD_ID), self.spin("other", NO_BUILD_ID, first="two", second="one")
        app = self.path("app")
        os.mkdir(app)
        shutil.copy(other, app + "/program")  # what others see there
        script = f"mount -t tmpfs none {app} && cp {program} {app}/program && exec {app}/program 0.4"
        self.check(self.record([*own, script]).profile)

    def test_a_program_that_the_loader_was_asked_to_run(self):
        program = self.spin("program")
        loader = glob.glob("/lib64/ld-linux-x86-64.so.2") or self.skipTest("there is no /lib64/ld-linux-x86-64.so.2")
        profile = self.record([loader[0], program, "0.4"]).profile
        self.check(profile)
        self.assertEqual(self.report(profile)["functions"][0]["module"], program)
        self.assertFalse([warning for warning in self.warnings(profile) if "changed" in warning])


@harness.together
class Symbols(Programs):
    def stripped_library(self):
        """The profile of a program with a library that is stripped, and what of its symbols is not exported."""
        self.build("libfull.so", LIBRARY, "-shared", "-fPIC", "-Wl,--build-id=sha1")
        self.tool("objcopy", "--only-keep-debug", "libfull.so", "full.debug")
        with open(self.path("keep"), "w", encoding="ascii") as file:
            file.write("hidden\n")
        self.tool("objcopy", "-S", "--keep-symbols=keep", "full.debug", "mini")
        shutil.copy(self.path("libfull.so"), self.path("libx.so"))
        self.tool("strip", "-s", "libx.so")
        return self.build("caller", CALLER, "-L.", "-lx", "-Wl,-rpath," + self.folder)

    def build_id(self, name):
        notes = self.tool("readelf", "-n", name)
        return notes.split("Build ID:")[1].split()[0]

    def test_what_is_packed_within_a_stripped_library(self):
        caller = self.stripped_library()
        with open(self.path("mini"), "rb") as plain, open(self.path("mini.xz"), "wb") as packed:
            packed.write(lzma.compress(plain.read()))
        self.tool("objcopy", "--add-section", ".gnu_debugdata=mini.xz", "libx.so")
        shares = self.shares(self.record([caller]).profile)
        self.assertIn("hidden", shares)
        self.assertIn("exported", shares)

    def test_a_debug_file_does_not_hide_what_the_library_exports(self):
        caller = self.stripped_library()
        profile = self.record([caller]).profile
        self.assertNotIn("hidden", self.shares(profile))
        build_id = self.build_id("libx.so")
        folder = self.path(f"root/usr/lib/debug/.build-id/{build_id[:2]}")
        os.makedirs(folder)
        shutil.copy(self.path("mini"), f"{folder}/{build_id[2:]}.debug")
        shares = self.shares(profile, "--sysroot", self.path("root"))
        self.assertIn("hidden", shares)
        self.assertIn("exported", shares)

    def test_a_name_that_a_library_has_for_itself(self):
        self.build("libx.so", INNER, "-shared", "-fPIC")
        program = self.build("caller", CALLER, "-L.", "-lx", "-Wl,-rpath," + self.folder)
        self.assertIn("exported", self.shares(self.record([program]).profile))

    def test_a_library_without_a_table_of_sections(self):
        for hashes in ("gnu", "sysv"):
            library = self.build("libx.so", LIBRARY, "-shared", "-fPIC", "-Wl,--hash-style=" + hashes)
            program = self.build("caller", CALLER, "-L.", "-lx", "-Wl,-rpath," + self.folder)
            with open(library, "r+b") as file:
                for field, count in ((40, 8), (60, 4)):  # where it lies, how many there are and which has names
                    file.seek(field)
                    file.write(bytes(count))
            self.assertIn("exported", self.shares(self.record([program]).profile))

    def test_gos_own_table_of_functions(self):
        if shutil.which("go") is None:
            self.skipTest("there is no Go")
        with open(self.path("main.go"), "w", encoding="ascii") as file:
            file.write(GO)
        program = self.path("program")
        built = run(["go", "build", "-ldflags=-s -w", "-o", program, "main.go"], cwd=self.folder)
        self.assertEqual(built.status, 0, built.stderr)
        self.assertIn("main.one", self.shares(self.record([program]).profile))

    def test_perfs_cache(self):
        program = self.spin("program", "-Wl,--build-id=sha1")
        profile = self.record([program, "0.2"]).profile
        build_id = self.build_id("program")
        entry = self.path(f"home/.debug/.build-id/{build_id[:2]}/{build_id[2:]}")
        os.makedirs(entry)
        os.rename(program, entry + "/elf")
        home = os.environ.get("HOME")
        os.environ["HOME"] = self.path("home")
        try:
            self.assertIn("one", self.shares(profile))
        finally:
            os.environ["HOME"] = home or "/"

    def test_an_absolute_link_below_the_sysroot_leads_below_it(self):
        program = self.spin("program")
        profile = self.record([program, "0.2"]).profile
        os.makedirs(self.path("root/data/app"))
        os.makedirs(self.path("root") + self.folder)
        os.rename(program, self.path("root/data/app/program"))
        self.assertNotIn("one", self.shares(profile))
        os.symlink("/data/app/program", self.path("root") + program)
        self.assertIn("one", self.shares(profile, "--sysroot", self.path("root")))

    def test_debug_sections_packed_by_zstd(self):
        program = self.spin("program")
        if run(["objcopy", "--compress-debug-sections=zstd", program]).status != 0:
            self.skipTest("this objcopy does not know zstd: binutils 2.40 does")
        functions = self.report(self.record([program, "0.2"]).profile)["functions"]
        one = next(function for function in functions if function["function"] == "one")
        self.assertEqual(os.path.basename(one["file"]), "program.c")

    def test_split_debug_information_that_is_gone_is_named(self):
        program = self.spin("program", "-gsplit-dwarf")
        profile = self.record([program, "0.2"]).profile
        self.assertFalse([warning for warning in self.warnings(profile) if ".dwo" in warning])
        for part in glob.glob(self.path("*.dwo")):
            os.remove(part)
        self.assertTrue([warning for warning in self.warnings(profile) if ".dwo" in warning and "not here" in warning])


NAMESPACES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(int c, char **v) {
  for (int i = 0; i < 3; i++) {
    void *library = dlmopen(LM_ID_NEWLM, v[1], RTLD_NOW);
    void (*exported)(unsigned long) = (void (*)(unsigned long))dlsym(library, "exported");
    for (double t = now(); now() - t < 0.2;) exported(20000);
    if (i == 1) dlclose(library);
  }
  return 0;
}
"""


@harness.together
class Namespaces(Programs):
    def test_libraries_in_link_namespaces_of_their_own(self):
        if tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) < (2, 35):
            self.skipTest("this C library does not list its namespaces: 2.35 does")
        library = self.build("libplugin.so", LIBRARY, "-shared", "-fPIC")
        profile = self.record([self.build("host", NAMESPACES, "-ldl"), library]).profile
        shares = self.shares(profile)
        self.assertGreater(shares.get("hidden", 0) + shares.get("exported", 0), 0.8, shares)


MOVED = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
volatile unsigned long sink;
extern char etext;
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((noinline)) void unused(void) { sink = 7; }
__attribute__((noinline)) void hot(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
int main(int c, char **v) {  // [change]
  char *from = (char *)((unsigned long)main & ~4095ul);
  size_t bytes = (((unsigned long)&etext + 4095) & ~4095ul) - (unsigned long)from;
  char *copy = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, from, bytes);
  if (c > 1) copy[(char *)unused - from] ^= 1;
  mprotect(copy, bytes, PROT_READ | PROT_EXEC);
  mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from);
  for (double t = now(); now() - t < 1;) hot(20000);
  return 0;
}
"""


@harness.together
class MovedCode(Programs):
    """Programs copy their code into memory of their own, at the same place, to have it in huge pages."""

    def test_it_keeps_its_names(self):
        program = self.build("moved", MOVED)
        self.assertGreater(self.shares(self.record([program]).profile).get("hot", 0), 0.8)

    @harness.needs_watchpoints
    def test_it_keeps_its_names_from_outside_as_far_as_it_is_the_files(self):
        program = self.build("moved", MOVED)
        self.assertGreater(self.shares(self.record([program], ["--observer"]).profile).get("hot", 0), 0.8)
        shares = self.shares(self.record([program, "change"], ["--observer"]).profile)
        self.assertLess(shares.get("hot", 0), 0.5, "the recorder looks at the mappings again after a fifth of a second")


TWICE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
volatile unsigned long sink;
extern char __executable_start, etext;
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((noinline)) void hot(unsigned long *at, unsigned long n) { for (unsigned long i = 0; i < n; i++) *at += i * i; }
int main(void) {
  size_t bytes = (((unsigned long)&etext + 4095) & ~4095ul) - (unsigned long)&__executable_start;
  int file = open("/proc/self/exe", O_RDONLY);
  char *again = mmap(0, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  void (*there)(unsigned long *, unsigned long) = (void (*)(unsigned long *, unsigned long))(again + ((char *)hot - &__executable_start));
  for (double t = now(); now() - t < 1;) { there((unsigned long *)&sink, 20000); free(malloc(64)); }
  return 0;
}
"""


@harness.together
class CodeMappedTwice(Programs):
    """Programs map their own file a second time: V8 has its built-in functions near the code that it compiles."""

    def test_it_keeps_its_names(self):
        profile = self.record([self.build("twice", TWICE)]).profile
        self.assertGreater(self.shares(profile).get("hot", 0), 0.8)

    @harness.needs_watchpoints
    def test_it_keeps_its_names_from_outside(self):
        profile = self.record([self.build("twice", TWICE)], ["--observer"]).profile
        self.assertGreater(self.shares(profile).get("hot", 0), 0.8)


@harness.together
class MapsOfCompilers(Programs):
    def record_and_delete_map(self, *arguments):
        compiler = self.build("compiler", COMPILER)
        result = self.record([compiler, *arguments])
        self.assertEqual(result.status, 0, result.stderr)
        os.remove(result.stdout.split()[0])
        return self.shares(result.profile)

    def test_a_map_is_kept_in_the_profile(self):
        self.assertIn("compiled", self.record_and_delete_map("10000004000 100 compiled\n"))

    def test_a_worker_has_what_its_parent_had_compiled(self):
        self.assertIn("compiled", self.record_and_delete_map("10000004000 100 compiled\n", "fork"))

    @harness.needs_events
    def test_a_process_that_has_another_id_for_itself_and_ends(self):
        own = ["unshare", "-pf", "--mount-proc", "sh", "-c"]
        chosen = "echo 31234 > /proc/sys/kernel/ns_last_pid"  # /tmp/perf-2.map may be another test's
        if os.geteuid() != 0 or run([*own, chosen]).status != 0:
            self.skipTest("a pid namespace needs root")
        compiler = self.build("compiler", COMPILER)
        result = self.record([*own, chosen + f"; {compiler} '10000004000 100 compiled'; :"], ["--observer"])
        self.addCleanup(os.remove, "/tmp/perf-31235.map")
        self.assertIn("/tmp/perf-31235.map", result.stdout)
        self.assertIn("compiled", self.shares(result.profile))

    def test_the_latest_line_holds(self):
        shares = self.record_and_delete_map("10000004000 40 freed\n10000003ff0 100 live\n")
        self.assertIn("live", shares)
        self.assertNotIn("freed", shares)


if __name__ == "__main__":
    harness.main()
