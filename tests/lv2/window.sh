#!/bin/sh
# Runs the test of the plug-in's window, its argument, on an X server of its own.
. "$(dirname "$0")/../gpuconv/lib.sh"
command -v Xvfb >"$work/log/which" || skip "Xvfb is not installed (Debian: xvfb)"
mkfifo number # the display that Xvfb chose
Xvfb -noreset -displayfd 3 -screen 0 1700x1000x24 -nolisten tcp 3>number >"$work/log/server" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server; rm -rf "$work"' EXIT
# shellcheck disable=SC2094 # the message reads another file
read -r display <number || fail "Xvfb does not start: $(cat "$work/log/server")"
XDG_STATE_HOME=$work/state DISPLAY=:$display "$1" || fail "the window does not do what it should"
