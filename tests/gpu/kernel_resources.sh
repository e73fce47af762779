#!/bin/sh
# Reads what the assembler reported of every engine kernel when the build compiled it, for every architecture of the build:
# no kernel spills registers or uses local memory. Exceptions: on 7.5, varying_convolve stores five registers once for
# each piece; on 12.0, transforms of rows on the chip and the images of rooms store up to eight once for each segment or
# sound, because fewer resident blocks would hide less latency.
# Usage: kernel_resources.sh OBJECT...
set -eu
[ "$#" -gt 0 ] || { echo "no objects given" >&2; exit 1; }
bad=0 kernels=0
for object; do
    report=$object.ptxas
    [ -e "$report" ] || { echo "$report is missing: build again" >&2; exit 1; }
    kernels=$((kernels + $(grep -c 'Compiling entry function' "$report" || true)))
    spilled=$(awk '/Compiling entry function/ { name = $0 }
        /bytes stack frame/ && !/^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ {
            if (!(name ~ /varying_convolve.*sm_75/ && $5 <= 20) &&
                !(name ~ /(chip_|varying_|images).*sm_120/ && $5 <= 32))
                print name "\n" $0
        }' "$report")
    if [ -n "$spilled" ]; then
        printf '%s: local memory or spills:\n%s\n' "$(basename "$object")" "$spilled" >&2
        bad=1
    fi
done
[ "$kernels" -gt 0 ] || { echo "no kernel was found" >&2; exit 1; }
[ "$bad" -eq 0 ] || exit 1
echo "$kernels kernels without spills or local memory"
