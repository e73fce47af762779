#!/bin/sh
# Checks that a record of the engine and one of the lab (...-lab.json) have the digests of the present sources. After a change
# to GPU code that was not run on a GPU the record is pending: exit status 77, and with GPUCONV_RELEASE=1, for a release, 1.
# Records of other GPUs may be older. No record may contain a failed test.
# Usage: record.sh CHECKOUT
set -eu
cd "$1"
engine=$(scripts/gpu-digest engine) lab=$(scripts/gpu-digest lab)
bad=0 fresh='' pending=''
for record in tests/gpu/*.json; do
    [ -e "$record" ] || break
    case $record in
    *-lab.json) now=$lab part=lab ;;
    *) now=$engine part=engine ;;
    esac
    if grep -q "\"digest\": \"$now\"" "$record"; then
        echo "$record: belongs to these sources"
        fresh="$fresh $part"
    else
        echo "$record: made from other GPU sources"
    fi
    if ! grep -Eq '"fail(ed|ures)": 0' "$record"; then
        echo "$record: contains failed tests" >&2
        bad=1
    fi
done
for part in engine lab; do
    case $fresh in
    *$part*) ;;
    *)
        echo "record pending: none belongs to these sources of the $part; run scripts/gpu-check or scripts/lab-check on a GPU" \
            "and commit the new record" >&2
        pending=yes
        ;;
    esac
done
[ $bad -eq 0 ] && [ -n "$pending" ] && [ "${GPUCONV_RELEASE:-0}" != 1 ] && exit 77
[ -z "$pending" ] || bad=1
exit "$bad"
