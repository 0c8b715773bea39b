#!/usr/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The guest's first process: mounts what programs expect, then runs one script after another, as machine.py asks by the
# second serial port: "run NUMBER SECONDS" -> "done NUMBER", or a line that says why no more can be run. The files of a
# script, and what comes of it, are in the folder NUMBER that is shared with the host.
/usr/bin/busybox --install -s /usr/bin 2>/dev/null
export PATH=/usr/sbin:/usr/bin HOME=/root LC_ALL=C.UTF-8 RESULTS=/guest/results
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts /guest/share
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
ip link set lo up
stty -F /dev/console -onlcr
stty -F /dev/ttyS1 raw -echo
mkfifo /guest/pipe

# The shared folder is there only while files are copied: a guest that has it cannot be put to sleep.
share() {
  while read -r module; do
    [ -e "/sys/module/${module//-/_}" ] || insmod "/guest/modules/$module.ko" || return 1
  done </guest/modules/order
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /guest/share
}

unshare_folder() {
  umount /guest/share
  rmmod 9pnet_virtio 2>/dev/null  # another folder may be mounted
}

# Ends every process but this one and the one named.
end_others() {
  local entry
  for entry in /proc/[0-9]*; do
    case ${entry#/proc/} in 1 | "$1") continue ;; esac
    if [ -e "$entry/exe" ]; then kill -9 "${entry#/proc/}" 2>/dev/null; fi  # the kernel's threads have none
  done
}

# Restores a script's settings; fails if a module stays.
set_back() {
  local module tries
  echo 1 >/sys/devices/system/cpu/cpu1/online
  echo none >/sys/power/pm_test
  echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
  echo "$ptrace_scope" >/proc/sys/kernel/yama/ptrace_scope
  for module in emulated_pmu crosstalk_ibs; do
    for tries in 1 2 3 4 5 6 7 8 9 10; do
      [ -e "/sys/module/$module" ] || break
      rmmod "$module" || sleep 0.5
    done
    [ ! -e "/sys/module/$module" ] || return 1
  done
} 2>/dev/null

run() {  # SECONDS
  local printing script
  tee /guest/run/output </guest/pipe &
  printing=$!
  setsid sh /guest/script </dev/null >/guest/pipe 2>&1 &
  script=$!
  (sleep "$1" && echo >/guest/run/late && kill -9 "$script") &
  wait "$script"
  echo $? >/guest/run/status
  end_others "$printing"
  wait
}

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
ptrace_scope=$(cat /proc/sys/kernel/yama/ptrace_scope)
exec 9<>/dev/ttyS1
echo "guest: up"
echo "up" >&9
cd /tmp || exit 1
while read -r _ number seconds <&9; do
  rm -rf /guest/run
  mkdir -p "$RESULTS" /guest/run
  share && cp -rf "/guest/share/$number/files/." / && unshare_folder
  run "$seconds"
  set_back || echo "a module cannot be unloaded" >/guest/run/stuck
  dmesg -c >/guest/run/dmesg
  share && cp -rf /guest/run "/guest/share/$number/" && cp -rf "$RESULTS" "/guest/share/$number/results" && unshare_folder
  rm -rf "$RESULTS"
  echo "done $number" >&9
done
poweroff -f
