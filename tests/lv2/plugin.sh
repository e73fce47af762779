#!/bin/sh
# Tests the LV2 plug-in in packaged hosts: its description is valid; lv2apply with levels and predelay gives the same output
# as gpuconv; jalv restores a response from a saved state and plays through it.
. "$(dirname "$0")/../gpuconv/lib.sh"
. "$(dirname "$0")/../gpuconv/sound.sh"
LV2_PATH=$(dirname "$GPUCONV")/lv2
export LV2_PATH
bundle=$LV2_PATH/gpuconv.lv2
[ -e "$bundle/gpuconv.so" ] || skip "this build has no plug-in"
case $SANITIZE in
?*) skip "a host that is not sanitized cannot load a plug-in that is" ;;
esac
nm -D --defined-only "$bundle/gpuconv.so" | grep -v ' lv2_descriptor$' && fail "the plug-in exports more than lv2_descriptor"
if command -v sord_validate >"$work/log/which"; then
    # shellcheck disable=SC2046
    sord_validate $(find /usr/lib/lv2 -name '*.ttl') "$bundle"/*.ttl >"$work/log/out" 2>&1 || fail "$(cat "$work/log/out")"
    grep -q 'Found 0 errors' "$work/log/out" || fail "$(tail -n 5 "$work/log/out")"
fi
if command -v lv2_validate >"$work/log/which"; then
    lv2_validate "$bundle"/*.ttl >"$work/log/out" 2>&1 || fail "lv2_validate: $(cat "$work/log/out")"
    grep -q 'Found 0 errors' "$work/log/out" || fail "lv2_validate: $(tail -n 5 "$work/log/out")"
fi
for response in "$SOURCE"/impulses/*.flac; do
    name=$(basename "$response" .flac)
    cmp -s "$response" "$bundle/impulses/$name.flac" || fail "$name is not in the bundle"
    for kind in stereo mono; do
        grep -q "^<presets.ttl#$kind-$name> " "$bundle/manifest.ttl" || fail "no preset $kind-$name"
    done
done
for place in front left right behind; do
    grep -q "^<presets.ttl#space-mono-$place> " "$bundle/manifest.ttl" || fail "no preset of $place"
done
if [ -e "$bundle/gpuconv-window.so" ]; then
    nm -D --defined-only "$bundle/gpuconv-window.so" | grep ' T ' | grep -v ' lv2ui_descriptor$' && fail "the window exports more than lv2ui_descriptor"
fi
command -v lv2apply >"$work/log/which" || skip "lv2apply is not installed"
impulses=$SOURCE/impulses
make_audio noise in.wav wav-float 2 48000 150000 0.2
make_audio noise mono.wav wav-float 1 48000 150000 0.2
applied() { # applied IN PLUGIN "PORT VALUE ..." OPTION...: compares lv2apply's output with gpuconv's
    in=$1 plugin=$2 ports=$3
    shift 3
    # shellcheck disable=SC2046,SC2086
    quietly lv2apply -i "$in" -o host.wav -c freewheel 1 $(printf -- '-c %s %s ' $ports) "urn:gpuconv:$plugin" ||
        fail "lv2apply: $(cat "$work/log/err")"
    runs -q -b cpu "$in" "$impulses/hall.flac" want.wav --tail 0 "$@"
    "$TOOLS/look_audio" null host.wav want.wav -110 140000 || fail "$plugin with $ports differs from gpuconv $*"
}
placed() { # placed IN PLUGIN "PORT VALUE ..." PATH-ROW: compares lv2apply's output with gpuconv's along a path
    # shellcheck disable=SC2046,SC2086
    quietly lv2apply -i "$1" -o host.wav -c freewheel 1 $(printf -- '-c %s %s ' $3) "urn:gpuconv:$2" || fail "lv2apply: $(cat "$work/log/err")"
    echo "$4" >path.csv
    runs -q "$5" "$SOURCE/tests/sofa/head.sofa" want.wav --path path.csv --tail 0
    "$TOOLS/look_audio" null host.wav want.wav -120 140000 || fail "$2 with $3 differs from gpuconv --path"
}
placed in.wav space-stereo "azimuth 40 elevation 20 spread 90" "0, 85, 20, -5, 20" in.wav
placed mono.wav space-mono "azimuth -100 elevation -30 spread 0" "0, -100, -30" mono.wav
applied in.wav stereo "wet 0"
applied in.wav stereo "wet -60" --wet -60
applied in.wav stereo "wet -6 dry 0 predelay 20" --wet -6 --dry 0 --predelay 0.02
applied mono.wav mono "gain -12" --gain -12
applied in.wav stereo "start 0.02 length 0.9 fade 0.3" --ir-start 0.02 --ir-length 0.9 --fade 0.3
applied in.wav stereo "stretch 0.5 trim -40" --stretch 0.5 --trim -40
applied in.wav stereo "reverse 1" --reverse
applied in.wav stereo "autogain 1" --normalize energy

# jalv, with a JACK server of its own that has no device.
needs_sound jackd jack_rec jack_lsp jack_connect jalv
start_jack
mkdir state
cat >state/manifest.ttl <<END
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<state.ttl> a <http://lv2plug.in/ns/ext/presets#Preset> ; lv2:appliesTo <urn:gpuconv:stereo> ; rdfs:seeAlso <state.ttl> .
END
cat >state/state.ttl <<END
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix state: <http://lv2plug.in/ns/ext/state#> .
<> a <http://lv2plug.in/ns/ext/presets#Preset> ; lv2:appliesTo <urn:gpuconv:stereo> ;
    state:state [ <urn:gpuconv:response> "$impulses/hall-true-stereo.flac"^^<http://lv2plug.in/ns/ext/atom#Path> ] .
END
mkfifo keys
jalv -n plugin -l state urn:gpuconv:stereo <keys >"$work/log/jalv" 2>&1 &
host=$!
exec 3>keys
# jalv waits ten times for a server that has gone, 50 s in all.
trap 'exec 3>&-; kill -9 $host 2>/dev/null; kill $server 2>/dev/null; wait $host $server; rm -rf "$work"' EXIT
polls=0
until timeout 10 jack_lsp 2>"$work/log/lsp" | grep -q '^plugin:out_right'; do
    kill -0 $host 2>"$work/log/kill" || fail "jalv ended: $(cat "$work/log/jalv")"
    polls=$((polls + 1))
    [ $polls -lt 100 ] || fail "jalv shows no ports: $(timeout 10 jack_lsp) $(cat "$work/log/jalv")"
    sleep 0.05
done
grep -i 'error' "$work/log/jalv" && fail "jalv reports an error: $(cat "$work/log/jalv")"
make_audio taps dirac.wav 1 48000 1
make_audio noise long.wav wav-float 2 48000 330000 0.2
runs -q -b cpu long.wav "$impulses/hall-true-stereo.flac" offline.wav

# shellcheck disable=SC2317 # one_of_eight calls it
attempt() {
    "$GPUCONV" play -q long.wav dirac.wav --output system --block 256 >"$work/log/out" 2>"$work/log/err" &
    job=$!
    until_job_has ports sh -c 'timeout 10 jack_lsp | grep -q "^PortAudio:out_1"'
    jack_connect PortAudio:out_0 plugin:in_left || fail "not connected"
    jack_connect PortAudio:out_1 plugin:in_right || fail "not connected"
    jack_rec -f host.wav -d 4 -b 32 plugin:out_left plugin:out_right >"$work/log/rec" 2>&1 || fail "jack_rec: $(cat "$work/log/rec")"
    wait "$job"
    # The connection is made after playback has begun, so the first 2 s, in which the response builds up, are skipped.
    runs -q -b cpu dirac.wav host.wav late.wav --ir-start 2
    "$TOOLS/look_audio" null late.wav offline.wav -80 40000
}
one_of_eight attempt || fail "jalv's output differs: $(cat "$work/log/jalv")"
exit 0
