# shellcheck shell=sh
# Sourced by every script here. Each runs in a fresh folder of its own, with two parts: files/, where the command works
# and which a failed run must leave as it was, and log/, where its words go.
#
# From the environment: GPUCONV, the command; TOOLS, the folder of make_audio and its like; SOURCE, the checkout;
# SANITIZE, the sanitizers that the command was built with.
set -u
: "${GPUCONV:?the path of the gpuconv command}" "${TOOLS:?the folder of the test tools}"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# What cannot be tested here is said aloud and counts as skipped.
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

# Every name and every byte of the folder, hidden files too.
state() {
    find . -exec ls -nd --time-style=+ {} + | sort
    find . -type f -size -100M -exec cksum {} + 2>&1 | sort
}

# runs ARGUMENT...: exit 0
runs() {
    "$GPUCONV" "$@" >"$work/log/out" 2>"$work/log/err"
    status=$?
    [ "$status" -eq 0 ] || fail "gpuconv $*: exit $status: $(cat "$work/log/err")"
}

# about PATH TEXT: what look_audio says of a file
about() {
    said=$("$TOOLS/look_audio" about "$1") || fail "$1 cannot be read"
    [ "$said" = "$2" ] || fail "$1 is '$said', not '$2'"
}

# one_line TEXT: standard error is one line, begins with the program's name and holds the text
one_line() {
    [ "$(wc -l <"$work/log/err")" -eq 1 ] || fail "standard error is not one line: $(cat "$work/log/err")"
    grep -q '^gpuconv: ' "$work/log/err" || fail "does not begin with 'gpuconv: ': $(cat "$work/log/err")"
    grep -qF -- "$1" "$work/log/err" || fail "does not say '$1': $(cat "$work/log/err")"
}

# Runs what follows it with the command's words going to log/.
quietly() {
    "$@" >"$work/log/out" 2>"$work/log/err"
}

# refuses STATUS TEXT ARGUMENT...: this exit status, one line with the text, nothing on standard output, and the folder as
# it was; once without an older out.wav and once with one.
refuses() {
    want=$1 says=$2
    shift 2
    for older in no yes; do
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
