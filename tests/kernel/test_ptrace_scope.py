# SPDX-License-Identifier: Apache-2.0
"""Yama, of which most machines' kernels have none, or leave it at one setting: what each setting forbids is refused before
anything is touched, in one line with the remedy; and what it allows is observed."""

import kernel_case
from kernel_case import harness

REFUSED, DONE = "125", "0"
USERS = (b"root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n", b"root:x:0:\nuser:x:1000:\n")


class Scope(kernel_case.GuestCase, harness.Case):
    def said(self):
        """{(setting, who, how): (status, words)} of recordings of a user's program, and of one that the recorder launches;
        {setting: warnings of the profile of that}."""
        guest = self.guest()
        program = harness.workload("false_sharing")
        for path in (harness.CROSSTALK, harness.COLLECTOR, program):
            guest.add_program(path)
        for name, content in zip(("passwd", "group"), USERS):
            guest.add(f"/etc/{name}", content)
        record = f"{harness.CROSSTALK} record -q -o /tmp/\\$\\$.db"
        attach = f"{record} --duration 1 -p $(cat /tmp/pid)"
        result = self.run_well(guest, f"""
            chmod 1777 /tmp $RESULTS
            echo 2 >/proc/sys/kernel/perf_event_paranoid
            su user -c "{program} --seconds 300 >/dev/null & echo \\$! >/tmp/pid"
            sleep 1
            try() {{  # setting who how words
              su "$2" -c "$4" >"$RESULTS/$1.$2.$3" 2>&1
              echo "status $?" >>"$RESULTS/$1.$2.$3"
            }}
            for scope in 0 1 2 3; do
              echo $scope >/proc/sys/kernel/yama/ptrace_scope || exit 1
              for who in user root; do
                try $scope $who outside "{attach}"
              done
              try $scope user inject "{attach} --inject"
              try $scope user launched "{harness.CROSSTALK} record -q -o $RESULTS/$scope.db --observer -- {program} --seconds 1"
            done
            kill $(cat /tmp/pid)""", 280)
        found, warnings = {}, {}
        for name, content in result.files.items():
            if name.endswith(".db"):
                with open(self.path(name), "wb") as file:
                    file.write(content)
                report = self.report(self.path(name))
                warnings[int(name[0])] = {warning["code"]: warning["message"] for warning in report["warnings"]}
                continue
            setting, who, how = name.split(".")
            *words, status = content.decode().splitlines()
            found[int(setting), who, how] = status.removeprefix("status "), "\n".join(words)
        return found, warnings

    @kernel_case.guest_kind(kernel_case.AMD, last=True)  # a setting of 3 stays until the next boot
    def test_each_setting(self):
        found, warnings = self.said()
        for (setting, who, how), (status, words) in sorted(found.items()):
            print(setting, who, how, status, words)
        for setting in (0, 1, 2, 3):
            with self.subTest(setting=setting):
                self.check_setting(setting, lambda who, how: found[setting, who, how], warnings[setting])

    def check_setting(self, setting, said, warnings):
        allowed = setting == 0
        remedy = "until the next boot" if setting == 3 else "sudo sysctl kernel.yama.ptrace_scope=0, or record as root"
        for how in ("outside", "inject"):
            status, words = said("user", how)
            self.assertEqual(status, DONE if allowed else REFUSED, words)
            if not allowed:
                self.assertRegex(words, rf"^crosstalk: -p \d+.*kernel.yama.ptrace_scope is {setting}.*{remedy}$")
                self.assertEqual(len(words.splitlines()), 1, words)
        status, words = said("root", "outside")
        self.assertEqual(status, REFUSED if setting == 3 else DONE, words)
        # A child of the recorder's, which a setting of 1 allows. It has its way in any case, and the profile says why not.
        status, words = said("user", "launched")
        self.assertEqual(status, DONE, words)
        if setting < 2:
            self.assertNotIn("not_watched", warnings)
        else:
            self.assertIn(f"kernel.yama.ptrace_scope is {setting}", warnings["not_watched"])


if __name__ == "__main__":
    kernel_case.main()
