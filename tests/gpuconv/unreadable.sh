#!/bin/sh
# Files and folders without permission. Root has all permissions, so the script switches from root to the user nobody.
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" -eq 0 ]; then
    cp "$GPUCONV" "$work/gpuconv" && chmod 755 "$work" "$work/gpuconv" && chmod 777 "$work/files"
    setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || skip "root here, and setpriv cannot become nobody"
    as_nobody() {
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    }
    as_nobody "$work/gpuconv" --version >/dev/null 2>&1 || skip "nobody cannot run the command from $work"
    cat >"$work/wrapped" <<END
#!/bin/sh
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$work/gpuconv" "\$@"
END
    chmod 755 "$work/wrapped"
    GPUCONV=$work/wrapped
fi

make_audio noise in.wav wav-16 1 44100 1000 0.1
make_audio taps ir.wav 1 44100 1 0.5
cp in.wav secret.wav && chmod 000 secret.wav
mkdir closed && chmod 555 closed
cp in.wav fixed.wav && chmod 444 fixed.wav
chmod 755 .

refuses 1 "secret.wav: Permission denied" secret.wav ir.wav out.wav
refuses 1 "secret.wav: Permission denied" in.wav secret.wav out.wav
refuses 1 "closed/out.wav: Permission denied" in.wav ir.wav closed/out.wav
refuses 1 "fixed.wav: Permission denied" in.wav ir.wav fixed.wav
