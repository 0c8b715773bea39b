# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus scrapes crosstalkd's metrics, and must have stored what the daemon then tells."""

import glob
import json
import os
import re
import shutil
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

import daemon_harness
import harness
from harness import wait_until

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def prometheus_program(folder):
    """Path of the program: the installed one, else the one of Debian's package, which is unpacked but not installed, since an
    installed one runs as a service."""
    installed = shutil.which("prometheus")
    if installed:
        return installed
    done = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "prometheus"], cwd=folder,
                          capture_output=True, text=True, check=False)
    packages = glob.glob(os.path.join(folder, "prometheus_*.deb"))
    if done.returncode != 0 or not packages:
        raise unittest.SkipTest(f"no prometheus here: {(done.stderr.strip().splitlines() or ['apt-get fetched none'])[-1]}")
    subprocess.run(["dpkg-deb", "--extract", packages[0], folder], check=True)
    return os.path.join(folder, "usr", "bin", "prometheus")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def series_of(exposition):
    """The daemon's samples by name and labels."""
    series = {}
    for line in exposition.splitlines():
        if not line.startswith("#"):
            sample, _, value = line.rpartition(" ")
            name, _, labels = sample.partition("{")
            series[(name, frozenset(LABEL.findall(labels)))] = float(value)
    return series


class Scraped(daemon_harness.Case):
    def prometheus(self, target):
        program = prometheus_program(self.path(""))
        with open(self.path("prometheus.yml"), "w", encoding="ascii") as file:
            json.dump({"global": {"scrape_interval": "1s"},
                       "scrape_configs": [{"job_name": "crosstalk", "static_configs": [{"targets": [target]}]}]}, file)
        self.address = f"http://127.0.0.1:{free_port()}"
        with open(self.path("prometheus.log"), "wb") as log:
            process = subprocess.Popen([program, "--config.file", self.path("prometheus.yml"), "--storage.tsdb.path",
                                        self.path("data"), "--web.listen-address", self.address.removeprefix("http://")],
                                       stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: process.poll() is not None or self.ask("targets"))
        with open(self.path("prometheus.log"), encoding="utf-8") as log:
            self.assertIsNone(process.poll(), log.read())

    def ask(self, what, **parameters):
        """The data of its answer; None while it does not listen yet."""
        try:
            with urllib.request.urlopen(f"{self.address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def scraped(self):
        """Its account of its target after the first scrape; None before."""
        targets = self.ask("targets")["activeTargets"]
        return targets[0] if targets and targets[0]["health"] != "unknown" else None

    def stored(self):
        """Its latest samples of ours, with the labels that the daemon gave them."""
        series = {}
        for sample in self.ask("query", query='{job="crosstalk",__name__=~"crosstalk_.*"}')["result"]:
            labels = {key: value for key, value in sample["metric"].items() if key not in ("__name__", "instance", "job")}
            series[(sample["metric"]["__name__"], frozenset(labels.items()))] = float(sample["value"][1])
        return series

    @harness.needs_events
    @harness.verify("fetches Debian's Prometheus")
    def test_it_stores_every_series_that_the_daemon_tells(self):
        program = self.service_program("false_sharing")
        target = self.process(program, "--seconds", "600")
        self.daemon(f'[[service]]\nname = "web"\ncommand = "{program}*"\ninterval = "1s"\n', metrics=True)
        wait_until(lambda: (self.metric("crosstalk_intervals_total", service="web") or 0) >= 3)
        target.kill()  # so the metrics stand still
        target.wait()
        wait_until(lambda: self.metric("crosstalk_watched", service="web") == 0)
        self.prometheus(urllib.parse.urlparse(self.metrics_address()).netloc)
        target = wait_until(self.scraped)
        self.assertEqual((target["health"], target["lastError"]), ("up", ""))

        def agree():
            told = {key: value for key, value in series_of(self.scrape()[1]).items() if key[0].startswith("crosstalk_")}
            return told and told == self.stored() and told
        told = wait_until(agree)
        names = {name for name, _ in told}
        self.assertLessEqual({"crosstalk_communication_cost_seconds_total", "crosstalk_loop_cpu_seconds_total",
                              "crosstalk_overhead_seconds_total", "crosstalk_recording_info"}, names)
        (rate,) = self.ask("query", query='sum by (service) (crosstalk_cpu_seconds_total) / '
                                          'sum by (service) (crosstalk_recorded_seconds_total)')["result"]
        self.assertEqual(rate["metric"], {"service": "web"})
        self.assertGreater(float(rate["value"][1]), 0)
        print(f"{len(told)} series stored; {float(rate['value'][1]):.2f} processors used by the service")


if __name__ == "__main__":
    harness.main()
