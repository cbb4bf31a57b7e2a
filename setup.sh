#!/usr/bin/env bash
# Installs what btfd needs to be built and tested on Debian 12 or 13, and makes a static libbpf ready.
#
#   ./setup.sh            packages (with apt, needs root) and libbpf
#   ./setup.sh libbpf     only libbpf; prints its prefix on standard output
#
# Can be run again: what is there is left alone. Environment:
#   BTFD_LIBBPF_ROOT      prefix of a static libbpf of your own (lib/libbpf.a, include/bpf), taken instead of building one
#   BTFD_CACHE            where a built libbpf is kept: else ~/.cache/btfd, or .cache/ here if that cannot be written
set -euo pipefail
shopt -s inherit_errexit

LIBBPF_MINIMUM=1.6

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

PACKAGES=(
  # Compilers and build tools
  g++ cmake ninja-build ccache pkg-config git make
  clang-19 llvm-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev
  # Libraries
  nlohmann-json3-dev libspdlog-dev libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev
  libelf-dev zlib1g-dev liblzma-dev libssl-dev libsystemd-dev
  # To fetch Debian's source of libbpf, and kernels to test against
  dpkg-dev debian-archive-keyring ca-certificates zstd lz4
  # What tests and scripts run
  python3 strace iproute2 systemd util-linux mount shellcheck
  # Virtual machines with other kernels
  qemu-system-x86 seabios busybox-static dash libc-bin binutils
)

# No pipe into grep -q: it ends at its first match, and pipefail then sees the writer's SIGPIPE.
has_candidate() { [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [0-9] ]]; }

# Packages whose names differ between releases.
packages_of_this_release() {
  # Boost 1.74, Debian 12's default, does not compile C++20 coroutines with g++ 12; 1.81 does. Later releases have 1.83.
  if has_candidate libboost1.81-dev; then echo libboost1.81-dev; else echo libboost-dev; fi
  # systemd.pc, which says where units go: part of systemd itself in Debian 12.
  if has_candidate systemd-dev; then echo systemd-dev; fi
}

is_installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == "install ok installed" ]]; }

apt_get() {
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -o DPkg::Lock::Timeout=300 "$@" >&2 </dev/null
}

install_packages() {
  command -v apt-get >/dev/null || die "needs a Debian system (apt-get is missing); the libraries to install are listed here and in README.md"
  # A fresh image has no package lists, and then nothing has a candidate.
  has_candidate ninja-build || [ "$(id -u)" != 0 ] || apt_get update -qq || die "'apt-get update' failed: is the network up?"
  local missing=() package also
  also=$(packages_of_this_release)
  for package in "${PACKAGES[@]}" $also; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || { say "all packages are installed"; return; }
  [ "$(id -u)" = 0 ] || die "missing packages: ${missing[*]}; install them with 'sudo ./setup.sh' (or sudo apt-get install them yourself)"
  say "installing ${missing[*]}"
  apt_get update -qq || say "'apt-get update' failed; trying with the package lists that there are"
  refuse_surprising_removals "${missing[@]}"
  apt_get install -y -qq --no-install-recommends "${missing[@]}" || die "apt could not install the packages named above"
}

# Only another version of Boost may have to go (its headers exclude each other).
refuse_surprising_removals() {
  local removed
  removed=$(apt-get install -s -qq --no-install-recommends "$@" </dev/null 2>/dev/null | awk '$1 == "Remv" { print $2 }') || true
  [ -n "$removed" ] || return 0
  if grep -qv '^libboost' <<<"$removed"; then
    die "apt would remove $(tr '\n' ' ' <<<"$removed")to install ${*}: sort that out by hand"
  fi
  say "apt replaces $(tr '\n' ' ' <<<"$removed")"
}

# ---- libbpf ----------------------------------------------------------------------------------------------------------

# Prints the first directory of those allowed that can be written.
cache_directory() {
  local candidates=() directory
  if [ -n "${BTFD_CACHE:-}" ]; then
    candidates=("$BTFD_CACHE")
  else
    [ -z "${XDG_CACHE_HOME:-}" ] || candidates+=("$XDG_CACHE_HOME/btfd")
    [ -z "${HOME:-}" ] || candidates+=("$HOME/.cache/btfd")
    candidates+=("$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/.cache/btfd")
  fi
  for directory in "${candidates[@]}"; do
    if mkdir -p "$directory" 2>/dev/null && [ -w "$directory" ]; then
      echo "$directory"
      return
    fi
  done
  die "cannot write to ${candidates[*]}; set BTFD_CACHE to a directory for the built libbpf"
}

# The address of the main archive, as the host's own apt sources name it.
mirror() {
  # shellcheck disable=SC2016  # apt's variables, not the shell's
  apt-get indextargets --format '$(CREATED_BY) $(REPO_URI)' \
    | awk '$1 == "Packages" && $2 !~ /security/ && $2 ~ /\/debian(\/[0-9TZ]+)?\/?$/ { print $2; exit }'
}

# Sets APT to the options of a private apt in directory $1 with one deb-src line for suite $2, and updates its lists: the
# host's sources stay as they are. Signatures are verified by Debian's keyring.
private_apt() {
  local directory=$1 suite=$2 uri
  uri=$(mirror)
  [ -n "$uri" ] || die "found no Debian mirror among the apt sources of this system"
  rm -rf "$directory"
  mkdir -p "$directory"/{lists/partial,archives/partial}
  : >"$directory/status"
  printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$uri" "$suite" >"$directory/sources.list"
  APT=(-o "Dir::Etc::sourcelist=$directory/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o "Dir::State::lists=$directory/lists" -o "Dir::State::status=$directory/status" -o "Dir::Cache=$directory"
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=root)
  apt-get "${APT[@]}" --error-on=any update -qq >&2
}

# Fetches the source of libbpf into directory $1 and prints where it is.
fetch_libbpf() {
  local work=$1 suite source
  for suite in testing unstable; do
    say "fetching the source of libbpf from Debian's $suite"
    private_apt "$work/apt" "$suite" || continue
    (cd "$work" && apt-get "${APT[@]}" source -qq libbpf >&2) || continue
    source=$(find "$work" -maxdepth 1 -type d -name 'libbpf-*' | head -n 1)
    [ -z "$source" ] || { echo "$source"; return; }
  done
  die "could not fetch libbpf's source package; with a libbpf $LIBBPF_MINIMUM of your own, set BTFD_LIBBPF_ROOT to its prefix"
}

# MAJOR.MINOR of the libbpf whose headers are below $1.
version_of_headers() {
  awk '/define LIBBPF_MAJOR_VERSION/ { major = $3 } /define LIBBPF_MINOR_VERSION/ { minor = $3 }
    END { if (major != "") print major "." minor }' "$1/bpf/libbpf_version.h" 2>/dev/null
}

# One that was built before, the newest.
built_libbpf() {
  local prefix
  prefix=$(find "$1" -maxdepth 1 -name 'libbpf-[0-9]*' -type d | sort -V | tail -n 1)
  [ -n "$prefix" ] && [ -f "$prefix/lib/libbpf.a" ] && echo "$prefix"
}

build_libbpf() {
  local cache work source version
  cache=$(cache_directory)
  exec 9>"$cache/libbpf.lock" # two builds may be configured at once
  flock 9
  built_libbpf "$cache" && return
  work=$(mktemp -d "$cache/build.XXXXXX")
  # shellcheck disable=SC2064  # the directory of now
  trap "rm -rf '$work'" EXIT
  [ -w "${TMPDIR:-/tmp}" ] || export TMPDIR=$work # apt's signature check needs one
  source=$(fetch_libbpf "$work")
  say "building libbpf in $source"
  make -C "$source/src" -j"$(nproc)" BUILD_STATIC_ONLY=1 CFLAGS="-g -O2 -fPIC -fno-omit-frame-pointer" \
    PREFIX= LIBDIR=/lib DESTDIR="$work/prefix" install install_uapi_headers >"$work/make.log" 2>&1 9>&- \
    || { tail -n 20 "$work/make.log" >&2; die "libbpf did not build"; }
  version=$(version_of_headers "$work/prefix/include")
  dpkg --compare-versions "$version" ge "$LIBBPF_MINIMUM" || die "Debian has libbpf $version only"
  rm -rf "$cache/libbpf-$version"
  mv "$work/prefix" "$cache/libbpf-$version"
  echo "$cache/libbpf-$version"
}

# A system libbpf serves if it is new enough and has the static library.
system_libbpf() {
  local version library
  version=$(pkg-config --modversion libbpf 2>/dev/null) || return 1
  dpkg --compare-versions "$version" ge "$LIBBPF_MINIMUM" || return 1
  library=$(pkg-config --variable=libdir libbpf)/libbpf.a
  [ -f "$library" ] || return 1
  pkg-config --variable=prefix libbpf
}

given_libbpf() {
  [ -n "${BTFD_LIBBPF_ROOT:-}" ] || return 1
  local version
  version=$(version_of_headers "$BTFD_LIBBPF_ROOT/include") || true
  [ -n "$version" ] || die "BTFD_LIBBPF_ROOT=$BTFD_LIBBPF_ROOT has no include/bpf/libbpf_version.h"
  dpkg --compare-versions "$version" ge "$LIBBPF_MINIMUM" || die "BTFD_LIBBPF_ROOT=$BTFD_LIBBPF_ROOT is libbpf $version; $LIBBPF_MINIMUM is needed"
  (cd "$BTFD_LIBBPF_ROOT" && pwd)
}

libbpf() { given_libbpf || system_libbpf || build_libbpf; }

case ${1:-all} in
  all) install_packages; prefix=$(libbpf); say "libbpf is in $prefix" ;;
  libbpf) libbpf ;;
  *) die "usage: ./setup.sh [libbpf]" ;;
esac
