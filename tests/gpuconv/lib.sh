# shellcheck shell=sh
# Sourced by every script here. Each script runs in a new folder with two parts: files/, where the command works and which a
# failed run must not change, and log/ for its output.
#
# From the environment: GPUCONV, the command; TOOLS, the folder of make_audio and other tools; SOURCE, the checkout;
# SANITIZE, the sanitizers that the command was built with.
set -u
: "${GPUCONV:?the path of the gpuconv command}" "${TOOLS:?the folder of the test tools}"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Reports a test that cannot run on this machine as skipped.
skip() {
    echo "SKIPPED: $*" >&2
    exit 77
}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/files" "$work/log" && cd "$work/files" || exit 1

make_audio() {
    "$TOOLS/make_audio" "$@" || fail "make_audio $*"
}

# Prints the names and contents of all files in the folder, hidden ones too.
state() {
    find . -exec ls -nd --time-style=+ {} + | sort
    find . -type f -size -100M -exec cksum {} + 2>&1 | sort
}

# runs ARGUMENT...: runs gpuconv, which must exit with 0
runs() {
    "$GPUCONV" "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq 0 ] || fail "gpuconv $*: exit $status: $(cat "$work/log/err")"
}

# batch STATUS ARGUMENT...: runs gpuconv batch on the CPU, which must exit with the status
batch() {
    want=$1
    shift
    timeout -k 5 300 "$GPUCONV" batch -b cpu "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq "$want" ] || fail "batch $*: exit $status instead of $want: $(cat "$work/log/err")"
}

# says FILE TEXT...: the file must contain each text
says() {
    file=$1
    shift
    for text; do
        grep -qF -- "$text" "$file" || fail "$file does not contain '$text': $(head -c 2000 "$file")"
    done
}

# about PATH TEXT: look_audio must print this text for the file
about() {
    said=$("$TOOLS/look_audio" about "$1") || fail "$1 cannot be read"
    [ "$said" = "$2" ] || fail "$1 is '$said', not '$2'"
}

# one_line TEXT: standard error must be one line that begins with the program's name and contains the text
one_line() {
    [ "$(wc -l <"$work/log/err")" -eq 1 ] || fail "standard error is not one line: $(cat "$work/log/err")"
    grep -q '^gpuconv: ' "$work/log/err" || fail "does not begin with 'gpuconv: ': $(cat "$work/log/err")"
    grep -qF -- "$1" "$work/log/err" || fail "does not say '$1': $(cat "$work/log/err")"
}

# await_files NUMBER FOLDER NAME: waits until FOLDER holds at least NUMBER files that match NAME, or the process $pid has ended
await_files() {
    while [ "$(find "$2" -name "$3" 2>"$work/log/find" | wc -l)" -lt "$1" ] && kill -0 "$pid" 2>"$work/log/kill"; do
        sleep 0.01
    done
}

# kill_once_there NUMBER FOLDER NAME ARGUMENT...: runs gpuconv, and kills it when FOLDER holds NUMBER files that match NAME
kill_once_there() {
    number=$1 folder=$2 name=$3
    shift 3
    "$GPUCONV" "$@" >"$work/log/out" 2>"$work/log/err" &
    pid=$!
    await_files "$number" "$folder" "$name"
    kill -9 $pid 2>"$work/log/kill"
    wait $pid 2>"$work/log/wait"
}

# catches PID: returns whether the process catches SIGINT
catches() {
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>"$work/log/status")
    [ -n "$caught" ] && [ $((0x${caught#????????} & 2)) -ne 0 ]
}

# ends_by SIGNAL PID: sends a child the signal 0.2 s after it began to catch signals, waits for its end, at most 60 s, and sets
# $status.
ends_by() {
    (sleep 60 && kill -9 "$2") >"$work/log/guard" 2>&1 &
    guard=$!
    until catches "$2" || ! kill -0 "$2" 2>"$work/log/kill"; do
        sleep 0.02
    done
    sleep 0.2
    kill -s "$1" "$2" 2>"$work/log/kill"
    wait "$2"
    status=$?
    kill $guard 2>"$work/log/kill"
}

# Runs the command that follows with its output in log/.
quietly() {
    "$@" >"$work/log/out" 2>"$work/log/err"
}

# refuses STATUS TEXT ARGUMENT...: gpuconv must exit with this status, print one line with the text and nothing on standard
# output, and leave the folder unchanged; tested without and with an older out.wav; only with it under a
# sanitizer, which sees the same code, and for a wrong command line (status 2), which opens no file.
refuses() {
    want=$1 says=$2
    shift 2
    ages='no yes'
    if [ "$want" -eq 2 ] || [ -n "${SANITIZE-}" ]; then ages=yes; fi
    for older in $ages; do
        if [ "$older" = yes ] && [ ! -e out.wav ]; then
            echo "an older output" >out.wav
            made=yes
        else
            made=no
        fi
        before=$(state)
        quietly "$GPUCONV" "$@"
        status=$?
        [ "$status" -eq "$want" ] || fail "gpuconv $*: exit $status instead of $want: $(cat "$work/log/err")"
        one_line "$says"
        [ -s "$work/log/out" ] && fail "gpuconv $*: standard output: $(cat "$work/log/out")"
        [ "$(state)" = "$before" ] || fail "gpuconv $*: changed the folder: $(ls -lA)"
        [ "$made" = yes ] && rm out.wav
    done
    echo "exit $want: $(cat "$work/log/err")"
}

# told_done FOLDER: prints the outputs that the results of a batch report as done, with inode and time, sorted. A line that was
# cut off when the batch was killed reports nothing.
told_done() {
    sed -n 's/.*"output":"\([^"]*\)","status":"done".*}$/\1/p' "$1/results.jsonl" | sort -u |
        while read -r name; do stat -c '%n %i %y' "$1/$name"; done | sort
}
