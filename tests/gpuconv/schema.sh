#!/bin/sh
# Every report is valid against docs/report.schema.json, and the schema rejects invalid reports.
. "$(dirname "$0")/lib.sh"
python=$(for p in /usr/bin/python3 python3; do $p -c 'import jsonschema' 2>/dev/null && echo $p && break; done)
[ -n "$python" ] || skip "no jsonschema for Python (Debian: python3-jsonschema)"

valid() { # valid REPORT
    "$python" -c 'import json, sys, jsonschema
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$SOURCE/docs/report.schema.json" "$1" \
        >"$work/log/schema" 2>&1
}
reports() { # reports ARGUMENT...
    runs "$@"
    cp "$work/log/out" report.json
    valid report.json || fail "$*: $(tail -n 25 "$work/log/schema")"
}
make_audio noise in.wav wav-16 2 44100 20000 0.1
make_audio noise ir.wav wav-float 1 48000 500 0.2
reports -q -b cpu in.wav ir.wav out.wav --report json
for change in 's/"cpu"/"abacus"/' 's/"unit": "s"/"unit": "h"/' 's/"threads": [0-9]*/"threads": -1/' 's/"wall"/"wail"/' \
    's/"why"/"because"/' 's/"input rate": 44100/"input rate": "fast"/'; do
    sed "$change" report.json >broken.json
    cmp -s report.json broken.json && fail "$change changes nothing"
    valid broken.json && fail "the schema takes $change"
done
# Every algorithm but auto; unit.options compares these words with the names of the library.
quietly "$GPUCONV" --help
algorithms=$(sed -n 's/.*--algorithm=auto|\([a-z|-]*\).*/\1/p' "$work/log/out" | tr '|' ' ')
[ -n "$algorithms" ] || fail "no algorithms in the help: $(cat "$work/log/out")"
make_audio noise matrix.wav wav-float 4 44100 500 0.1
for algorithm in $algorithms; do
    reports -q -b cpu --algorithm "$algorithm" in.wav matrix.wav out.wav --report json
    grep -q "\"algorithm\": \"$algorithm\"" report.json || fail "--algorithm $algorithm: $(cat report.json)"
done
reports -q -b cpu in.wav ir.wav out.wav --report json --compare=0.5
for change in 's/"x computing": [0-9.e-]*/"x computing": 0/' 's/"file to file s"/"whole s"/' 's/"budget"/"purse"/'; do
    sed "$change" report.json >broken.json
    cmp -s report.json broken.json && fail "$change changes nothing"
    valid broken.json && fail "the schema takes $change"
done
reports ir info ir.wav --report json
for change in 's/"channel": 1.0/"channel": "left"/' 's/"EDT s"/"EDT"/' 's/"band": 63.0/"band": 1/'; do
    sed "$change" report.json >broken.json
    cmp -s report.json broken.json && fail "$change changes nothing"
    valid broken.json && fail "the schema takes $change"
done
reports ir info ir.wav in.wav --bands third-octave --report json
reports bench -b cpu --frames 20000 --taps 100 --runs 3 --report json
reports bench rt --length 0.1 --seconds 0.2 --report json
XDG_CACHE_HOME=$work/cache reports calibrate --report json
exit 0
