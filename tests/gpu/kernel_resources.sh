#!/bin/sh
# Reads what the assembler reported of every engine kernel when the build compiled it, for every architecture of the build:
# no kernel spills registers or uses local memory. Usage: kernel_resources.sh OBJECT...
set -eu
[ "$#" -gt 0 ] || { echo "no objects given" >&2; exit 1; }
bad=0 kernels=0
for object; do
    report=$object.ptxas
    [ -e "$report" ] || { echo "$report is missing: build again" >&2; exit 1; }
    kernels=$((kernels + $(grep -c 'Compiling entry function' "$report" || true)))
    if grep 'bytes stack frame' "$report" | grep -Eqv '^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads'; then
        echo "$(basename "$object"): local memory or spills:" >&2
        grep -E 'Compiling|stack frame' "$report" | grep -B 1 -Ev 'Compiling|^ *0 bytes stack frame, 0 bytes spill stores' >&2
        bad=1
    fi
done
[ "$kernels" -gt 0 ] || { echo "no kernel was found" >&2; exit 1; }
[ "$bad" -eq 0 ] || exit 1
echo "$kernels kernels without spills or local memory"
