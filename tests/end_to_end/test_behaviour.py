# SPDX-License-Identifier: Apache-2.0
"""A program under observation behaves as it does without: output, status and signals, however odd it is."""

import harness
from harness import run, workload


class Behaviour(harness.Case):
    def same(self, behaviour):
        command = [workload("hostile"), behaviour]
        bare = run(command)
        recorded = self.record(command)
        self.assertEqual(recorded.stdout, bare.stdout)
        self.assertEqual(recorded.stderr, bare.stderr)
        self.assertEqual(recorded.status, bare.status)
        report = self.report(recorded.profile)
        self.assertEqual(report["exit_status"], bare.status)
        self.assertGreaterEqual(len(report["threads"]), 1)

    def test_close_all_one_by_one(self):
        self.same("close_all_one_by_one")

    def test_close_range_all(self):
        self.same("close_range_all")

    def test_count_descriptors(self):
        self.same("count_descriptors")

    def test_few_descriptors(self):
        self.same("few_descriptors")

    def test_block_all_signals(self):
        self.same("block_all_signals")

    def test_own_sigtrap_handler(self):
        self.same("own_sigtrap_handler")

    def test_stores_flags_and_jumps(self):
        self.same("stores_flags_and_jumps")

    def test_default_sigtrap(self):
        self.same("default_sigtrap")

    def test_own_alternate_stack(self):
        self.same("own_alternate_stack")

    def test_recover_from_segv(self):
        self.same("recover_from_segv")

    def test_own_profiling_timer(self):
        self.same("own_profiling_timer")

    def test_errno_is_kept(self):
        self.same("errno_is_kept")

    def test_interrupted_calls(self):
        self.same("interrupted_calls")

    def test_sandbox_that_refuses(self):
        self.same("sandbox_that_refuses")

    def test_sandbox_that_kills(self):
        self.same("sandbox_that_kills")

    def test_change_root(self):
        self.same("change_root")

    def test_change_user(self):
        self.same("change_user")

    def test_allocate_much(self):
        self.same("allocate_much")

    def test_end_thread_by_pthread_exit(self):
        self.same("end_thread_by_pthread_exit")

    def test_fork_often(self):
        self.same("fork_often")

    def test_underscore_exit(self):
        self.same("_exit")

    def test_quick_exit(self):
        self.same("quick_exit")

    def test_abort(self):
        self.same("abort")

    def test_segv(self):
        self.same("segv")

    def test_kill9(self):
        self.same("kill9")

    def test_sigterm(self):
        self.same("sigterm")

    def test_exit_group_from_thread(self):
        self.same("exit_group_from_thread")

    def test_exec_while_busy(self):
        self.same("exec_while_busy")

    def test_many_short_threads(self):
        recorded = self.record([workload("short_threads"), "--threads", "10000"])
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertIn('"finished":10000', recorded.stdout)
        self.report(recorded.profile)


if __name__ == "__main__":
    harness.main()
