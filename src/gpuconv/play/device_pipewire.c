/* Sound devices through PipeWire: one stream for the output and one for a live input. The session manager connects the
 * streams and moves them when the default device changes; their nodes are gpuconv and gpuconv-input, and their ports
 * have the names of the channels. A sink is an input stream of the class Audio/Sink, to which the session manager links
 * the programs that play.
 *
 * The output's callback runs everything. A live input's callback writes its frames into a ring, which the output's
 * callback reads, so that two devices with separate clocks can be used. A sink has the clock of its output: both are in
 * one group, and the sink's callback, after writing, triggers the output's, which then adds no latency. */
#include "device.h"
#include "frame_ring.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"

#include <pipewire/pipewire.h>
#include <spa/param/audio/format-utils.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { CHANNELS = 64, STEP = 4096, RING = 1 << 14 };

typedef struct gc_sound_device {
    struct pw_thread_loop *loop;
    struct pw_stream *output, *input; /* input NULL: none */
    gc_sound_callback *callback;
    void *context;
    int inputs, outputs;
    double rate;
    int block;
    bool sink;
    int cushion; /* frames that the ring keeps */
    gc_frame_ring captured;
    float *planes, *interleaved; /* inputs x STEP; inputs x STEP */
    bool flowing;                /* the ring has been filled once */
    _Atomic int64_t xruns;
    _Atomic bool failed, drained;
    _Atomic int64_t latency; /* frames */
    _Atomic double agreed;   /* rate of the output's format in Hz; 0: none yet */
} device;

/* ---- The callbacks, on PipeWire's real-time thread --------------------------------------------------------------- */

/* Takes n frames of the live input from the ring, or silence and an overflow or underflow. */
static void take_input(device *d, float *const *planes, int64_t n) {
    int64_t there = gc_frame_ring_available(&d->captured), keep = 2 * n + d->cushion;
    if (!d->flowing && there < n + d->cushion)
        there = 0;
    else
        d->flowing = true;
    if (there > 4 * keep) { /* the input's clock is ahead: catch up */
        gc_frame_ring_discard(&d->captured);
        atomic_fetch_add_explicit(&d->xruns, 1, memory_order_relaxed);
        there = 0;
    }
    int64_t got = gc_min(n, there);
    gc_frame_ring_read(&d->captured, d->interleaved, got);
    if (d->flowing && got < n) {
        atomic_fetch_add_explicit(&d->xruns, 1, memory_order_relaxed);
        d->flowing = false;
    }
    for (int c = 0; c < d->inputs; c++)
        for (int64_t i = 0; i < n; i++)
            planes[c][i] = i < got ? d->interleaved[i * d->inputs + c] : 0.0f;
}

static void process_output(void *argument) {
    device *d = argument;
    struct pw_buffer *b = pw_stream_dequeue_buffer(d->output);
    float *out[CHANNELS], *in[CHANNELS];
    if (!b) {
        atomic_fetch_add_explicit(&d->xruns, 1, memory_order_relaxed);
        return;
    }
    struct spa_buffer *buffer = b->buffer;
    int64_t frames = buffer->datas[0].maxsize / sizeof(float);
    if (b->requested)
        frames = gc_min(frames, (int64_t)b->requested);
    const int64_t there = d->sink ? gc_frame_ring_available(&d->captured) : 0;
    if (there > 0) /* the server asks for longer blocks than it brings when it changes their length */
        frames = gc_min(frames, there);
    bool usable = buffer->n_datas >= (uint32_t)d->outputs;
    for (int c = 0; c < d->outputs && usable; c++)
        usable = buffer->datas[c].data != NULL;
    for (int64_t at = 0; usable && at < frames; at += STEP) {
        int64_t n = gc_min(STEP, frames - at);
        for (int c = 0; c < d->outputs; c++)
            out[c] = (float *)buffer->datas[c].data + at;
        for (int c = 0; c < d->inputs; c++)
            in[c] = d->planes + (int64_t)c * STEP;
        if (d->input)
            take_input(d, in, n);
        d->callback(d->context, d->input ? (const float *const *)in : NULL, out, n);
    }
    for (uint32_t c = 0; c < buffer->n_datas; c++) {
        buffer->datas[c].chunk->offset = 0;
        buffer->datas[c].chunk->stride = sizeof(float);
        buffer->datas[c].chunk->size = usable ? (uint32_t)frames * (uint32_t)sizeof(float) : 0;
    }
    atomic_store_explicit(&d->latency, frames, memory_order_relaxed);
    pw_stream_queue_buffer(d->output, b);
}

static void process_input(void *argument) {
    device *d = argument;
    struct pw_buffer *b = pw_stream_dequeue_buffer(d->input);
    if (!b)
        return;
    const struct spa_buffer *buffer = b->buffer;
    int64_t bytes = buffer->n_datas && buffer->datas[0].data ? buffer->datas[0].chunk->size : 0;
    int64_t frames = bytes / ((int64_t)sizeof(float) * d->inputs);
    if (frames <= gc_frame_ring_space(&d->captured))
        gc_frame_ring_write(
            &d->captured,
            (const float *)(const void *)((const uint8_t *)buffer->datas[0].data + buffer->datas[0].chunk->offset),
            frames);
    else
        atomic_fetch_add_explicit(&d->xruns, 1, memory_order_relaxed);
    pw_stream_queue_buffer(d->input, b);
    if (d->sink)
        (void)pw_stream_trigger_process(d->output);
}

static void state_changed(void *argument, enum pw_stream_state old, enum pw_stream_state state, const char *error) {
    device *d = argument;
    (void)old, (void)error;
    if (state == PW_STREAM_STATE_ERROR || state == PW_STREAM_STATE_UNCONNECTED)
        atomic_store(&d->failed, true);
}

/* Keeps the rate that was agreed on: a format without a rate gets that of the graph, and anew when it has changed. */
static void format_changed(void *argument, uint32_t id, const struct spa_pod *format) {
    device *d = argument;
    struct spa_audio_info_raw info;
    if (id == SPA_PARAM_Format && format && spa_format_audio_raw_parse(format, &info) >= 0)
        atomic_store(&d->agreed, info.rate);
}

static void drained(void *argument) {
    device *d = argument;
    atomic_store(&d->drained, true);
}

static const struct pw_stream_events output_events = {PW_VERSION_STREAM_EVENTS, .state_changed = state_changed,
                                                      .param_changed = format_changed, .process = process_output,
                                                      .drained = drained};
static const struct pw_stream_events input_events = {PW_VERSION_STREAM_EVENTS, .state_changed = state_changed,
                                                     .process = process_input};

/* ---- The list of devices ----------------------------------------------------------------------------------------- */

typedef struct listing {
    FILE *text; /* NULL: none */
    struct pw_main_loop *loop;
    struct pw_registry *registry;
    int lines;
    int expected;
} listing;

static void on_global(void *argument, uint32_t id, uint32_t permissions, const char *type, uint32_t version,
                      const struct spa_dict *properties) {
    listing *l = argument;
    (void)permissions, (void)version, (void)id;
    if (strcmp(type, PW_TYPE_INTERFACE_Node) != 0 || !properties)
        return;
    const char *class = spa_dict_lookup(properties, PW_KEY_MEDIA_CLASS);
    const char *name = spa_dict_lookup(properties, PW_KEY_NODE_NAME);
    const char *described = spa_dict_lookup(properties, PW_KEY_NODE_DESCRIPTION);
    bool sink = class && strcmp(class, "Audio/Sink") == 0, source = class && strcmp(class, "Audio/Source") == 0;
    if (!name || (!sink && !source))
        return;
    char shown[300], about[300], line[700];
    (void)snprintf(line, sizeof line, "%s %s (PipeWire): %s\n", sink ? "out" : "in ",
                   gc_visible(shown, sizeof shown, name), gc_visible(about, sizeof about, described ? described : ""));
    if (l->text)
        (void)fwrite(line, 1, strlen(line), l->text); /* fclose tells whether memory was full */
    l->lines++;
}

static void on_done(void *argument, uint32_t id, int sequence) {
    listing *l = argument;
    if (id == PW_ID_CORE && sequence == l->expected)
        pw_main_loop_quit(l->loop);
}

static void on_error(void *argument, uint32_t id, int sequence, int result, const char *message) {
    listing *l = argument;
    (void)id, (void)sequence, (void)result, (void)message;
    pw_main_loop_quit(l->loop);
}

/* Connects and lists the nodes. @return false: no connection */
static bool list_nodes(listing *l) {
    static const struct pw_registry_events registry_events = {PW_VERSION_REGISTRY_EVENTS, .global = on_global};
    static const struct pw_core_events core_events = {PW_VERSION_CORE_EVENTS, .done = on_done, .error = on_error};
    struct spa_hook registry_hook, core_hook;
    pw_init(NULL, NULL);
    l->loop = pw_main_loop_new(NULL);
    struct pw_context *context = l->loop ? pw_context_new(pw_main_loop_get_loop(l->loop), NULL, 0) : NULL;
    struct pw_core *core = context ? pw_context_connect(context, NULL, 0) : NULL;
    if (core) {
        spa_zero(registry_hook);
        spa_zero(core_hook);
        pw_core_add_listener(core, &core_hook, &core_events, l);
        l->registry = pw_core_get_registry(core, PW_VERSION_REGISTRY, 0);
        pw_registry_add_listener(l->registry, &registry_hook, &registry_events, l);
        l->expected = pw_core_sync(core, PW_ID_CORE, 0);
        pw_main_loop_run(l->loop);
        pw_proxy_destroy((struct pw_proxy *)l->registry);
    }
    if (core)
        pw_core_disconnect(core);
    if (context)
        pw_context_destroy(context);
    if (l->loop)
        pw_main_loop_destroy(l->loop);
    return core != NULL;
}

static bool sound_is_running(void) {
    listing l = {.text = NULL};
    return list_nodes(&l);
}

static char *sound_list(gpuconv_error *error) {
    char *text = NULL;
    size_t size;
    listing l = {.text = open_memstream(&text, &size)};
    bool good = list_nodes(&l);
    if (good && l.text && l.lines == 0)
        (void)fwrite("no sound device found\n", 1, 22, l.text);
    if (l.text && fclose(l.text) == 0 && good)
        return text;
    free(text);
    if (good)
        gc_fail_memory(error, "the list of devices");
    else
        gc_fail(error, GPUCONV_ERROR_DEVICE, "PipeWire does not answer");
    return NULL;
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

/* Names the channels that have usual names. */
static void name_channels(struct spa_audio_info_raw *info) {
    static const uint32_t usual[] = {SPA_AUDIO_CHANNEL_FL,  SPA_AUDIO_CHANNEL_FR,  SPA_AUDIO_CHANNEL_FC,
                                     SPA_AUDIO_CHANNEL_LFE, SPA_AUDIO_CHANNEL_RL,  SPA_AUDIO_CHANNEL_RR,
                                     SPA_AUDIO_CHANNEL_SL,  SPA_AUDIO_CHANNEL_SR,  SPA_AUDIO_CHANNEL_TFL,
                                     SPA_AUDIO_CHANNEL_TFR, SPA_AUDIO_CHANNEL_TRL, SPA_AUDIO_CHANNEL_TRR};
    static const uint32_t quad[] = {SPA_AUDIO_CHANNEL_FL, SPA_AUDIO_CHANNEL_FR, SPA_AUDIO_CHANNEL_RL,
                                    SPA_AUDIO_CHANNEL_RR};
    for (uint32_t c = 0; c < info->channels && c < SPA_AUDIO_MAX_CHANNELS; c++)
        info->position[c] = info->channels == 1    ? (uint32_t)SPA_AUDIO_CHANNEL_MONO
                            : info->channels == 4  ? quad[c]
                            : info->channels <= 12 ? usual[c]
                                                   : (uint32_t)SPA_AUDIO_CHANNEL_AUX0 + c;
}

/* Sets what a sink and its output need: the clock in common, without the sink playing into itself, and cycles before a
 * program plays. Without a role, by which session managers remember the volume, other music keeps its own. */
static void join_sink(struct pw_properties *properties, bool input) {
    pw_properties_set(properties, PW_KEY_NODE_ALWAYS_PROCESS, "true");
    pw_properties_setf(properties, PW_KEY_NODE_GROUP, "gpuconv-%ld", (long)getpid());
    pw_properties_setf(properties, PW_KEY_NODE_LINK_GROUP, "gpuconv-%ld", (long)getpid());
    pw_properties_set(properties, PW_KEY_MEDIA_ROLE, NULL);
    if (input)
        pw_properties_set(properties, PW_KEY_MEDIA_CLASS, "Audio/Sink");
}

/* Makes and connects one stream. @return 0, or a negative errno */
static int connect_stream(device *d, const gc_sound_config *config, bool input) {
    const bool sink = input && d->sink;
    const char *target = input ? config->input : config->output;
    const char *name = !input ? "gpuconv" : !sink ? "gpuconv-input" : *config->sink ? config->sink : "gpuconv-sink";
    struct pw_properties *properties = pw_properties_new(
        PW_KEY_MEDIA_TYPE, "Audio", PW_KEY_MEDIA_CATEGORY, input ? "Capture" : "Playback", PW_KEY_MEDIA_ROLE, "Music",
        PW_KEY_APP_NAME, "gpuconv", PW_KEY_NODE_NAME, name, PW_KEY_NODE_DESCRIPTION, name, NULL);
    if (!properties)
        return -ENOMEM;
    if (d->sink)
        join_sink(properties, input);
    if (config->block)
        pw_properties_setf(properties, PW_KEY_NODE_LATENCY, "%d/%d", config->block, (int)config->rate);
    if (target)
        pw_properties_set(properties, "target.object", target);
    struct pw_stream **stream = input ? &d->input : &d->output;
    *stream = pw_stream_new_simple(pw_thread_loop_get_loop(d->loop), "gpuconv", properties,
                                   input ? &input_events : &output_events, d);
    if (!*stream)
        return errno ? -errno : -ENOMEM;
    struct spa_audio_info_raw info = {.format = input ? SPA_AUDIO_FORMAT_F32 : SPA_AUDIO_FORMAT_F32P,
                                      .rate = config->follow_rate ? 0 : (uint32_t)config->rate,
                                      .channels = (uint32_t)(input ? config->inputs : config->outputs)};
    name_channels(&info);
    uint8_t room[1024];
    struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(room, sizeof room);
    const struct spa_pod *parameters[] = {spa_format_audio_raw_build(&builder, SPA_PARAM_EnumFormat, &info)};
    enum pw_stream_flags flags = PW_STREAM_FLAG_MAP_BUFFERS | PW_STREAM_FLAG_RT_PROCESS | PW_STREAM_FLAG_INACTIVE;
    if (!sink)
        flags |= PW_STREAM_FLAG_AUTOCONNECT;
    if (d->sink && !input)
        flags |= PW_STREAM_FLAG_TRIGGER;
    return pw_stream_connect(*stream, input ? PW_DIRECTION_INPUT : PW_DIRECTION_OUTPUT, PW_ID_ANY, flags, parameters,
                             1);
}

static void sound_close(gc_sound_device *d, gc_sound_end end) {
    if (!d)
        return;
    if (d->loop && end == GC_SOUND_DRAIN && d->output) {
        pw_thread_loop_lock(d->loop);
        (void)pw_stream_flush(d->output, true);
        pw_thread_loop_unlock(d->loop);
        for (int i = 0; i < 100 && !atomic_load(&d->drained) && !atomic_load(&d->failed); i++)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    if (d->loop)
        pw_thread_loop_stop(d->loop);
    if (d->input)
        pw_stream_destroy(d->input);
    if (d->output)
        pw_stream_destroy(d->output);
    if (d->loop)
        pw_thread_loop_destroy(d->loop);
    gc_frame_ring_free(&d->captured);
    free(d->planes);
    free(d->interleaved);
    free(d);
}

static gpuconv_status sound_open(const gc_sound_config *config, gc_sound_device **sound, gpuconv_error *error) {
    *sound = NULL;
    pw_init(NULL, NULL);
    device *d = gc_calloc(1, sizeof *d);
    if (!d)
        return gc_fail_memory(error, "a sound device");
    d->callback = config->callback;
    d->context = config->context;
    d->inputs = config->inputs;
    d->outputs = config->outputs;
    d->rate = config->rate;
    d->block = config->block ? config->block : 1024;
    d->sink = config->sink != NULL;
    /* A sink's cycle brings as many frames as its output takes, give or take a few where PipeWire resamples both. The
     * devices of another input take turns. */
    d->cushion = !d->sink ? d->block : config->follow_rate ? 0 : 16;
    d->loop = pw_thread_loop_new("gpuconv", NULL);
    int64_t widest = config->inputs > 0 ? config->inputs : 1;
    d->planes = gc_calloc(widest * STEP, sizeof *d->planes);
    d->interleaved = gc_calloc(widest * STEP, sizeof *d->interleaved);
    if (!d->loop || !d->planes || !d->interleaved || !gc_frame_ring_init(&d->captured, (int)widest, RING)) {
        sound_close(d, GC_SOUND_ABORT);
        return gc_fail_memory(error, "a sound device");
    }
    int result = config->outputs > CHANNELS || config->inputs > CHANNELS ? -EINVAL : connect_stream(d, config, false);
    if (result >= 0 && config->inputs)
        result = connect_stream(d, config, true);
    if (result < 0) {
        sound_close(d, GC_SOUND_ABORT);
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "PipeWire: %s", strerror(-result));
    }
    *sound = d;
    return GPUCONV_OK;
}

static gpuconv_status sound_start(gc_sound_device *d, gpuconv_error *error) {
    pw_thread_loop_lock(d->loop);
    if (d->input)
        pw_stream_set_active(d->input, true);
    pw_stream_set_active(d->output, true);
    int result = pw_thread_loop_start(d->loop);
    pw_thread_loop_unlock(d->loop);
    return result < 0 ? gc_fail(error, GPUCONV_ERROR_DEVICE, "PipeWire: %s", strerror(-result)) : GPUCONV_OK;
}

static double sound_latency(const gc_sound_device *d) {
    int64_t frames = atomic_load(&d->latency);
    return 2 * (double)(frames ? frames : d->block) / d->rate;
}

static int64_t sound_xruns(const gc_sound_device *d) {
    return atomic_load(&d->xruns);
}

static double sound_rate(const gc_sound_device *d) {
    return atomic_load(&d->agreed);
}

static bool sound_is_active(const gc_sound_device *d) {
    return !atomic_load(&d->failed);
}

__attribute__((visibility("default"))) gc_sound_system_get gpuconv_sound_system;

const gc_sound_system *gpuconv_sound_system(gc_sound_choice choice) {
    (void)choice;
    static const gc_sound_system system = {"PipeWire",    sound_is_running, sound_list, sound_open,      sound_start,
                                           sound_latency, sound_xruns,      sound_rate, sound_is_active, sound_close};
    return &system;
}
