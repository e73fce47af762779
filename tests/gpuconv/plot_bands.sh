#!/bin/sh
# The drawing of gpuconv ir info --plot-bands shows the figures of the CSV: mean and standard deviation over all positions,
# the just noticeable difference, and every position. The single numbers are means over bands of the CSV.
. "$(dirname "$0")/lib.sh"
command -v gnuplot >"$work/log/which" || skip "no gnuplot"
gnuplot=$(cat "$work/log/which")
for k in 1 2 3; do
    runs ir synth room room$k.wav --rate 16000 --size 7x5x3 --rt60 0.$((k + 3)) --channels 2 --seed $k
done
mkdir "$work/spy"
cat >"$work/spy/gnuplot" <<END
#!/bin/sh
cat /dev/stdin >"$work/log/script"
exec "$gnuplot" -d "$work/log/script"
END
chmod +x "$work/spy/gnuplot"

# compare POSITIONS COLUMN PANEL KIND NOTICEABLE: reads the CSV, then the blocks of data of the script
compare() {
    awk -v positions="$1" -v column="$2" -v panel="$3" -v relative="$4" -v noticeable="$5" '
        function near(what, got, want) {
            if (!(got - want <= 1e-5 * (want < 0 ? -want : want) + 1e-6 && want - got <= 1e-5 * (want < 0 ? -want : want) + 1e-6)) {
                print what " at " band[b] " Hz: " got " drawn, " want " in the CSV"
                exit bad = 1
            }
        }
        FNR == NR && FNR == 1 { n = split($0, name, ","); for (i = 1; i <= n; i++) at[name[i]] = i; next }
        FNR == NR { split($0, cell, ","); if (cell[at["band"]] == "") next
            b = cell[at["band"]]; if (!(b in count)) band[++bands] = b
            x = cell[at[column]]; values[b, ++count[b]] = x; sum[b] += x; squares[b] += x * x; next }
        /^e$/ { block++; row = 0; next }
        /^[0-9.]+ [-0-9.e]+ [-0-9.e]+ [-0-9.e]+$/ {
            own = block - panel * (positions + 1 + (positions > 1))
            if (own < 0 || own > positions + (positions > 1)) next
            b = ++row; hz = band[b]; mean = sum[hz] / positions; checked++
            deviation = positions > 1 ? sqrt((squares[hz] - positions * mean * mean) / (positions - 1)) : 0
            if ($1 != hz) { print "not " hz " Hz but " $1; exit bad = 1 }
            if (own == 0) {
                near("low edge", $3, mean - noticeable * (relative ? mean : 1)); near("high edge", $4, mean + noticeable * (relative ? mean : 1))
            } else if (own <= positions) {
                near("position " own, $2, values[hz, own])
            } else {
                near("mean", $2, mean); near("mean - s.d.", $3, mean - deviation); near("mean + s.d.", $4, mean + deviation)
            }
        }
        END { if (!bad && checked != bands * (positions + 1 + (positions > 1))) { print checked " values were compared"; bad = 1 } exit bad }
    ' "$work/log/csv" "$work/log/script" || fail "$2 of $1 positions"
}

kinds='octave third-octave'
[ -z "$SANITIZE" ] || kinds=octave # third-octaves differ in numbers only
for bands in $kinds; do
    for files in "room1.wav room2.wav room3.wav" room2.wav; do
        # shellcheck disable=SC2086 # word splitting is intended
        runs ir info $files --bands $bands --csv
        cp "$work/log/out" "$work/log/csv"
        # shellcheck disable=SC2086
        quietly env "PATH=$work/spy:$PATH" "$GPUCONV" ir info $files --bands $bands --plot-bands bands.svg || fail "exit $?"
        positions=$(($(echo "$files" | wc -w) * 2))
        compare $positions "T20 s" 0 1 0.05
        compare $positions "T30 s" 1 1 0.05
        compare $positions "EDT s" 2 1 0.05
        compare $positions "C80 dB" 3 0 1
        compare $positions "D50 %" 4 0 5
        compare $positions "energy dB" 5 0 1
    done
done
runs ir info room1.wav --lateral 2 --csv
grep -v ',2,' "$work/log/out" >"$work/log/csv" # the figure-eight microphone is no position
quietly env "PATH=$work/spy:$PATH" "$GPUCONV" ir info room1.wav --lateral 2 --plot-bands bands.svg || fail "exit $?"
compare 1 "T30 s" 1 1 0.05

# T mid and bass ratio are those of the CSV, in both kinds of bands.
for bands in octave third-octave; do
    runs ir info room1.wav --bands $bands --csv
    cp "$work/log/out" "$work/log/csv"
    runs ir info room1.wav --bands $bands
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["channel"] == 1 && $at["band"] >= 100 && $at["band"] < 354 { low += $at["T30 s"]; lows++ }
        $at["channel"] == 1 && $at["band"] >= 354 && $at["band"] < 1414 { mid += $at["T30 s"]; mids++ }
        END { printf "%.4g %.4g\n", mid / mids, low / lows / (mid / mids) }' "$work/log/csv" >"$work/log/wanted"
    awk '/^single numbers/ { here = 1; next } here { printf "%.4g %.4g\n", $3, $4; exit }' "$work/log/out" >"$work/log/got"
    cmp "$work/log/wanted" "$work/log/got" || fail "$bands: T mid and bass ratio are $(cat "$work/log/got"), not $(cat "$work/log/wanted")"
done

# --bands third-octave draws third-octaves; more than four files are told; without bands there is no drawing of them.
quietly env "PATH=$work/spy:$PATH" "$GPUCONV" ir info room1.wav --bands third-octave --plot third.svg || fail "exit $?"
bands=$(grep -c ',1,[0-9.][0-9.]*,' "$work/log/csv")
drawn=$(sed -n 's/^plot //p' "$work/log/script" | sed -n 2p | tr ',' '\n' | grep -c "using")
[ "$drawn" -eq "$bands" ] || fail "$drawn decays are drawn for $bands third-octaves"
# A channel has the same colour in every panel, and no band has it.
sed -n 's/^plot //p' "$work/log/script" | head -n 4 | while read -r line; do
    echo "$line" | grep -o '#[0-9a-f]\{6\}' | sort -u | tr '\n' ' '
    echo
done >"$work/log/colours"
for panel in 1 3 4; do
    [ "$(sed -n ${panel}p "$work/log/colours")" = '#1764ab #2a9d3a ' ] || fail "panel $panel has other colours: $(cat "$work/log/colours")"
done
sed -n 2p "$work/log/colours" | grep -q '#1764ab\|#2a9d3a' && fail "a band has the colour of a channel: $(cat "$work/log/colours")"
runs ir info room1.wav room2.wav room3.wav room1.wav room2.wav --bands none --plot five.svg
one_line "five.svg: the first 4 of 5 files are drawn; --plot-bands and --html draw all of them"
# Files have colours and names of their own in the key; of one file the channels have.
quietly "$GPUCONV" ir info room1.wav room2.wav --plot-bands files.svg || fail "exit $?"
says files.svg "room1.wav" "room2.wav"
grep -q "channel 1" files.svg && fail "files are not told apart"
quietly "$GPUCONV" ir info room1.wav --plot-bands files.svg || fail "exit $?"
says files.svg "channel 1" "channel 2"
# A name that is too long for the key is shortened between characters.
long=$(printf 'r\303\244ume-%.0s' 1 2 3 4 5 6)
cp room1.wav "xx$long.wav" # byte 39 is the first of a character
quietly "$GPUCONV" ir info room1.wav "xx$long.wav" --plot-bands files.svg || fail "exit $?"
grep -q '\\x[0-9a-f]' files.svg && fail "a character is cut in two: $(grep -o '.*\\x..*' files.svg)"
refuses 2 "--plot-bands needs bands" ir info room1.wav --bands none --plot-bands out.svg
refuses 1 "cannot be written" ir info room1.wav --plot-bands nowhere/out.svg
# The key stands below the label of the axis, also if its names are long.
cp room1.wav "a long name of a measurement.wav"
cp room2.wav "another long name of a position.wav"
quietly "$GPUCONV" ir info a*.wav --plot-bands long.svg || fail "exit $?"
awk '/translate\(/ { match($0, /,[0-9.]+\)/); y = substr($0, RSTART + 1, RLENGTH - 2) + 0 }
    /<text>.*Hz</ { axis = y; axes++ }
    /<text>a/ { names++; if (y < axis + 15) { print "a name at " y ", the label at " axis; exit bad = 1 } }
    END { if (!bad && (axes != 6 || names != 12)) print axes " axes, " names " names" }' long.svg >"$work/log/key"
[ ! -s "$work/log/key" ] || fail "$(cat "$work/log/key")"
exit 0
