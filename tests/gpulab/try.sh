#!/bin/sh
# Tests gpulab try with wrong kernels, each of which must be told what its line "told:" says (one of the texts between |).
# Without a GPU only the errors that the compiler finds are told, and right kernels must compile. With a GPU all are told,
# and right kernels are right. Usage: try.sh GPULAB FOLDER, where FOLDER contains wrong/ and right/
set -u
gpulab=$1 folder=$2
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || {
    echo "skipped: nvcc is not here"
    exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
gpu=no
"$gpulab" device 2>/dev/null | grep -q multiprocessors && gpu=yes

# try KIND FILE: writes what gpulab says as one line, and whether it was told right
try() {
    name=$(basename "$2" .cu) quick=--quick
    exercise=$(sed -n 's|^// exercise: ||p' "$2")
    told=$(sed -n 's|^// told: ||p' "$2" | tr '|' '\n')
    [ "$name" = reads_outside ] && quick=
    # shellcheck disable=SC2086
    timeout 170 "$gpulab" try "${exercise:-$name}" "$2" $quick >"$work/$name.raw" 2>&1
    status=$?
    said=$(tr -s ' \n' '  ' <"$work/$name.raw")
    case $1-$gpu-$status-$said in
    *-no-1-*"compiles for compute capability"*) echo "compiles" >"$work/$name.ok" ;;
    right-yes-0-*"is right at every size"*) echo "right" >"$work/$name.ok" ;;
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
for kind in wrong right; do
    for file in "$folder/$kind"/*.cu; do
        [ $kind-$gpu = wrong-no ] && ! grep -q '^// found by: the compiler' "$file" && continue
        try $kind "$file" &
        count=$((count + 1))
        [ $((count % 4)) -eq 0 ] && wait
    done
done
wait
echo "$count kernels: $(cat "$work"/*.ok 2>/dev/null | sort | uniq -c | tr -s ' \n' '  ')"
[ $count -ge 9 ] || {
    echo "FAILED: only $count kernels" >&2
    exit 1
}
[ ! -e "$work/failed" ]
