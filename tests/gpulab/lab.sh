#!/bin/sh
# Tests gpulab without a GPU: every module is listed, explained and checked on the CPU; GPU variants are skipped with a
# reason; a run is printed as tables and as JSON, and a saved report gives tables and a page.
. "$(dirname "$0")/../gpuconv/lib.sh"
GPULAB=$(dirname "$GPUCONV")/gpulab
quick=
[ -z "${SANITIZE:-}" ] || quick=--quick # larger sizes run the same code

# lab ARGUMENT...: runs gpulab, which must exit with 0
lab() {
    "$GPULAB" "$@" >"$work/log/out" 2>"$work/log/err" || fail "gpulab $*: exit $?: $(cat "$work/log/err")"
}
# lab_refuses TEXT ARGUMENT...: runs gpulab, which must exit with 2 and print TEXT
lab_refuses() {
    text=$1
    shift
    "$GPULAB" "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ $status -eq 2 ] || fail "gpulab $*: exit $status instead of 2"
    grep -qF -- "$text" "$work/log/err" || fail "does not print '$text': $(cat "$work/log/err")"
}

lab list
sed '/^$/,$d; s/ .*//' "$work/log/out" >"$work/log/modules" # the courses follow
for module in hello vector-add scale image median constant-memory shared-sync bank-conflicts registers memory-latency \
    convolution streams graphs pinned-memory matmul coalescing divergence reconvergence transpose reduction scan \
    histogram rooms flash-attention floating-point compiler timing; do
    grep -qx "$module" "$work/log/modules" || fail "no module $module"
done
while read -r module; do
    lab show "$module"
    for word in Courses Source ladder; do
        grep -q "$word" "$work/log/out" || fail "show $module does not print $word"
    done
    # Without a row in any record the record is pending (tests/gpu/record.sh).
    if grep -qF "\"module\": \"$module\"" "$(dirname "$0")"/../gpu/*-lab.json; then
        grep -q '^ *> .* at ' "$work/log/out" || fail "show $module has no recorded figure"
    fi
    grep -q '__global__' "$work/log/out" || fail "show $module has no code"
    lab show --brief "$module"
    grep -q '__global__ void' "$work/log/out" && fail "show --brief $module has code"
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
    grep -qF -- "$word" run.json || fail "run --json does not print $word"
done
# Where there is no driver, the reason is not a version that the CUDA runtime misses.
"$GPULAB" device 2>&1 | grep 'driver version is insufficient' && fail "a missing driver is called an old one"
if "$GPULAB" device 2>&1 | grep -q multiprocessors; then
    echo "this machine has a GPU: no variant is skipped"
else
    grep -qF '"state": "skipped"' run.json || fail "GPU variants are not reported as skipped"
    grep -qF '"why"' run.json || fail "no reason for skipped variants"
fi
lab report --from run.json
grep -q 'hello' "$work/log/out" || fail "report: $(cat "$work/log/out")"
if grep -qF '"missing"' run.json; then
    [ "$(grep -c 'recorded on an NVIDIA H200' "$work/log/out")" -eq 1 ] || fail "recorded figures: $(cat "$work/log/out")"
    grep -q 'a grid .* GPU  \* .* us' "$work/log/out" || fail "no recorded figure: $(cat "$work/log/out")"
    grep -q skipped "$work/log/out" && fail "skipped on a row: $(cat "$work/log/out")"
fi
lab show --markdown convolution
grep -q '^```diff' "$work/log/out" || fail "show --markdown has no differences"
grep -q '^+ __constant__ float' "$work/log/out" || fail "show --markdown marks no line"
lab report hello --html page.html
grep -q '__global__ void hello' page.html || fail "a page without code"
grep -q '<details' page.html && fail "a page with a closed part"
echo '{"results": [{"module": "convolution", "variant": "v", "where": "GPU", "size": "s", "state": "skipped"}]}' >code.json
lab report --from code.json --html code.html
grep -q "<span class='p'>+ __constant__ float" code.html || fail "a page without marked code"
[ "$(grep -c -e 'hello' -e '</html>' page.html)" -ge 2 ] || fail "report --html: $(head -c 300 page.html)"

[ -z "$(find . -name 'page.html.*')" ] || fail "a temporary page is left"
"$GPULAB" report --from run.json --html nowhere/page.html >"$work/log/out" 2>"$work/log/err" && fail "a page in a missing folder was accepted"
grep -q 'nowhere/page.html' "$work/log/err" || fail "a page in a missing folder: $(cat "$work/log/err")"
lab report --from run.json --html /dev/stdout
grep -q '</html>' "$work/log/out" || fail "a page on standard output"
[ -c /dev/null ] && lab report --from run.json --html /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"

# Legends have their line's colour in a style attribute: the page's style sheet overrides presentation attributes.
cat >sweep.json <<'END'
{"sweeps": {"s <b>&'\"": {"across": "x", "unit": "u", "columns": ["one", "two"], "points": [[1, 2, 3], [2, 3, 5]]}},
 "device": {"name": "' onload='alert(1)"}, "ceilings": {"copy": 1e12, "fp32": 1e13, "fp16": 1e14, "tf32": 1, "launch": 1},
 "results": [{"module": "hello", "variant": "<script>v", "where": "<script>w", "size": "<script>z", "state": "measured",
   "median": 1e-3, "figure": 1, "unit": "<script>u", "share": 0.5, "bound": "<script>b", "course": "<script>\u001b[31m\nc"}],
 "effects": [{"module": "hello", "what": "<script>e", "size": "s", "ratio": 1, "wanted": 1}]}
END
lab report --from sweep.json --html page.html
[ "$(grep -c "<text x='[0-9]*' y='[0-9]*' style='fill:#" page.html)" -eq 2 ] || fail "legends without colour: $(grep -n '<text' page.html)"
grep -q "<text[^>]* fill='" page.html && fail "a legend with a fill attribute: $(grep -n '<text' page.html)"
# Texts of the file do not become markup and do not end an attribute.
grep -n -e '<script>' -e "' onload" -e "'>s <b>" page.html && fail "a text of the file became markup"
[ "$(grep -o '&lt;script&gt;' page.html | wc -l)" -ge 6 ] || fail "texts are missing: $(cat page.html)"
lab report --from sweep.json
LC_ALL=C grep -n "$(printf '\033')" "$work/log/out" && fail "control characters in a table"

# Reports that gpulab cannot have written are refused, with the position of the error.
n=0
while IFS= read -r line; do
    n=$((n + 1))
    printf '%s' "$line" >bad.json
    for page in '' '--html page.html'; do
        # shellcheck disable=SC2086
        timeout 20 "$GPULAB" report --from bad.json $page >"$work/log/out" 2>"$work/log/err"
        status=$?
        [ $status -eq 1 ] || fail "$line: exit $status"
        grep -q '^gpulab: bad.json' "$work/log/err" || fail "$line: $(cat "$work/log/err")"
        [ "$(wc -l <"$work/log/err")" -eq 1 ] || fail "$line: $(cat "$work/log/err")"
    done
done <<'END'
[]
{"results": 3}
{"results": [3]}
{"results": [{}]}
{"results": [{"module": 1, "variant": "v", "where": "w", "size": "s", "state": "x"}]}
{"results": [{"module": "hello", "variant": "v", "where": "w", "size": "s", "state": "measured"}]}
{"results": [{"module": "hello", "variant": "v", "where": "w", "size": "s", "state": "measured", "median": -1}]}
{"results": [{"module": "hello", "variant": "v", "where": "w", "size": "s", "state": "measured", "median": 1, "facts": [1]}]}
{"sweeps": {"a": {"across": "x", "columns": [1], "points": []}}}
{"sweeps": {"a": {"across": "x", "columns": ["c"], "points": [[1, 2], [1, 3]]}}}
{"sweeps": {"a": {"across": "x", "columns": ["c"], "points": [[0, 2], [1, 3]]}}}
{"sweeps": {"a": {"across": "x", "columns": ["c"], "points": [[1, "2"], [2, 3]]}}}
{"sweeps": {"a": {"across": "x", "columns": ["c"], "points": [[1, 2, 3], [2, 3]]}}}
{"sweeps": {"a": {"across": "x", "columns": ["c"], "points": [[1, 1e300], [2, 3]]}}}
{"sweeps": {"a": {"across": "x", "columns": ["c"], "points": [[1, 1e-300], [2, 3]]}}}
{"ceilings": {"copy": "1"}}
{"ceilings": {"copy": 1e300}}
{"device": {"name": 7}}
{"a": 1, "a": 2}
END
[ $n -ge 18 ] || fail "only $n files"
# These reports are accepted and drawn, without NaN or infinity in the drawing.
for points in '[[1,0],[2,0]]' '[[1,null],[2,null]]' '[[1e17,1],[100000000000000064,2]]' '[[1e-18,1e-18],[1e18,1e18]]' '[[1,0],[2,1e18]]' '[]' '[[1]]'; do
    echo "{\"sweeps\": {\"a\": {\"across\": \"x\", \"columns\": [\"c\"], \"points\": $points}}}" >odd.json
    timeout 20 "$GPULAB" report --from odd.json --html page.html 2>"$work/log/err" || fail "$points: exit $?: $(cat "$work/log/err")"
    grep -nE "='[^']*(nan|inf)[^a-z]" page.html && fail "$points: NaN or infinity in the drawing"
    [ "$(wc -c <page.html)" -lt 1000000 ] || fail "$points: a page of $(wc -c <page.html) bytes"
done

# Options that a command does not read, and surplus arguments, are refused.
lab_refuses "--html does not go with run" run hello --html x.html
lab_refuses "--from does not go with run" run --from run.json
lab_refuses "--markdown does not go with list" list -m
lab_refuses "--json does not go with report" report --from run.json -j
lab_refuses "list takes 0 arguments at most, not 1" list hello
lab_refuses "takes no modules" report --from run.json hello
[ -e x.html ] && fail "x.html was written"

lab_refuses "no such module" show nonsense
lab_refuses "no such module" check nonsense
lab_refuses "no such command" sing
lab_refuses "a command is needed: list, show"
lab_refuses "needs the name" show
lab_refuses "nonsense" --nonsense list
lab --help
grep -q 'check \[MODULE...\]' "$work/log/out" || fail "--help: $(cat "$work/log/out")"
