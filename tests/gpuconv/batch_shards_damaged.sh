#!/bin/sh
# Tests shards that are damaged, and shards that cannot be completed: what can be read is done, what is lost fails with a reason,
# and no file of a killed batch stays.
. "$(dirname "$0")/lib.sh"

mkdir s in
for n in 0 1 2 3 4 5; do
    make_audio noise s/k$n.wav wav-16 1 16000 $((900 + 100 * n)) 0.1
    echo "text $n" >s/k$n.txt
done
: >s/k0.json
make_audio noise ir.wav wav-float 1 16000 61 0.2
batch 0 --inputs 's/*.wav' --irs ir.wav --out want

# Cut within a member, within a header, damaged, no tar file at all, and not readable.
(cd s && tar cf ../in/whole.tar k0.wav k0.txt k0.json k1.wav k1.txt && tar cf ../in/cut.tar k2.wav k3.wav k4.wav)
cp in/cut.tar in/header.tar
truncate -s 5000 in/cut.tar
truncate -s 2700 in/header.tar
(cd s && tar cf ../in/damaged.tar k5.wav k4.wav)
printf 'xxxxxxxx' | dd of=in/damaged.tar bs=1 seek=3584 conv=notrunc 2>"$work/log/dd"
head -c 3000 /dev/zero | tr '\0' 'x' >in/junk.tar
batch 1 --inputs 'in/*.tar' --irs ir.wav --out wet
sed 's/.*"input":"\([^"]*\)".*"status":"\([^"]*\)".*/\1 \2/' wet/results.jsonl | sort | tr '\n' ';' >"$work/log/ends"
[ "$(cat "$work/log/ends")" = "in/cut.tar failed;in/cut.tar/k2.wav done;in/cut.tar/k3.wav failed;in/damaged.tar failed;in/damaged.tar/k5.wav done;in/header.tar failed;in/header.tar/k2.wav failed;in/junk.tar failed;in/whole.tar/k0.wav done;in/whole.tar/k1.wav done;" ] ||
    fail "$(cat "$work/log/ends")"
says wet/results.jsonl 'in/cut.tar/k3.wav: is cut off' 'the rest of the shard is lost: in/junk.tar: '
for n in 0 1 2 5; do cmp want/k$n.wav wet/k$n.wav || fail "k$n.wav: other bytes"; done
# In a manifest, too.
printf 'input,response,output\nin/cut.tar/k2.wav,ir.wav,a.wav\nin/cut.tar/k4.wav,ir.wav,b.wav\n' >list.csv
batch 1 list.csv --out listed
cmp want/k2.wav listed/a.wav || fail "the member before the cut"
says listed/results.jsonl 'in/cut.tar/k4.wav: the shard has no such member, or it is lost: '

# Sparse members, links, empty members: none vanishes without a word.
mkdir odd
cp s/k1.wav odd/sparse.wav && truncate -s 300000 odd/sparse.wav
cp s/k2.wav odd/file.wav && ln odd/file.wav odd/hard.wav && ln -s file.wav odd/symbolic.wav && : >odd/empty.wav && mkfifo odd/fifo.wav
ln -s file.wav odd/file.txt
(cd odd && tar -S -cf ../odd.tar file.wav file.txt hard.wav sparse.wav symbolic.wav empty.wav fifo.wav)
batch 1 --inputs odd.tar --irs ir.wav --out oddly --shard-size 10
[ "$(tar tf oddly/000000.tar | tr '\n' ' ')" = "file.wav hard.wav " ] || fail "$(tar tf oddly/000000.tar)"
for name in sparse symbolic empty fifo; do
    grep -q "\"output\":\"$name.wav\",\"status\":\"failed\"" oddly/results.jsonl || fail "$name: $(cat oddly/results.jsonl)"
done
says oddly/results.jsonl "odd.tar/sparse.wav: is stored sparsely" "odd.tar/symbolic.wav: is a symbolic link"
says "$work/log/err" "file.txt: is not copied into the shards"
tar xf oddly/000000.tar
cmp hard.wav want/k2.wav || fail "a hard link: other bytes"
# Empty members of a sample are copied; a member does not replace an output of its name.
batch 0 --inputs in/whole.tar --irs ir.wav --out empty --shard-size 2
[ "$(tar tf empty/000000.tar | tr '\n' ' ')" = "k0.wav k0.txt k0.json k1.wav k1.txt " ] || fail "$(tar tf empty/000000.tar)"
printf 'input,response,output,format\nin/whole.tar/k0.wav,ir.wav,k0.flac,\nin/whole.tar/k1.wav,ir.wav,k0.txt,wav\n' >names.csv
batch 0 names.csv --out named --shard-size 2
mkdir out && tar xf named/000000.tar -C out
cmp out/k0.txt want/k1.wav || fail "a text replaced an output"

# The second output does not stay when a batch was killed while it removed the files of a complete shard.
batch 0 --inputs 's/k[012].wav' --irs ir.wav --early 20 --out early --shard-size 3
cp -r early early_before
mkdir loose && tar xf early/000000.tar -C loose
cp loose/k2.early.wav early
batch 0 early/manifest.csv --out early --shard-size 3 --resume
says "$work/log/err" "3 done before"
diff -r early_before early || fail "files of a complete shard stay"

# An older file with the name of an output that fails is neither packed nor removed.
printf 'input,response,output\ns/k0.wav,ir.wav,a.wav\nmissing.wav,ir.wav,b.wav\n' >fails.csv
mkdir stale && echo old >stale/b.wav
batch 1 fails.csv --out stale --shard-size 2
[ "$(tar tf stale/000000.tar)" = a.wav ] || fail "an older file was packed: $(tar tf stale/000000.tar)"
[ "$(cat stale/b.wav)" = old ] || fail "an older file was removed"

# A disk that is full when a shard is written: the reason is told, the outputs stay, and --resume completes the batch.
if unshare -m true 2>"$work/log/unshare"; then
    cat >"$work/log/full.sh" <<'END'
mount -t tmpfs -o size=64k tmpfs full || exit 77
"$GPUCONV" batch -b cpu -q --inputs 's/*.wav' --irs ir.wav --out full --shard-size 6 2>"$work/log/err"
status=$?
cp -r full after
exit $status
END
    mkdir full
    for n in 0 1 2 3 4 5; do make_audio noise s/k$n.wav wav-16 1 16000 2600 0.1; done
    export GPUCONV work
    unshare -m sh "$work/log/full.sh" 2>"$work/log/mount"
    status=$?
    if [ $status -ne 77 ]; then
        [ $status -eq 1 ] || fail "a full disk: exit $status: $(cat "$work/log/err")"
        says "$work/log/err" "full/000000.tar: No space left on device"
        [ "$(find after -name '*.wav' | wc -l)" -eq 6 ] || fail "outputs are lost: $(ls -A after)"
        [ -z "$(find after -name '*.tar' -o -name '.gpuconv-*')" ] || fail "left: $(ls -A after)"
        batch 0 after/manifest.csv --out after --shard-size 6 --resume
        [ "$(tar tf after/000000.tar | wc -l)" -eq 6 ] || fail "--resume: $(ls -A after)"
    fi
fi
exit 0
