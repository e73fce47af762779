#!/bin/sh
# Against JACK's dummy driver: what another client records from the command's ports is what the file gives offline.
. "$(dirname "$0")/lib.sh"

for program in jackd jack_rec jack_lsp; do
    command -v $program >"$work/log/which" || skip "$program is not installed"
done
[ -e "$(dirname "$GPUCONV")/gpuconv-sound.so" ] || skip "this build has no sound devices"
case $SANITIZE in
?*) skip "a sanitizer's findings in the sound system's libraries say nothing of ours, and it is too slow to play" ;;
esac

export HOME="$work/home" XDG_RUNTIME_DIR="$work/run" JACK_DEFAULT_SERVER="gpuconv$$" JACK_NO_AUDIO_RESERVATION=1
mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
jackd -r -n "$JACK_DEFAULT_SERVER" -d dummy -r 48000 -p 256 >"$work/log/server" 2>&1 &
server=$!
trap 'kill -9 $server 2>/dev/null; rm -rf "$work"' EXIT
turns=0
until jack_lsp >"$work/log/ports" 2>&1 && grep -q playback_2 "$work/log/ports"; do
    turns=$((turns + 1))
    [ $turns -lt 50 ] || skip "JACK does not start here: $(tail -n 2 "$work/log/server")"
    sleep 0.1
done

make_audio noise in.wav wav-float 2 48000 200000 0.2
make_audio noise ir.wav wav-float 1 48000 60000 0.004
runs -q -b cpu in.wav ir.wav offline.wav
"$GPUCONV" play -q in.wav ir.wav --output system --block 256 >"$work/log/out" 2>"$work/log/err" &
job=$!
turns=0
until jack_lsp 2>"$work/log/lsp" | grep -q '^PortAudio:out_1'; do
    kill -0 $job 2>"$work/log/kill" || fail "ended by itself: $(cat "$work/log/err")"
    turns=$((turns + 1))
    [ $turns -lt 100 ] || fail "no ports: $(jack_lsp)"
    sleep 0.05
done
jack_rec -f server.wav -d 2 -b 32 PortAudio:out_0 PortAudio:out_1 >"$work/log/rec" 2>&1 || fail "jack_rec: $(cat "$work/log/rec")"
wait $job || fail "exit $?: $(cat "$work/log/err")"
"$TOOLS/look_audio" null server.wav offline.wav -85 80000 || fail "JACK got something else"
