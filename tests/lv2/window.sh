#!/bin/sh
# Runs the test of the plug-in's window, its argument, on an X server of its own.
. "$(dirname "$0")/../gpuconv/lib.sh"
command -v Xvfb >"$work/log/which" || skip "Xvfb is not installed (Debian: xvfb)"
mkfifo number
Xvfb -displayfd 3 -screen 0 1000x600x24 -nolisten tcp 3>number >"$work/log/server" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server; rm -rf "$work"' EXIT
read -r number <number || fail "Xvfb does not start: $(cat "$work/log/server")"
DISPLAY=:$number "$1" || fail "the window does not do what it should"
