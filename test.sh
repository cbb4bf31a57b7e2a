#!/usr/bin/env bash
# Installs what is missing (Debian 12 or 13), builds, and runs the tests. What was skipped, and why, is said before
# ctest's own summary.
#
#   ./test.sh [PRESET] [CTEST OPTION]...
#
#   ./test.sh                 all tests, release build
#   ./test.sh asan            with AddressSanitizer and UndefinedBehaviorSanitizer; also: debug, tsan, fuzz
#   ./test.sh -L unit         only those with a label: unit, integration, attach, interop, differential, vm, fuzz
#   ./test.sh -R Seam         only those with such a name
#
# As root all tests run; otherwise those that need it are skipped. BTFD_ALLOWED_SKIPS, a file of regular expressions: fail
# when a test was skipped that none of them allows (tests/tools/skipped-tests). The exit status is ctest's otherwise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

preset=release
case ${1:-} in
  release | debug | asan | tsan | fuzz) preset=$1; shift ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit ;;
  "" | -*) ;;
  *) echo "test.sh: there is no preset '$1': release, debug, asan, tsan, fuzz" >&2; exit 2 ;;
esac

./setup.sh
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"

junit=$PWD/build/$preset/tests.xml
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
rm -f "$junit"
status=0
# ctest's summary is held back until the skips have been said.
ctest --preset "$preset" --output-junit "$junit" --test-output-size-passed 1048576 --test-output-size-failed 1048576 -j "$(nproc)" "$@" \
  | awk -v summary="$summary" '/^[0-9]+% tests passed/ { held = 1 } { if (held) print > summary; else { print; fflush() } }' \
  || status=$?

if [ -f "$junit" ]; then
  skipped=$(tests/tools/skipped-tests "$junit" ${BTFD_ALLOWED_SKIPS:+--allowed "$BTFD_ALLOWED_SKIPS"}) || status=1
  [ -z "$skipped" ] || printf 'Skipped:\n%s\n\n' "$skipped"
fi
cat "$summary"
exit "$status"
