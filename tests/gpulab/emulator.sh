#!/bin/sh
# Tests the emulator, with which gpulab try runs kernels without a GPU. Every line of planted_errors.txt changes a kernel
# of right/ with a script of sed, and names what gpulab must say about it; the kernels as they are must be right.
# Usage: emulator.sh GPULAB FOLDER [long], where FOLDER contains planted_errors.txt and right/. Only "long" runs the kernels
# that take seconds when they are right.
set -u
gpulab=$1 folder=$2 slow=${3:-}
export CUDA_VISIBLE_DEVICES=''
[ -z "${SANITIZE:-}" ] || {
    echo "skipped: the emulator changes stacks, which sanitizers do not follow"
    exit 77
}
if ! command -v addr2line >/dev/null || ! { command -v g++ || command -v clang++; } >/dev/null; then
    echo "skipped: a C++ compiler or addr2line is not here"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$folder/compile_once.sh"

fail() {
    echo "FAILED: $*" >&2
    touch "$work/failed"
}

# try FILE: runs the exercise of a kernel, and writes what gpulab says as one line
try() {
    exercise=$(sed -n 's|^// exercise: \([^ ]*\).*|\1|p' "$1")
    timeout 100 "$gpulab" try "${exercise:-$(basename "$1" .cu)}" "$1" 2>&1 | tr -s ' \n' '  '
}

# planted NUMBER LINE: tests a line of the table
planted() {
    kernel=${2%% *} rest=${2#*@}
    changes=${rest%%@*} told=${rest#*@}
    mkdir -p "$work/$1"
    sed "${changes# }" "$folder/right/$kernel.cu" >"$work/$1/$kernel.cu" || fail "$1: sed"
    cmp -s "$work/$1/$kernel.cu" "$folder/right/$kernel.cu" && fail "$1: $changes does not change $kernel"
    said=$(try "$work/$1/$kernel.cu")
    case $said in
    *"is right at every size"*) fail "$1: $kernel,$changes: is not found" ;;
    *"${told# }"*) echo found >"$work/$1.found" ;;
    *) fail "$1: $kernel,$changes: must tell:$told, and tells: $said" ;;
    esac
}

right() {
    said=$(try "$1")
    case $said in
    *"is right at every size"*"sectors (best"*"of the lanes are at work"*) echo right >"$work/$(basename "$1").right" ;;
    *) fail "$1: $said" ;;
    esac
}

count=0
grep -v '^#' "$folder/planted_errors.txt" >"$work/table"
while IFS= read -r line; do
    count=$((count + 1))
    planted $count "$line" &
    [ $((count % 3)) -eq 0 ] && wait
done <"$work/table"
kernels=0
for file in "$folder"/right/*.cu; do
    case $slow-$(basename "$file") in
    -convolution.cu | -convolution-tile.cu | -matmul.cu | -matmul-tile.cu | -scan.cu) continue ;;
    esac
    right "$file" &
    kernels=$((kernels + 1))
    [ $((kernels % 3)) -eq 0 ] && wait
done
wait
echo "$(find "$work" -name '*.found' | wc -l) of $count planted errors are found," \
    "$(find "$work" -name '*.right' | wc -l) of $kernels right kernels are right"
if [ $count -lt 30 ] || [ $kernels -lt 13 ]; then
    fail "the table or the folder of right kernels is short"
fi
[ ! -e "$work/failed" ]
