#!/bin/sh
# Compiles every engine kernel for every architecture that a release carries and reads what the assembler says of it: no
# spills, no local memory. Usage: kernel_resources.sh CHECKOUT NVCC ARCHITECTURE...
set -eu
root=$1 nvcc=$2
shift 2
[ "$#" -gt 0 ] || { echo "no architectures given" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0 kernels=0
for architecture; do
    number=${architecture%%-*}
    for source in "$root"/kernels/engine/*.cu; do
        log=$work/log
        "$nvcc" -std=c++17 -O3 -cubin -arch="sm_$number" -Xptxas -v "$source" -o "$work/cubin" 2>"$log" ||
            { cat "$log" >&2; exit 1; }
        found=$(grep -c 'Compiling entry function' "$log" || true)
        kernels=$((kernels + found))
        if grep -E 'bytes stack frame' "$log" | grep -Eqv '^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads'; then
            echo "sm_$number $(basename "$source"): local memory or spills:" >&2
            grep -E 'Compiling|stack frame' "$log" >&2
            bad=1
        fi
    done
done
[ "$kernels" -gt 0 ] || { echo "no kernel was found" >&2; exit 1; }
[ "$bad" -eq 0 ] || exit 1
echo "$kernels kernels without spills or local memory"
