#!/bin/sh
# Tests gpulab try without a GPU: libraries that a C compiler made stand for compiled kernels and run on the host. Each
# fault is told; the source's name never becomes part of a command; nothing is left in the folder for temporary files.
. "$(dirname "$0")/../gpuconv/lib.sh"
GPULAB=$(dirname "$GPUCONV")/gpulab
"$GPULAB" device 2>&1 | grep -q multiprocessors && {
    echo "skipped: this machine has a GPU, and kernels run there"
    exit 77
}
TMPDIR=$PWD/tmp
export TMPDIR
mkdir tmp

# library NAME BODY: compiles a function of vector-add with the statements BODY
library() {
    cat >"$1.c" <<END
#include <math.h>
#include <stdint.h>
#include <unistd.h>
int gpulab_solve(void *const *buffer, const int64_t *size, void *stream) {
    const float *a = buffer[0], *b = buffer[1];
    float *c = buffer[2];
    int64_t n = size[0];
    (void)stream;
    $2
    return 0;
}
END
    ${CC:-cc} -shared -fPIC -o "$1.so" "$1.c" || fail "$1 does not compile"
}
# said STATUS TEXT ARGUMENT...: runs gpulab try, which must exit with STATUS and print TEXT (without its line breaks)
said() {
    status=$1 text=$2
    shift 2
    "$GPULAB" try "$@" >"$work/log/out" 2>&1
    got=$?
    [ $got -eq "$status" ] || fail "try $*: exit $got instead of $status: $(cat "$work/log/out")"
    tr -s ' \n' '  ' <"$work/log/out" | grep -qF -- "$text" || fail "try $*: does not print '$text': $(cat "$work/log/out")"
    [ -z "$(ls tmp)" ] || fail "try $*: left $(ls tmp)"
}
all='for (int64_t i = 0; i < n; i++)'
library right "$all c[i] = a[i] + b[i];"
library wrong "$all c[i] = a[i] - b[i];"
library short "for (int64_t i = 0; i < n / 256 * 256; i++) c[i] = a[i] + b[i];"
library nan "$all c[i] = i == 5 ? NAN : a[i] + b[i];"
library outside "for (int64_t i = 0; i <= n; i++) c[i] = i < n ? a[i] + b[i] : 1;"
library before "for (int64_t i = -2; i < n; i++) c[i] = i >= 0 ? a[i] + b[i] : 1;"
library unsteady "static int run; run++; $all c[i] = a[i] + b[i] + (run == 2);"
library crash '_exit(3);'
library refused "return 9;"
library endless "for (;;) pause();"
said 0 "right.so is right at every size up to 1048576" vector-add right.so
said 1 "at size 1: it is wrong. c[0] is" vector-add wrong.so
said 1 "c[0] was never written" vector-add short.so
said 1 "1 are NaN" vector-add nan.so
said 1 "c[1] was written, but c has 1 elements" vector-add outside.so
said 1 "c[-1] was written" vector-add before.so
said 1 "Two runs gave different results" vector-add unsteady.so
said 1 "ended the process" vector-add crash.so
said 1 "it fails" vector-add refused.so
said 1 "a block has 1 to 1024 threads" vector-add refused.so
said 1 "does not end" vector-add endless.so --quick

# Sources: a compiler that stands in for nvcc records its arguments and its folder.
cat >nvcc <<'END'
#!/bin/sh
printf '%s\n' "$@" >"$RECORD"
cat student.cu >>"$RECORD"
cp "$READY" student.so 2>/dev/null || { echo 'student.cu(1): error: expected a ";"'; exit 2; }
END
cat >host <<'END'
#!/bin/sh
printf '%s\n' "$@" >>"$RECORD.host"
exit 1
END
chmod +x nvcc host
CUDACXX=$PWD/nvcc CXX=$PWD/host RECORD=$PWD/record READY=$PWD/none
export CUDACXX CXX RECORD READY
# shellcheck disable=SC2016 # a name, not a command
for name in plain.cu ' a b.cu' '$(touch pwned).cu' '-o.cu' "it's\"; touch pwned; \".cu"; do
    echo "// source $name" >"./$name"
    said 1 "does not compile" vector-add -- "$name"
    grep -qxF -- student.cu record || fail "$name: $(cat record)"
    grep -qF -- "// source $name" record || fail "$name was not compiled: $(cat record)"
    head -n 16 record | grep -qF -- "$name" && fail "$name is an argument: $(cat record)"
    grep -qxF -- kernel.cpp record.host || fail "not compiled for the emulator: $(cat record.host)"
    grep -qF -- "$name" record.host && fail "$name is an argument: $(cat record.host)"
done
[ -e pwned ] && fail "a file's name was run"
READY=$PWD/right.so
said 1 "plain.cu compiles for compute capability 7.5. It was not run" vector-add plain.cu
grep -qF "NVIDIA H200" "$work/log/out" || fail "no recorded ladder: $(cat "$work/log/out")"
CXX=$PWD/missing CUDACXX=$PWD/missing PATH=/nonexistent CUDA_PATH=/nonexistent "$GPULAB" try vector-add plain.cu >"$work/log/out" 2>&1 &&
    fail "without a compiler: exit 0"
grep -q 'no C++ compiler was found' "$work/log/out" || fail "without a compiler: $(cat "$work/log/out")"

# Files to begin with, and wrong uses.
said 0 "hello.cu: written" hello --start
grep -q '^void solve(int \*ids, int64_t blocks, int64_t threads, cudaStream_t stream) {' hello.cu || fail "$(cat hello.cu)"
said 1 "File exists" hello --start
said 0 "convolution-registers" --list
said 0 "Hints:" convolution-registers
said 2 "no such exercise" nonsense my.cu
said 2 "has no output that could be checked" bank-conflicts my.cu
said 1 "missing.cu: cannot be read" vector-add missing.cu
said 1 "not a file" vector-add tmp
said 2 "try needs an exercise"
