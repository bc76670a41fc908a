#!/usr/bin/env bash
# .ci/soak.sh [RUNS]: runs the fast tests RUNS times (50), four packages at a time and each in random
# order. Packages are compiled once. A failure is printed with its output, and fails the whole.
set -euo pipefail
cd "$(dirname "$0")/.."
export BINARIES=$PWD/bin/soak RUNS=${1:-50}
rm -rf "$BINARIES"
mkdir -p "$BINARIES"

echo "compiling the tests"
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | grep .)
for dir in $packages; do
  go test -c -o "$BINARIES/${dir//\//_}" "$dir"
done

# once RUN DIR: one run of one package
once() {
  local binary=$BINARIES/${2//\//_} out
  if mkdir "$BINARIES/run$1" 2>/dev/null; then echo "run $1 of $RUNS begins"; fi
  cd "$2"
  if ! out=$("$binary" -test.shuffle=on -test.timeout=20m 2>&1); then
    printf 'FAIL run %s %s\n%s\n' "$1" "$2" "$out"
    return 1
  fi
}
export -f once

for run in $(seq "$RUNS"); do
  for dir in $packages; do echo "$run $dir"; done | shuf
done | xargs -P 4 -L 1 bash -c 'once "$0" "$1"' # fails when one of them did
echo "$RUNS runs of $(wc -w <<<"$packages") packages passed"
