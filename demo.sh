#!/usr/bin/env bash
# Shows btfd at work on this machine (Debian 12 or 13, as root): installs what is missing, builds, starts a daemon of its
# own beside whatever runs, loads a probe through it, and prints what is executed for a few seconds. Nothing stays but the
# packages and build/: no file in /tmp, nothing in the kernel, also after Ctrl-C.
#
#   ./demo.sh             BTFD_DEMO_SECONDS (default 5): how long events are printed
#   ./demo.sh --built     takes build/ (or $BTFD_BUILD) as it is: no packages, no compiler
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

SECONDS_OF_EVENTS=${BTFD_DEMO_SECONDS:-5}
BUILD=${BTFD_BUILD:-build/release}
directory="" daemon="" commands="" client=""

step() { printf '\n== %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# ---- Can it work here? ----------------------------------------------------------------------------------------------

# Makes a map, with nothing but Perl's syscall (perl-base is on every Debian), and says why not.
check_bpf() {
  local number said
  case $(uname -m) in
    x86_64) number=321 ;;
    aarch64 | riscv64 | loongarch64) number=280 ;;
    *) return 0 ;; # the load itself will tell
  esac
  said=$(perl -e 'my $array = pack("L4", 2, 4, 4, 1);
    print syscall($ARGV[0] + 0, 0, $array, length $array) < 0 ? "$!" : "";' "$number") || return 0
  case $said in
    "") ;;
    "Function not implemented") die "this kernel has no bpf(2): it was built without CONFIG_BPF_SYSCALL" ;;
    *) die "bpf(2) is not allowed here ($said): in a container, its seccomp profile and capabilities decide (CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN); on a host, see /sys/kernel/security/lockdown" ;;
  esac
}

check_machine() {
  [[ $SECONDS_OF_EVENTS =~ ^[1-9][0-9]{0,4}$ ]] || die "BTFD_DEMO_SECONDS='$SECONDS_OF_EVENTS' is not a number of seconds (1 to 86400)"
  [ "$(id -u)" = 0 ] || die "loading programs into the kernel needs root: sudo ./demo.sh"
  [ -r /sys/kernel/btf/vmlinux ] || die "this kernel has no BTF (/sys/kernel/btf/vmlinux): it was built without CONFIG_DEBUG_INFO_BTF, or /sys is not mounted"
  check_bpf
}

# ---- What it starts, and how that ends ------------------------------------------------------------------------------

end_process() {
  [ -n "$1" ] || return 0
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

clean_up() {
  trap '' INT TERM HUP
  end_process "$commands"
  end_process "$client"
  end_process "$daemon"
  [ -z "$directory" ] || rm -rf "$directory"
}

show_daemon_log() {
  printf 'The daemon said:\n' >&2
  sed 's/^/  /' "$directory/log" >&2
}

build() {
  cmake --preset release >/dev/null || die "cmake could not configure the project: its messages are above"
  cmake --build --preset release --target btfd btfctl exec-events bpf_object_exec_events || die "the build failed: its messages are above"
}

# The bpffs is mounted in a mount namespace of the daemon's own, and goes with it.
start_daemon() {
  directory=$(mktemp -d -t btfd-demo.XXXXXX) || die "cannot make a temporary directory"
  mkdir "$directory/bpffs"
  echo '{ "socket": { "group": "" }, "log": { "target": "stderr" } }' >"$directory/btfd.json"
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --propagation private sh -c 'mount -t bpf bpf "$0" && exec "$@"' "$directory/bpffs" \
    "$BUILD/bin/btfd" --config "$directory/btfd.json" --socket "$directory/socket" --state-dir "$directory/state" \
    --bpffs "$directory/bpffs" >"$directory/log" 2>&1 &
  daemon=$!
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    [ ! -S "$directory/socket" ] || return 0
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.1
  done
  show_daemon_log
  die "the daemon did not start (a mount namespace needs CAP_SYS_ADMIN)"
}

# So that there is something to see on a quiet machine.
run_commands() {
  while :; do
    /bin/true
    sleep 0.4
    ls / >/dev/null
    sleep 0.4
    uname -a >/dev/null
    sleep 0.4
  done
}

main() {
  step "Checking this machine: root, bpf(2), kernel BTF"
  check_machine
  echo "Linux $(uname -r), $(stat -c %s /sys/kernel/btf/vmlinux) bytes of BTF"

  if [ "${1:-}" != --built ]; then
    step "Installing what is missing (./setup.sh)"
    ./setup.sh || die "setup.sh failed: what it said is above"
    step "Building the daemon, btfctl, the client and the probe (release preset, in build/release; minutes the first time)"
    build
  fi

  step "Starting a private daemon"
  start_daemon
  grep -a 'serves' "$directory/log" || true

  step "Loading the probe tests/bpf/exec_events.bpf.c and printing executions for $SECONDS_OF_EVENTS seconds"
  run_commands &
  commands=$!
  "$BUILD/bin/exec-events" --socket "$directory/socket" --seconds "$SECONDS_OF_EVENTS" "$BUILD/bpf/exec_events.o" &
  client=$!
  wait "$client" || { client=""; show_daemon_log; die "no events: what the client said is above"; }
  client=""

  step "Done: the probe went with its client's connection, the daemon stops now"
  echo "README.md goes on from here."
}

case ${1:-} in
  "" | --built) ;;
  *) die "usage: [BTFD_DEMO_SECONDS=5] ./demo.sh [--built]" ;;
esac
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
main "$@"
