#!/usr/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The guest's first process: mounts what programs expect, runs /guest/script, sends its status, output, results and the
# kernel's messages through the second serial port, and switches the machine off.
/usr/bin/busybox --install -s /usr/bin 2>/dev/null
export PATH=/usr/sbin:/usr/bin HOME=/root LC_ALL=C.UTF-8 RESULTS=/guest/results
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts "$RESULTS"
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
ip link set lo up
stty -F /dev/console -onlcr
stty -F /dev/ttyS1 raw -echo
echo "guest: up"

cd /tmp || exit 1
{
  sh /guest/script </dev/null
  echo $? >/guest/status
} 2>&1 | tee /guest/output

dmesg >/guest/dmesg
tar -C /guest -c status output dmesg results | gzip -1 >/dev/ttyS1
poweroff -f
