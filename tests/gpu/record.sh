#!/bin/sh
# Every record under tests/gpu must carry the digest of the sources as they are - <gpu>.json of the engine's, <gpu>-lab.json
# of the lab's: a change to GPU code that nobody ran on a GPU is red. Usage: record.sh CHECKOUT
set -eu
cd "$1"
engine=$(scripts/gpu-digest engine) lab=$(scripts/gpu-digest lab)
bad=0 seen=0
for record in tests/gpu/*.json; do
    [ -e "$record" ] || break
    seen=$((seen + 1))
    case $record in
    *-lab.json) now=$lab script=scripts/lab-check ;;
    *) now=$engine script=scripts/gpu-check ;;
    esac
    if grep -q "\"digest\": \"$now\"" "$record"; then
        echo "$record: belongs to these sources"
    else
        echo "$record: made with other GPU sources; run $script on a GPU and commit what it writes" >&2
        bad=1
    fi
    if ! grep -Eq '"fail(ed|ures)": 0' "$record"; then
        echo "$record: tells of failed tests" >&2
        bad=1
    fi
done
if [ "$seen" -lt 2 ]; then
    echo "tests/gpu holds too few records; run scripts/gpu-check and scripts/lab-check on a GPU" >&2
    bad=1
fi
exit "$bad"
