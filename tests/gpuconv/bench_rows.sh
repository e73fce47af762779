#!/bin/sh
# bench rows times rows of arrays on the CPU, forward and with both gradients, verifies every output, and tells the time of
# PyTorch and of NVIDIA's convolution only if it was measured.
. "$(dirname "$0")/lib.sh"

runs bench rows --backend cpu --runs 3 --most 256 --report json
for text in '"cpu: 3072 x 128, 768 of 128"' '"cpu: 3072 x 256, 768 of 256, half"' \
    '"cpu: 3072 x 256, 768 of 256, half, forward and both gradients"' '"of forward"' '"cpu: 4096 x 128, own 128"' '"error dB"' \
    '"of bytes"'; do
    grep -qF -- "$text" "$work/log/out" || fail "the report does not contain $text: $(cat "$work/log/out")"
done
grep -q '"cpu: [0-9]* x 512' "$work/log/out" && fail "--most does not leave out longer rows"

# A python3 without PyTorch: a note, and no column.
mkdir bin
printf '#!/bin/sh\nexit 1\n' >bin/python3
chmod +x bin/python3
PATH=$PWD/bin:$PATH runs bench rows --backend cpu --runs 3 --most 128
grep -qF 'python3 has no PyTorch' "$work/log/err" || fail "no note tells that PyTorch is missing"
grep -qF 'PyTorch ms' "$work/log/out" && fail "a time of PyTorch without PyTorch"
# A python3 that has both: five numbers, then those of the peers. Its first row has no time of NVIDIA.
printf '#!/bin/sh\necho 0.5 nan\nyes "0.5 0.25" | head -n 40\n' >bin/python3
PATH=$PWD/bin:$PATH runs bench rows --backend cpu --runs 3 --most 128 --report json
grep -c '"PyTorch ms": 500' "$work/log/out" | grep -qx 5 || fail "not every row has PyTorch's time: $(cat "$work/log/out")"
grep -c '"NVIDIA ms": 250' "$work/log/out" | grep -qx 4 || fail "not every row but the first has NVIDIA's time"
refuses 2 "takes options only" bench rows now
refuses 2 "--runs" bench rows --runs 0
exit 0
