#!/bin/sh
# Tests gpulab try with wrong kernels, each of which must be told what its line "told:" says (one of the texts between |),
# and on a GPU with right ones. With a GPU it compiles them with nvcc, without one for the emulator, which emulator.sh tests
# with the right ones.
# Usage: try.sh GPULAB FOLDER, where FOLDER contains wrong/ and right/
set -u
gpulab=$1 folder=$2
gpu=no kinds=wrong
"$gpulab" device 2>/dev/null | grep -q multiprocessors && gpu=yes
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
if [ $gpu = yes ]; then
    kinds='wrong right'
    command -v nvcc >/dev/null || {
        echo "skipped: nvcc is not here"
        exit 77
    }
else
    [ -z "${SANITIZE:-}" ] || {
        echo "skipped: the emulator changes stacks, which sanitizers do not follow"
        exit 77
    }
    if ! command -v addr2line >/dev/null || ! { command -v g++ || command -v clang++; } >/dev/null; then
        echo "skipped: a C++ compiler or addr2line is not here"
        exit 77
    fi
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ $gpu = yes ] || . "$folder/compile_once.sh"

# try KIND FILE: writes what gpulab says as one line, and whether it was told right
try() {
    name=$(basename "$2" .cu) quick=--quick
    exercise=$(sed -n 's|^// exercise: ||p' "$2")
    told=$(sed -n 's|^// told: ||p' "$2" | tr '|' '\n')
    [ "$name" = reads_outside ] || [ "$name" = goal_missed ] && quick=
    # shellcheck disable=SC2086
    timeout 170 "$gpulab" try "${exercise:-$name}" "$2" $quick >"$work/$name.raw" 2>&1
    status=$?
    said=$(tr -s ' \n' '  ' <"$work/$name.raw")
    case $1-$gpu-$status-$said in
    right-*-0-*"is right at every size"*) echo "right" >"$work/$name.ok" ;;
    wrong-yes-0-*"compute-sanitizer is not installed"* | wrong-yes-0-*"compute-sanitizer does not support"*)
        echo "not looked for" >"$work/$name.ok" ;;
    wrong-*-1-*) printf '%s\n' "$said" | grep -qF -- "$told" && echo "told" >"$work/$name.ok" ;;
    esac
    [ -e "$work/$name.ok" ] || {
        echo "FAILED: $1 $name: exit $status, $said" >&2
        touch "$work/failed"
    }
}

count=0
for kind in $kinds; do
    for file in "$folder/$kind"/*.cu; do
        try "$kind" "$file" &
        count=$((count + 1))
        [ $((count % 4)) -eq 0 ] && wait
    done
done
wait
echo "$count kernels: $(cat "$work"/*.ok 2>/dev/null | sort | uniq -c | tr -s ' \n' '  ')"
[ $count -ge 17 ] || {
    echo "FAILED: only $count kernels" >&2
    exit 1
}
[ ! -e "$work/failed" ]
