# shellcheck shell=sh
# Sourced after lib.sh by the scripts that play: starts a private sound server, `$server`, which ends with the script.
# shellcheck disable=SC2154 # the script sets work, server and job
needs_sound() { # needs_sound PROGRAM...
    for program; do
        command -v "$program" >"$work/log/which" || skip "$program is not installed"
    done
    [ -e "$(dirname "$GPUCONV")/gpuconv-sound.so" ] || skip "this build has no sound devices"
    case $SANITIZE in
    ?*) skip "sanitizers report errors in the sound system's libraries and are too slow for playing" ;;
    esac
    export HOME="$work/home" XDG_RUNTIME_DIR="$work/run"
    unset DISPLAY DBUS_SESSION_BUS_ADDRESS
    mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
    chmod 700 "$XDG_RUNTIME_DIR"
    trap 'kill $server 2>/dev/null; wait $server; rm -rf "$work"' EXIT # ends before its files are removed
}

# until_there NAME COMMAND...: waits until the command succeeds, at most five seconds; skips the test if the server, which logs
# to log/server, does not start
until_there() {
    name=$1 tries=0
    shift
    until "$@" >"$work/log/there" 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 50 ] || skip "$name does not start here: $(tail -n 2 "$work/log/server")"
        sleep 0.1
    done
}

# until_job_has WHAT COMMAND...: waits until the command succeeds, at most ten seconds; fails if `$job`, which logs to log/err,
# ends before
until_job_has() {
    what=$1 tries=0
    shift
    until "$@" >"$work/log/there" 2>&1; do
        kill -0 "$job" 2>"$work/log/kill" || fail "ended by itself: $(cat "$work/log/err")"
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "still without $what: $(cat "$work/log/err" "$work/log/there")"
        sleep 0.1
    done
}

# one_of_eight COMMAND...: a busy machine may drop a block, so one of eight attempts must succeed.
one_of_eight() {
    for number in 1 2 3 4 5 6 7 8; do
        "$@" && return 0
        echo "attempt $number of '$*' failed"
    done
    return 1
}

# Starts a private JACK server without a device, as $server. It waits five seconds for a client before it drops it: a busy
# machine takes longer than the default of half a second.
start_jack() {
    export JACK_DEFAULT_SERVER="gpuconv$$" JACK_NO_AUDIO_RESERVATION=1
    jackd -r -t 5000 -n "$JACK_DEFAULT_SERVER" -d dummy -r 48000 -p 256 >"$work/log/server" 2>&1 &
    server=$!
    until_there JACK sh -c 'timeout 10 jack_lsp | grep -q playback_2'
}

# Starts a private PipeWire with its session manager, which needs a bus: the script runs again within one.
start_pipewire() {
    if [ -z "${GPUCONV_TEST_BUS-}" ] && command -v dbus-run-session >"$work/log/which"; then
        rm -rf "$work"
        cd / && GPUCONV_TEST_BUS=1 exec dbus-run-session -- sh "$0"
    fi
    bus=${DBUS_SESSION_BUS_ADDRESS-}
    needs_sound pipewire wireplumber pw-cli pw-link pw-metadata pw-record pw-play
    [ -e "$(dirname "$GPUCONV")/gpuconv-pipewire.so" ] || skip "this build has no PipeWire"
    [ -n "$bus" ] || skip "dbus-run-session is not installed"
    export DBUS_SESSION_BUS_ADDRESS="$bus"
    pipewire >"$work/log/server" 2>&1 &
    server=$!
    wireplumber >"$work/log/manager" 2>&1 &
    manager=$!
    trap 'kill $manager $server 2>/dev/null; wait; rm -rf "$work"' EXIT
    until_there PipeWire pw-cli info 0
    quietly pw-metadata -n settings 0 clock.force-quantum 2048 # fewer blocks are late on a busy machine
}

# add_node NAME CLASS [PROPERTY]: adds a null device of two channels to PipeWire, and waits until it has its ports
add_node() {
    pw-cli create-node adapter "{ factory.name=support.null-audio-sink node.name=$1 media.class=$2 object.linger=true
        audio.position=[FL FR] ${3-} }" >"$work/log/node" 2>&1
    until_there "$1" sh -c "pw-link -io | grep -q '^$1:.*_FL'"
}

# records_while RATE COMMAND...: records the monitor of the sink `first` into monitor.wav while the command runs
records_while() {
    pw-record -P '{ stream.capture.sink=true }' --target first --rate "$1" --channels 2 --format f32 monitor.wav &
    recorder=$!
    shift
    sleep 0.3
    "$@"
    sleep 0.2
    kill -INT "$recorder"
    wait "$recorder"
}
