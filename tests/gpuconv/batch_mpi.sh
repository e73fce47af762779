#!/bin/sh
# Tests a batch of several ranks: the same bytes as from one process, each entry once; --resume completes a batch of which
# a rank was killed.
. "$(dirname "$0")/lib.sh"

command -v mpirun >"$work/log/which" || skip "mpirun is not installed"
[ -e "$(dirname "$GPUCONV")/gpuconv-mpi.so" ] || skip "this build has no MPI"
case $SANITIZE in
?*) skip "sanitizers report errors in MPI's own libraries" ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_hwloc_base_binding_policy=none

# ranks NUMBER ARGUMENT...: runs gpuconv on ranks; more than two minutes are a hang
ranks() {
    number=$1
    shift
    quietly timeout -k 5 120 mpirun -n "$number" "$GPUCONV" "$@"
    ended=$?
    case $ended in
    124 | 137) fail "$number ranks hang: $*" ;;
    esac
    return $ended
}

# ranks_to_kill ARGUMENT...: runs gpuconv on three ranks, one of which is to be killed. Open MPI's mpirun can then wait for
# itself for ever when all ranks are gone (a lock in PMIx_server_finalize, about once in a hundred times): it is ended.
ranks_to_kill() {
    quietly timeout -k 1 20 mpirun -n 3 "$GPUCONV" "$@"
}

# last_rank ARGUMENT...: prints the process number of the rank with these arguments that was started last
last_rank() {
    pgrep -f "^$GPUCONV $*" | tail -n 1
}

make_audio noise in.wav wav-16 1 16000 9000 0.1
make_audio noise longer.wav wav-16 2 16000 70000 0.1
make_audio noise ir.wav wav-float 1 16000 2000 0.1
{
    echo "input,response,output"
    n=0
    while [ $n -lt 600 ]; do
        echo "$([ $((n % 5)) -eq 0 ] && echo longer || echo in).wav,ir.wav,$((n % 7))/t$n.wav"
        n=$((n + 1))
    done
    echo "none.wav,ir.wav,bad.wav"
} >list.csv
status=0
quietly "$GPUCONV" batch -b cpu list.csv --out one || status=$?
[ "$status" -eq 1 ] || fail "one process: $(cat "$work/log/err")"
for ranks in 2 4 8; do
    ranks $ranks batch -b cpu --workers 1 list.csv --out r$ranks && fail "$ranks ranks: exit 0 although an entry failed"
    diff -rq -x results.jsonl one r$ranks || fail "$ranks ranks: other bytes than from one process"
    [ "$(wc -l <r$ranks/results.jsonl)" -eq 601 ] || fail "$ranks ranks: $(wc -l <r$ranks/results.jsonl) results: $(cat "$work/log/err")"
    [ "$(sed 's/.*"output":"//; s/".*//' r$ranks/results.jsonl | sort -u | wc -l)" -eq 601 ] || fail "$ranks ranks: an entry has two results"
    grep -q '1 failed' "$work/log/err" || fail "$ranks ranks: $(cat "$work/log/err")"
done

# The first rank fails before it answers the others.
mkdir -p refused/results.jsonl
ranks 3 batch -b cpu list.csv --out refused && fail "results.jsonl is a folder: exit 0"
grep -q 'results.jsonl: is a directory' "$work/log/err" || fail "not told: $(cat "$work/log/err")"

# All ranks of a job share the lock of the folder, which keeps another batch out.
sed '$d' list.csv >good.csv
ranks 3 batch -b cpu --workers 1 good.csv --out locked &
pid=$!
await_files 3 locked 't*.wav'
held=$(pgrep -f "^$GPUCONV batch -b cpu --workers 1 good.csv --out locked")
# shellcheck disable=SC2086 # several processes
kill -STOP $held || fail "the batch has ended: $(cat "$work/log/err")"
"$GPUCONV" batch -b cpu list.csv --out locked >"$work/log/other" 2>&1 && fail "two batches in one folder"
grep -q "another batch writes into this folder (process [0-9]* on $(uname -n))" "$work/log/other" || fail "$(cat "$work/log/other")"
# shellcheck disable=SC2086
kill -CONT $held
wait $pid || fail "ranks that share a lock: $(cat "$work/log/err")"
diff -rq -x results.jsonl -x bad.wav one locked || fail "ranks that share a lock: other bytes"
[ ! -e locked/.gpuconv-lock ] || fail "the lock's file stays"
rm -r locked

# Shards of several ranks; an older file with the name of an output that fails is not packed.
mkdir packed && echo old >packed/bad.wav
sed '5,$d' list.csv >few.csv && echo "none.wav,ir.wav,bad.wav" >>few.csv
ranks 3 batch -b cpu --workers 1 few.csv --out packed --shard-size 4 && fail "exit 0 although an entry failed"
[ "$(tar tf packed/000000.tar | wc -l)" -eq 3 ] || fail "packed: $(tar tf packed/000000.tar)"
[ "$(cat packed/bad.wav)" = old ] || fail "an older file was removed"

# One of three ranks is killed.
sed -i '$d' list.csv
ranks_to_kill batch -b cpu -q --workers 1 list.csv --out killed &
pid=$!
await_files 30 killed 't*.wav'
victim=$(last_rank batch -b cpu -q --workers 1 list.csv --out killed)
kill -9 "$victim" 2>"$work/log/kill"
wait $pid
told_done killed >"$work/log/before"
echo "$(wc -l <"$work/log/before") of 600 done when a rank was killed"
ranks 3 batch -b cpu --workers 1 list.csv --out killed --resume || fail "--resume: $(cat "$work/log/err")"
rm -f one/results.jsonl
diff -rq -x results.jsonl one killed || fail "--resume: other bytes"
told_done killed >"$work/log/after"
[ "$(comm -23 "$work/log/before" "$work/log/after" | wc -l)" -eq 0 ] || fail "an entry was done twice"
