#!/bin/sh
# Tests the plug-in in Ardour without a window: a preset and two controls are saved with a session and restored.
. "$(dirname "$0")/../gpuconv/lib.sh"
ardour=
for program in ardour7-lua ardour8-lua ardour9-lua; do
    command -v $program >"$work/log/which" && ardour=$program
done
[ -n "$ardour" ] || skip "Ardour is not installed (Debian: ardour)"
LV2_PATH=$(dirname "$GPUCONV")/lv2
export LV2_PATH HOME="$work" XDG_RUNTIME_DIR="$work"
[ -e "$LV2_PATH/gpuconv.lv2/gpuconv.so" ] || skip "this build has no plug-in"
case $SANITIZE in
?*) skip "a host that is not sanitized cannot load a plug-in that is" ;;
esac
cat >save.lua <<END
AudioEngine:set_backend("None (Dummy)", "", "")
session = create_session("$work/session", "session", 48000)
session:new_audio_track(1, 2, nil, 1, "voice", 0, ARDOUR.TrackMode.Normal, true)
plugin = ARDOUR.LuaAPI.new_plugin(session, "urn:gpuconv:stereo", ARDOUR.PluginType.LV2, "")
session:route_by_name("voice"):add_processor_by_index(plugin, 0, nil, true)
instance = plugin:to_insert():plugin(0)
print("loaded", instance:load_preset(instance:preset_by_label("Cathedral")))
print("set", ARDOUR.LuaAPI.set_processor_param(plugin, 3, 250), ARDOUR.LuaAPI.set_processor_param(plugin, 10, 1.5))
session:save_state("")
close_session()
quit()
END
cat >load.lua <<END
AudioEngine:set_backend("None (Dummy)", "", "")
session = load_session("$work/session", "session")
plugin = session:route_by_name("voice"):nth_plugin(0)
print("preset", plugin:to_insert():plugin(0):last_preset().label)
print("predelay", (ARDOUR.LuaAPI.get_processor_param(plugin, 3)))
print("stretch", (ARDOUR.LuaAPI.get_processor_param(plugin, 10)))
session:save_state("")
close_session()
quit()
END
timeout 60 $ardour save.lua >"$work/log/out" 2>&1 || skip "Ardour does not start here: $(tail -n 2 "$work/log/out")"
grep -q 'loaded.true' "$work/log/out" || fail "the preset is not loaded: $(cat "$work/log/out")"
find "$work/session" -name state.ttl -exec grep -l 'cathedral.flac' {} + | grep -q . || fail "the session does not name the response"
timeout 60 $ardour load.lua >"$work/log/out" 2>&1 || fail "the session is not loaded: $(cat "$work/log/out")"
for text in 'preset.Cathedral' 'predelay.250' 'stretch.1.5'; do
    grep -q "$text" "$work/log/out" || fail "not restored: $text: $(cat "$work/log/out")"
done
exit 0
