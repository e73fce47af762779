#!/bin/sh
# Tests shards with many samples: the same bytes as loose files, memory that grows by less than a line of the list for each
# sample, and the same shards after a kill and --resume. Argument: the number of samples, a multiple of 1000.
. "$(dirname "$0")/lib.sh"
many=${1:-100000}
command -v python3 >"$work/log/which" || skip "python3 is not here"

make_audio noise one.wav wav-16 1 16000 700 0.1
make_audio noise ir.wav wav-float 1 16000 61 0.2
mkdir in
python3 - "$many" <<'EOF' || fail "the shards were not made"
import io, sys, tarfile
data, many = bytearray(open("one.wav", "rb").read()), int(sys.argv[1])
for shard in range(10):
    with tarfile.open(f"in/{shard}.tar", "w") as tar:
        for i in range(shard * many // 10, (shard + 1) * many // 10):
            data[60:64] = i.to_bytes(4, "little")
            member = tarfile.TarInfo(f"s{i:06}.wav")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
EOF
batch() { # batch ARGUMENT...: sets $memory to the most KiB that were resident
    "$TOOLS/measure" "$work/memory" "$GPUCONV" batch -b cpu -q "$@" 2>"$work/log/err" || fail "batch $*: $(cat "$work/log/err")"
    memory=$(cat "$work/memory")
}
batch --inputs in/0.tar --irs ir.wav --out few --shard-size $((many / 1000))
few=$memory
batch --inputs 'in/*.tar' --irs ir.wav --out loose
batch --inputs 'in/*.tar' --irs ir.wav --out packed --shard-size $((many / 100))
echo "$many samples: $memory KiB, a tenth of them: $few KiB"
[ $(((memory - few) * 1024)) -lt $((many * 360 + 6000000)) ] || fail "memory grows: $few KiB, then $memory KiB"
[ "$(find packed -name '*.tar' | wc -l)" -eq 100 ] || fail "not 100 shards: $(ls packed)"
mkdir unpacked
for shard in packed/*.tar; do
    tar xf "$shard" -C unpacked
done
diff -rq -x '*.jsonl*' -x '*.csv' loose unpacked >"$work/log/diff" || fail "loose and packed: $(head "$work/log/diff")"
kill_once_there 1 killed 000030.tar batch -b cpu -q packed/manifest.csv --out killed --shard-size $((many / 100))
echo "killed with $(find killed -name '*.tar' | wc -l) shards"
batch packed/manifest.csv --out killed --shard-size $((many / 100)) --resume
echo "resumed: $memory KiB"
for shard in packed/*.tar; do
    cmp -s "$shard" "killed/${shard#packed/}" || fail "$shard: other bytes after --resume"
done
