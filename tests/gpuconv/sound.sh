# shellcheck shell=sh
# Sourced after lib.sh by the scripts that play: a private environment for a sound server, whose process is `$server` and
# which ends with the script.
# shellcheck disable=SC2154 # work, server and job are the script's
needs_sound() { # needs_sound PROGRAM...
    for program; do
        command -v "$program" >"$work/log/which" || skip "$program is not installed"
    done
    [ -e "$(dirname "$GPUCONV")/gpuconv-sound.so" ] || skip "this build has no sound devices"
    case $SANITIZE in
    ?*) skip "a sanitizer's findings in the sound system's libraries say nothing of ours, and it is too slow to play" ;;
    esac
    export HOME="$work/home" XDG_RUNTIME_DIR="$work/run"
    unset DISPLAY DBUS_SESSION_BUS_ADDRESS
    mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
    chmod 700 "$XDG_RUNTIME_DIR"
    trap 'kill $server 2>/dev/null; wait $server; rm -rf "$work"' EXIT # it clears away what it shares
}

# until_there NAME COMMAND...: waits until COMMAND succeeds, which needs the server, whose output is in log/server
until_there() {
    name=$1 turns=0
    shift
    until "$@" >"$work/log/there" 2>&1; do
        turns=$((turns + 1))
        [ $turns -lt 50 ] || skip "$name does not start here: $(tail -n 2 "$work/log/server")"
        sleep 0.1
    done
}

# until_job_has WHAT COMMAND...: waits until COMMAND succeeds while `$job`, whose output is in log/err, runs
until_job_has() {
    what=$1 turns=0
    shift
    until "$@" >"$work/log/there" 2>&1; do
        kill -0 "$job" 2>"$work/log/kill" || fail "ended by itself: $(cat "$work/log/err")"
        turns=$((turns + 1))
        [ $turns -lt 100 ] || fail "still without $what: $(cat "$work/log/err" "$work/log/there")"
        sleep 0.1
    done
}

# Starts a private JACK server without a device as $server.
start_jack() {
    export JACK_DEFAULT_SERVER="gpuconv$$" JACK_NO_AUDIO_RESERVATION=1
    jackd -r -n "$JACK_DEFAULT_SERVER" -d dummy -r 48000 -p 256 >"$work/log/server" 2>&1 &
    server=$!
    until_there JACK sh -c 'jack_lsp | grep -q playback_2'
}
