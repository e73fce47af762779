#!/bin/sh
# The lab without a GPU: every module is listed, explained and checked on the CPU; variants on the GPU say why they are
# skipped; a run is told as tables and as JSON, which gives the same tables again.
. "$(dirname "$0")/../gpuconv/lib.sh"
GPULAB=$(dirname "$GPUCONV")/gpulab
quick=
case ${SANITIZE:-} in # the thread sanitizer does not see how OpenMP's library orders its threads
*thread*) export OMP_NUM_THREADS=1 quick=--quick ;;
esac

# lab ARGUMENT...: exit 0
lab() {
    "$GPULAB" "$@" >"$work/log/out" 2>"$work/log/err" || fail "gpulab $*: exit $?: $(cat "$work/log/err")"
}
# lab_refuses TEXT ARGUMENT...: exit 2, and says it
lab_refuses() {
    says=$1
    shift
    "$GPULAB" "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ $status -eq 2 ] || fail "gpulab $*: exit $status instead of 2"
    grep -qF -- "$says" "$work/log/err" || fail "does not say '$says': $(cat "$work/log/err")"
}

lab list
cut -d' ' -f1 "$work/log/out" >"$work/log/modules"
for module in hello vector-add scale image median constant-memory shared-sync bank-conflicts registers memory-latency \
    convolution streams pinned-memory matmul coalescing divergence reconvergence transpose reduction flash-attention \
    floating-point compiler timing; do
    grep -qx "$module" "$work/log/modules" || fail "no module $module"
done
while read -r module; do
    lab show "$module"
    for word in Courses Source ladder; do
        grep -q "$word" "$work/log/out" || fail "show $module does not say $word"
    done
    stem=$(echo "$module" | tr - _)
    [ -f "$SOURCE/kernels/course/$stem.c" ] || fail "no source of $module"
done <"$work/log/modules"

if "$GPULAB" ptx convolution >"$work/log/out" 2>"$work/log/err"; then
    grep -q '^\.visible \.entry\|^\.entry' "$work/log/out" || fail "ptx: no kernel: $(head "$work/log/out")"
    lab ptx -C convolution
    awk '/unrolled/ { seen = 1; if ($10 < 32) exit 1 } END { exit !seen }' "$work/log/out" ||
        fail "ptx: the unrolled kernels have no multiply-adds: $(cat "$work/log/out")"
else
    grep -q 'no CUDA' "$work/log/err" || fail "ptx: $(cat "$work/log/err")"
fi

lab check $quick
grep -q ' 0 failures' "$work/log/out" || fail "check: $(tail -n 3 "$work/log/out")"
grep -q FAILED "$work/log/err" && fail "check: $(grep FAILED "$work/log/err")"
lab run hello --json
cp "$work/log/out" run.json
for word in '"module": "hello"' '"state": "measured"' '"failures": 0'; do
    grep -qF -- "$word" run.json || fail "run --json does not say $word"
done
if "$GPULAB" device 2>&1 | grep -q multiprocessors; then
    echo "a GPU is here: nothing is skipped"
else
    grep -qF '"state": "skipped"' run.json || fail "GPU variants are not said to be skipped"
    grep -qF '"why"' run.json || fail "nor why"
fi
lab report --from run.json
grep -q 'hello' "$work/log/out" || fail "report: $(cat "$work/log/out")"
lab report hello --html page.html
[ "$(grep -c -e 'hello' -e '</html>' page.html)" -ge 2 ] || fail "report --html: $(head -c 300 page.html)"

lab_refuses "no such module" show nonsense
lab_refuses "no such module" check nonsense
lab_refuses "no such command" sing
lab_refuses "wants the name" show
lab_refuses "nonsense" --nonsense list
lab --help
grep -q 'check \[MODULE...\]' "$work/log/out" || fail "--help: $(cat "$work/log/out")"
