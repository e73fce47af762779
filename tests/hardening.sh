#!/bin/sh
# Every program and library is hardened, as its own headers and symbols show: position-independent, relocations read-only
# and bound at start, no executable stack, stack protector and checked libc functions in use.
# Usage: hardening.sh FILE...
set -u
failed=0
complain() {
    echo "FAILED: $*" >&2
    failed=1
}

command -v readelf >/dev/null || { echo "SKIPPED: no readelf to look into binaries" >&2; exit 77; }
[ "$(uname -s)" = Linux ] || { echo "SKIPPED: not ELF binaries of Linux" >&2; exit 77; }

for file; do
    [ -n "$file" ] || continue
    headers=$(readelf -W -h -l -d "$file") || { complain "$file cannot be read"; continue; }
    symbols=$(readelf -W --dyn-syms "$file")
    name=$(basename "$file")
    echo "$headers" | grep -q 'Type: *DYN' || complain "$name is not position-independent"
    echo "$headers" | grep -q GNU_RELRO || complain "$name has no read-only relocations (RELRO)"
    echo "$headers" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || complain "$name does not bind its symbols at start"
    echo "$headers" | grep 'GNU_STACK' | grep -q 'RWE' && complain "$name has an executable stack"
    echo "$symbols" | grep -q '__stack_chk_fail' || complain "$name has no stack protector"
    case $name in
    gpuconv-*.so) ;; # a module may call no function that has a checked form
    *) echo "$symbols" | grep -qE '__[a-z]+_chk@' || complain "$name calls no checked libc function (_FORTIFY_SOURCE)" ;;
    esac
done
exit $failed
