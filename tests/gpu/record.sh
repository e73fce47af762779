#!/bin/sh
# Every record under tests/gpu must carry the digest of the sources as they are: a change to GPU code that nobody ran on a
# GPU is red. Usage: record.sh CHECKOUT
set -eu
cd "$1"
now=$(scripts/gpu-digest)
bad=0 seen=0
for record in tests/gpu/*.json; do
    [ -e "$record" ] || break
    seen=$((seen + 1))
    if grep -q "\"digest\": \"$now\"" "$record"; then
        echo "$record: belongs to these sources"
    else
        echo "$record: made with other GPU sources; run scripts/gpu-check on a GPU and commit what it writes" >&2
        bad=1
    fi
    if ! grep -q '"failed": 0' "$record"; then
        echo "$record: tells of failed tests" >&2
        bad=1
    fi
done
if [ "$seen" -eq 0 ]; then
    echo "tests/gpu holds no record; run scripts/gpu-check on a GPU" >&2
    bad=1
fi
exit "$bad"
