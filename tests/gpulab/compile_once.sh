# shellcheck shell=sh
# Sets CXX to a script that stands for g++ in tests of the emulator, and compiles what is the same for every kernel once:
# the header, which becomes a precompiled one, and the hooks. clang++ is used as it is.
[ -n "${CXX:-}" ] || ! command -v g++ >/dev/null || {
    # shellcheck disable=SC2154
    mkdir "$work/compiled"
    cat >"$work/compiled/c++" <<'END'
#!/bin/sh
set -eu
compiled=$(dirname "$0")
# compile_as FILE OUTPUT ARGUMENT...: compiles FILE alone with the options of the arguments, if OUTPUT is not there
compile_as() {
    file=$1 output=$2 before=
    shift 2
    [ ! -e "$output" ] || return 0
    for argument; do
        shift
        case $before/$argument in
        -include/* | -o/* | */-include | */-o | */-c | */-shared | */-Wl,* | */*.o | */*.cpp) ;;
        *) set -- "$@" "$argument" ;;
        esac
        before=$argument
    done
    g++ "$@" -c "$file" -o "$output.$$" && mv "$output.$$" "$output"
}
case " $* " in
*" kernel.cpp "*)
    compile_as cuda.hpp "$compiled/cuda.hpp.gch" "$@"
    ln -s "$compiled/cuda.hpp.gch" cuda.hpp.gch
    status=0
    g++ "$@" || status=$?
    rm cuda.hpp.gch
    exit $status
    ;;
*" hooks.cpp "*)
    compile_as hooks.cpp "$compiled/hooks.o" "$@"
    for argument; do
        shift
        [ "$argument" != hooks.cpp ] || argument=$compiled/hooks.o
        set -- "$@" "$argument"
    done
    ;;
esac
exec g++ "$@"
END
    chmod +x "$work/compiled/c++"
    CXX=$work/compiled/c++
    export CXX
}
