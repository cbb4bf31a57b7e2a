#!/usr/bin/env bash
# Installs what btfd needs to be built and tested on Debian 12 or 13, and makes a static libbpf ready.
#
#   ./setup.sh            packages (with apt, needs root) and libbpf
#   ./setup.sh libbpf     only libbpf; prints its prefix on the last line
#
# Can be run again: what is there is left alone.
set -euo pipefail

LIBBPF_MINIMUM=1.6
CACHE=${BTFD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/btfd}

say() { printf '%s: %s\n' "setup" "$*" >&2; }
die() { say "$*"; exit 1; }

PACKAGES=(
  g++ cmake ninja-build ccache pkg-config git make
  nlohmann-json3-dev libspdlog-dev libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev
  libelf-dev zlib1g-dev libssl-dev libsystemd-dev
  clang-19 llvm-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev
  dpkg-dev debian-archive-keyring python3 strace iproute2 systemd
)

# Boost 1.74, Debian 12's default, does not compile C++20 coroutines with g++ 12; 1.81 does.
boost_package() {
  if apt-cache show libboost1.81-dev >/dev/null 2>&1; then echo libboost1.81-dev; else echo libboost-dev; fi
}

install_packages() {
  command -v apt-get >/dev/null || die "needs a Debian system (apt-get is missing); see README.md for the list of libraries"
  apt-cache show ninja-build >/dev/null 2>&1 || [ "$(id -u)" != 0 ] || apt-get update -qq || die "'apt-get update' failed"
  local missing=() package
  for package in "${PACKAGES[@]}" "$(boost_package)"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || { say "all packages are installed"; return; }
  [ "$(id -u)" = 0 ] || die "missing packages: ${missing[*]}; run this as root, or install them yourself"
  say "installing ${missing[*]}"
  apt-get update -qq || die "'apt-get update' failed"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 </dev/null \
    || die "apt could not install the packages named above"
}

# The address of the main archive, as the host's own apt sources name it.
mirror() {
  apt-get indextargets --format '$(CREATED_BY) $(REPO_URI)' \
    | awk '$1 == "Packages" && $2 !~ /security/ && $2 ~ /\/debian(\/[0-9TZ]+)?\/?$/ { print $2; exit }'
}

# A private apt with one deb-src line: the host's sources stay as they are. Signatures are verified by Debian's keyring.
private_apt() {
  local directory=$1 suite=$2 uri
  uri=$(mirror)
  [ -n "$uri" ] || die "found no Debian mirror among the apt sources of this system"
  mkdir -p "$directory"/{lists/partial,archives/partial}
  : >"$directory/status"
  printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$uri" "$suite" >"$directory/sources.list"
  APT=(-o "Dir::Etc::sourcelist=$directory/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
    -o "Dir::State::lists=$directory/lists" -o "Dir::State::status=$directory/status" -o "Dir::Cache=$directory"
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=root)
  apt-get "${APT[@]}" --error-on=any update -qq >&2
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

build_libbpf() {
  local suite prefix source
  prefix=$(find "$CACHE" -maxdepth 1 -name 'libbpf-[0-9]*' -type d 2>/dev/null | sort -V | tail -n 1)
  if [ -n "$prefix" ] && [ -f "$prefix/lib/libbpf.a" ]; then echo "$prefix"; return; fi
  mkdir -p "$CACHE"
  local work
  work=$(mktemp -d "$CACHE/build.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  for suite in testing unstable; do
    say "fetching the source of libbpf from Debian's $suite"
    private_apt "$work/apt" "$suite" || continue
    (cd "$work" && apt-get "${APT[@]}" source -qq libbpf >&2) || continue
    source=$(find "$work" -maxdepth 1 -type d -name 'libbpf-*' | head -n 1)
    [ -n "$source" ] && break
  done
  [ -n "${source:-}" ] || die "could not fetch libbpf's source package; with a libbpf $LIBBPF_MINIMUM of your own, configure with -DBTFD_LIBBPF_ROOT=PREFIX"
  local version
  version=$(sed -n 's/^LIBBPF_VERSION *:= *//p;s/^LIBBPF_MAJOR_VERSION *:= *//p' "$source/src/Makefile" | head -n 1)
  version=$version.$(sed -n 's/^LIBBPF_MINOR_VERSION *:= *//p' "$source/src/Makefile")
  dpkg --compare-versions "$version" ge "$LIBBPF_MINIMUM" || die "Debian's $suite has libbpf $version only"
  say "building libbpf $version"
  make -C "$source/src" -j"$(nproc)" BUILD_STATIC_ONLY=1 CFLAGS="-g -O2 -fPIC -fno-omit-frame-pointer" \
    PREFIX= LIBDIR=/lib DESTDIR="$work/prefix" install install_uapi_headers >"$work/make.log" 2>&1 \
    || { tail -n 20 "$work/make.log" >&2; die "libbpf did not build"; }
  prefix=$CACHE/libbpf-$version
  rm -rf "$prefix"
  mv "$work/prefix" "$prefix"
  echo "$prefix"
}

libbpf() { system_libbpf || build_libbpf; }

case ${1:-all} in
  all) install_packages; prefix=$(libbpf); say "libbpf is in $prefix" ;;
  libbpf) libbpf ;;
  *) die "usage: ./setup.sh [libbpf]" ;;
esac
