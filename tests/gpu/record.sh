#!/bin/sh
# Checks that the records of the H200 have the digest of the present sources: nvidia-h200.json that of the engine,
# nvidia-h200-lab.json that of the lab. The test fails after a change to GPU code that was not run on that GPU. Records of
# other GPUs may be older. No record may contain a failed test.
# Usage: record.sh CHECKOUT
set -eu
cd "$1"
engine=$(scripts/gpu-digest engine) lab=$(scripts/gpu-digest lab)
bad=0 count=0
for record in tests/gpu/*.json; do
    [ -e "$record" ] || break
    count=$((count + 1))
    case $record in
    *-lab.json) now=$lab script=scripts/lab-check ;;
    *) now=$engine script=scripts/gpu-check ;;
    esac
    if grep -q "\"digest\": \"$now\"" "$record"; then
        echo "$record: belongs to these sources"
    elif [ "${record#tests/gpu/nvidia-h200}" = "$record" ]; then
        echo "$record: made from other GPU sources"
    else
        echo "$record: made from other GPU sources; run $script on a GPU and commit the new record" >&2
        bad=1
    fi
    if ! grep -Eq '"fail(ed|ures)": 0' "$record"; then
        echo "$record: contains failed tests" >&2
        bad=1
    fi
done
if [ "$count" -lt 2 ]; then
    echo "tests/gpu contains fewer than two records; run scripts/gpu-check and scripts/lab-check on a GPU" >&2
    bad=1
fi
exit "$bad"
