# SPDX-License-Identifier: Apache-2.0
"""The packages in a Debian 12 that runs under systemd: the daemon with all restrictions of its unit, and what users get
from it. One guest for all tests, which are run in the order of their names."""

import json
import re
import shutil
import sys
import unittest

import debian_root
import service_guest

sys.path.insert(0, str(debian_root.ROOT / "tests" / "end_to_end"))
import harness  # noqa: E402

OURS = ("crosstalk", "crosstalkd")
CAPABILITIES = 1 << 38 | 1 << 19  # CAP_PERFMON, CAP_SYS_PTRACE
PROGRAM = "false_sharing"
SERVICE = """[Service]
User={name}
ExecStart={command}
[Install]
WantedBy=multi-user.target
"""
SERVICES = {"shop": f"/usr/local/bin/{PROGRAM} --seconds 3600", "bank": "/usr/bin/sleep infinity"}
CONFIGURATION = """
[daemon]
budget = "50%"

[[service]]
name = "shop"
unit = "shop.service"
access = true
watch = false

[[service]]
name = "bank"
unit = "bank.service"
watch = false
"""


def prepare(root):
    """Two services of two users, two more users, and the packages, which are installed in the guest."""
    (root.path / "packages").mkdir()
    for name in OURS:
        shutil.copy(debian_root.package(name), root.path / "packages")
    service_guest.copy_program(root, harness.workload(PROGRAM))
    for name, command in SERVICES.items():
        (root.path / f"etc/systemd/system/{name}.service").write_text(SERVICE.format(name=name, command=command), encoding="ascii")
    done = root.run("for user in shop bank; do useradd --system $user; systemctl enable $user.service; done; "
                    "for user in alice bob; do useradd --create-home $user; done")
    assert done.returncode == 0, done.stderr


@harness.verify("boots a Debian under emulation, which takes minutes")
@harness.together
class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.guest = service_guest.ServiceGuest(debian_root.dependencies(*OURS), prepare)
        except debian_root.Unavailable as reason:
            raise unittest.SkipTest(str(reason)) from reason
        cls.addClassCleanup(cls.guest.close)
        print(f"the guest booted in {cls.guest.boot_s:.0f} s", flush=True)
        status, said = cls.guest.run("DEBIAN_FRONTEND=noninteractive dpkg --install /packages/*.deb && usermod -aG crosstalk alice",
                                     300)
        assert status == 0, said

    def run_in(self, script, seconds=60):
        return self.guest.run(script, seconds)

    def well(self, script, seconds=60):
        status, said = self.guest.run(script, seconds)
        self.assertEqual(status, 0, f"{script}\n{said}\n" + self.guest.run("journalctl --no-pager -u crosstalkd | tail -n 20")[1])
        return said

    def property(self, name):
        return self.well(f"systemctl show --value -p {name} crosstalkd.service").strip()

    def configure(self, text):
        self.well(f"cat >/etc/crosstalk/crosstalkd.toml <<'END'\n{text}\nEND\nsystemctl reload crosstalkd")

    def record(self, user, service, options="--duration 5", seconds=180):
        """(status, words) of a recording of a service's process by a user."""
        return self.run_in(f"cd /home/{user} && rm -f *.db && runuser -u {user} -- crosstalk record {options} "
                           f"-p $(systemctl show --value -p MainPID {service})", seconds)

    def test_1_it_is_up_with_two_rights(self):
        self.assertEqual(self.well("systemctl is-active crosstalkd.service crosstalkd.socket").split(), ["active"] * 2)
        self.assertEqual(self.well("systemctl is-enabled crosstalkd.service crosstalkd.socket").split(), ["enabled"] * 2)
        self.assertEqual(self.well("cat /proc/sys/kernel/perf_event_paranoid").strip(), "2")
        self.assertEqual(self.well("stat -c '%A %U' /run/crosstalk/crosstalkd.sock").split()[0], "srw-rw-rw-")
        self.assertEqual(self.well("stat -c '%a %U %G' /var/lib/crosstalk").strip(), "700 crosstalk crosstalk")
        status = self.well(f"cat /proc/{self.property('MainPID')}/status")
        for field in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(re.search(rf"^{field}:\t(\w+)", status, re.MULTILINE).group(1), 16), CAPABILITIES, field)
        self.assertRegex(status, r"(?m)^NoNewPrivs:\t1$")
        self.assertRegex(status, r"(?m)^Seccomp:\t2$")
        self.assertNotIn("Uid:\t0", status)
        print(self.well("systemctl status --no-pager crosstalkd.service"))
        print(self.well("systemd-analyze security --no-pager crosstalkd.service | tail -n 1"))
        self.assertEqual(self.well("journalctl --no-pager --quiet -u crosstalkd -p warning"), "")

    def test_2_it_is_ready_when_it_says_so(self):
        # Type=notify: the job of a start ends when the daemon has said READY=1, and then it answers at once.
        self.well("systemctl restart crosstalkd && runuser -u bob -- crosstalk service status --format json")
        self.assertEqual(self.property("Type"), "notify")
        self.assertEqual(self.property("SubState"), "running")
        # The socket holds connections while the daemon restarts.
        self.well("systemctl stop crosstalkd.service; systemctl is-active crosstalkd.socket && "
                  "runuser -u bob -- crosstalk service status && systemctl is-active crosstalkd.service")

    def test_3_users_record_what_they_may(self):
        self.configure(CONFIGURATION)
        # A member of the group, a service of another user that is open to the group.
        status, said = self.record("alice", "shop", "--duration 10 --period 1ms --budget 30")
        self.assertEqual(status, 0, said)
        report = json.loads(self.well("runuser -u alice -- crosstalk report --format json /home/alice/crosstalk.db", 120))
        self.assertGreater(report["sampling"]["samples"], 0)
        self.assertTrue(report["loops"][0]["file"].endswith("false_sharing.cpp"), report["loops"][0])
        self.assertGreater(report["sampling"]["armed"], 0)
        self.assertGreater(report["sampling"]["traps"], 0)
        self.assertEqual(self.well("stat -c %U /home/alice/crosstalk.db").strip(), "alice")
        # One that is not, and a user who is in no group.
        for user, service, why in (("alice", "bank", "belongs to another user and to no service with access = true"),
                                   ("bob", "shop", "only members of the group crosstalk may record")):
            status, said = self.record(user, service)
            self.assertEqual(status, 125, said)
            self.assertRegex(said.strip().splitlines()[-1], f"^crosstalk: .*{why}")
            self.run_in(f"test ! -e /home/{user}/crosstalk.db")
        # Everybody their own processes.
        self.well(f"""cd /home/bob
            runuser -u bob -- /usr/local/bin/{PROGRAM} --seconds 60 & sleep 1
            runuser -u bob -- crosstalk record --daemon --duration 3 -p $(pgrep -u bob {PROGRAM}) && rm crosstalk.db && pkill -u bob {PROGRAM}
            """, 120)

    def test_4_a_service_is_kept_recorded(self):
        self.configure(CONFIGURATION.replace("access = true\nwatch = false", 'access = true\ninterval = "5s"'))
        self.well("""for i in $(seq 60); do
            runuser -u alice -- crosstalk service profiles shop | grep -q shop.db && break; sleep 2; done
            cd /home/alice && runuser -u alice -- crosstalk service fetch shop -o shop.db""", 180)
        report = json.loads(self.well("crosstalk report --format json /home/alice/shop.db", 120))
        self.assertTrue(report["loops"][0]["file"].endswith("false_sharing.cpp"), report["loops"][0])
        metrics = """exec 4<>/dev/tcp/127.0.0.1/9947; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&4; cat <&4"""
        for _ in range(20):
            said = self.well(metrics)
            if 'crosstalk_intervals_total{service="shop"} 0' not in said and "crosstalk_cpu_seconds_total{" in said:
                break
            self.run_in("sleep 5")
        self.assertRegex(said, r'crosstalk_loop_cpu_seconds_total\{.*service="shop"')
        # The profiles are nobody's but the daemon's.
        self.assertNotEqual(self.run_in("runuser -u alice -- ls /var/lib/crosstalk")[0], 0)
        print(self.well("systemctl show -p MemoryCurrent -p TasksCurrent crosstalkd"))

    def test_5_a_reload_that_fails_changes_nothing(self):
        pid = self.property("MainPID")
        self.configure("[daemon]\nbudgets = 1")
        self.assertRegex(self.well("journalctl --no-pager -u crosstalkd -p err | tail -n 1"), "budgets.*the earlier configuration stays")
        self.assertEqual(self.property("ActiveState"), "active")
        self.configure(CONFIGURATION)
        self.assertEqual(self.property("MainPID"), pid)
        # At a start it is an error that is not tried again and again.
        self.well("echo '[daemon' >/etc/crosstalk/crosstalkd.toml; ! systemctl restart crosstalkd; sleep 5")
        self.assertEqual((self.property("ActiveState"), self.property("ExecMainStatus")), ("failed", "125"))
        self.well(f"cat >/etc/crosstalk/crosstalkd.toml <<'END'\n{CONFIGURATION}\nEND\nsystemctl restart crosstalkd.service")

    def test_6_the_watchdog_restarts_a_daemon_that_hangs(self):
        pid, restarts = self.property("MainPID"), int(self.property("NRestarts"))
        self.well(f"kill -STOP {pid}")
        self.well(f"""for i in $(seq 120); do
            [ "$(systemctl show --value -p NRestarts crosstalkd)" -gt {restarts} ] && systemctl is-active -q crosstalkd && exit 0
            sleep 1; done; exit 1""", 200)
        self.assertNotEqual(self.property("MainPID"), pid)
        self.assertRegex(self.well("journalctl --no-pager -u crosstalkd"), "Watchdog timeout")
        self.well("runuser -u bob -- crosstalk service status")

    def test_7_an_upgrade_restarts_it(self):
        pid = self.property("MainPID")
        self.well("DEBIAN_FRONTEND=noninteractive dpkg --force-confold --install /packages/*.deb", 300)
        self.assertEqual(self.well("systemctl is-active crosstalkd.service crosstalkd.socket").split(), ["active"] * 2)
        self.assertNotEqual(self.property("MainPID"), pid)
        self.well("runuser -u bob -- crosstalk service status")

    def test_8_purged_it_is_gone(self):
        self.well("dpkg --purge crosstalkd crosstalk", 120)
        self.well("! systemctl is-active crosstalkd.service && ! systemctl is-active crosstalkd.socket")
        self.well("! pgrep -u crosstalk . && test ! -e /var/lib/crosstalk && test ! -e /run/crosstalk && test ! -e /etc/crosstalk")
        self.assertNotIn("crosstalkd", self.well("systemctl --failed --no-legend"))


if __name__ == "__main__":
    harness.main()
