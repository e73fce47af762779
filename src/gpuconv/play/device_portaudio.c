/* Sound devices through PortAudio: ALSA and JACK; PulseAudio and PipeWire through their ALSA plug-ins. The sinks and
 * sources of PulseAudio, which PortAudio shows as one device, are named by pactl, so that the module needs no library
 * of it. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <portaudio.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Names of PulseAudio ----------------------------------------------------------------------------------------- */

/* Runs `pactl list short KIND` and reads what it prints. @return whether it succeeded within two seconds */
static bool run_pactl(char *kind, char *text, size_t room) {
    char program[4352], name[] = "pactl", list[] = "list",
                        brief[] = "short", *const argv[] = {name, list, brief, kind, NULL};
    if (!gc_os_find_program(name, program, sizeof program))
        return false;
    int stream[3] = {gc_os_memory_file(), gc_os_memory_file(), gc_os_memory_file()}, status = -1;
    pid_t child;
    bool started =
        stream[0] >= 0 && stream[1] >= 0 && stream[2] >= 0 && gc_os_start(program, argv, environ, stream, &child) == 0;
    for (int tries = 0; started && !gc_os_wait(child, 0.01, tries >= 200, &status); tries++)
        ;
    ssize_t got = started && status == 0 ? pread(stream[1], text, room - 1, 0) : -1;
    for (int k = 0; k < 3; k++)
        if (stream[k] >= 0)
            close(stream[k]);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Appends a line for each sink and source to a list of devices, as pactl names them; none without pactl or without an
 * answer within two seconds.
 * @param used bytes of the list, of `room` */
static void append_pulse_names(char *list, size_t used, size_t room) {
    char sinks[] = "sinks", sources[] = "sources", *const kinds[] = {sinks, sources};
    for (int k = 0; k < 2; k++) {
        char text[16384], *rest = NULL;
        if (!run_pactl(kinds[k], text, sizeof text))
            continue;
        for (char *line = strtok_r(text, "\n", &rest); line && used + 1 < room; line = strtok_r(NULL, "\n", &rest)) {
            char *next = NULL, shown[300]; /* number, name, module, format, state */
            const char *number = strtok_r(line, "\t", &next), *name = number ? strtok_r(NULL, "\t", &next) : NULL;
            if (name)
                used += (size_t)snprintf(list + used, room - used, "%s pulse:%s (PulseAudio)\n", k ? "in " : "out",
                                         gc_visible(shown, sizeof shown, name));
        }
    }
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

enum { IDLE, IN_CALLBACK, ABANDONED };

static bool only_jack;      /* of PortAudio's devices; set before the first call */
static bool is_initialized; /* by jack_is_running(), for the list or the device that follows */

struct gc_sound_device {
    PaStream *stream;
    _Atomic int state; /* an abandoned device calls the callback no more */
    gc_sound_callback *callback;
    void *context;
    _Atomic int64_t xruns;
};

/* Calls Pa_Initialize, unless jack_is_running() has, with standard error redirected to /dev/null: PortAudio's host
 * interfaces print a message for every device that they fail to probe. Real failures are returned. */
static PaError initialize(void) {
    if (is_initialized) {
        is_initialized = false;
        return paNoError;
    }
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(STDERR_FILENO);
    if (null >= 0 && saved >= 0)
        (void)dup2(null, STDERR_FILENO);
    PaError err = Pa_Initialize();
    if (saved >= 0) {
        (void)dup2(saved, STDERR_FILENO);
        close(saved);
    }
    if (null >= 0)
        close(null);
    return err;
}

/* Drops a message of libasound. */
static void ignore_message(const char *file, int line, const char *function, int err, const char *format, ...) {
    (void)file, (void)line, (void)function, (void)err, (void)format;
}

/* Stops libasound, which PortAudio may have loaded, from printing across the status line. PortAudio returns the errors;
 * its callback counts the gaps. */
static void silence_alsa(void) {
    int (*set_handler)(void (*handler)(const char *, int, const char *, int, const char *, ...));
    *(void **)&set_handler = dlsym(RTLD_DEFAULT, "snd_lib_error_set_handler");
    if (set_handler)
        set_handler(ignore_message);
}

/* Fails with DEVICE and PortAudio's text for `err`. */
static gpuconv_status fail_device(PaError err, const char *what, gpuconv_error *error) {
    const PaHostErrorInfo *host = err == paUnanticipatedHostError ? Pa_GetLastHostErrorInfo() : NULL;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s%s%s", what, Pa_GetErrorText(err), host ? ": " : "",
                   host ? host->errorText : "");
}

/* Returns PortAudio's view of JACK; NULL: its server does not run, or PortAudio lacks it. */
static const PaHostApiInfo *find_jack(void) {
    const PaHostApiIndex index = Pa_HostApiTypeIdToHostApiIndex(paJACK);
    const PaHostApiInfo *jack = index >= 0 ? Pa_GetHostApiInfo(index) : NULL;
    return jack && jack->deviceCount > 0 ? jack : NULL;
}

/* How often devices that are missing are looked for again: JACK may not answer a client while it removes another one of
 * the same name, that of a command that has just ended. */
enum { SEARCHES = 2 };

/* Initializes PortAudio again after half a second. */
static PaError initialize_again(void) {
    const struct timespec half_a_second = {0, 500000000};
    Pa_Terminate();
    nanosleep(&half_a_second, NULL);
    return initialize();
}

/* Leaves PortAudio initialized if JACK runs: JACK may refuse a client that closes and opens again at once. */
static bool jack_is_running(void) {
    PaError err = initialize();
    for (int i = 0; i < SEARCHES && !err && !find_jack(); i++)
        err = initialize_again();
    is_initialized = !err && find_jack();
    if (!err && !is_initialized)
        Pa_Terminate();
    return is_initialized;
}

/* Returns whether a device may be listed and found. */
static bool is_wanted(const PaDeviceInfo *d) {
    const PaHostApiInfo *host = Pa_GetHostApiInfo(d->hostApi);
    return !only_jack || (host && host->type == paJACK);
}

/* @return paNoDevice: there is none */
static int default_device(bool input) {
    const PaHostApiInfo *jack = only_jack ? find_jack() : NULL;
    if (only_jack)
        return !jack ? paNoDevice : input ? jack->defaultInputDevice : jack->defaultOutputDevice;
    return input ? Pa_GetDefaultInputDevice() : Pa_GetDefaultOutputDevice();
}

static char *sound_list(gpuconv_error *error) {
    enum { LINE = 400, PULSE = 32768 /* room for the names of PulseAudio */ };
    PaError err = initialize();
    if (err) {
        fail_device(err, "sound", error);
        return NULL;
    }
    const int count = Pa_GetDeviceCount(), output = default_device(false), input = default_device(true);
    size_t size = (size_t)(count > 0 ? count : 0) * LINE + PULSE, used = 0;
    bool has_pulse = false;
    char *text = gc_calloc((int64_t)size, 1);
    for (int i = 0; text && i < count; i++) {
        const PaDeviceInfo *d = Pa_GetDeviceInfo(i);
        const PaHostApiInfo *host = Pa_GetHostApiInfo(d->hostApi);
        char name[200], system[60];
        if (!is_wanted(d))
            continue;
        gc_visible(name, sizeof name, d->name);
        has_pulse |= strcmp(d->name, "pulse") == 0;
        gc_visible(system, sizeof system, host ? host->name : "");
        used += (size_t)gc_format(text + used, LINE, "%3d %s %s (%s): %d in, %d out, %.0f Hz, %.1f ms%s%s\n", i,
                                  i == output ? "*" : " ", name, system, d->maxInputChannels, d->maxOutputChannels,
                                  d->defaultSampleRate, 1e3 * d->defaultLowOutputLatency,
                                  i == output ? ", default" : "", i == input ? ", default input" : "");
    }
    if (text && used == 0)
        (void)snprintf(text, size, "no sound device found\n");
    if (text && has_pulse)
        append_pulse_names(text, used, size);
    if (!text)
        gc_fail_memory(error, "the list of devices");
    Pa_Terminate();
    return text;
}

/* Finds a device by its number or by part of its name. @return paNoDevice: not found */
static int find_device(const char *name, bool input) {
    char *end;
    long number = name ? strtol(name, &end, 10) : 0;
    if (!name)
        return default_device(input);
    if (end != name && !*end)
        return number >= 0 && number < Pa_GetDeviceCount() ? (int)number : paNoDevice;
    for (int i = 0; i < Pa_GetDeviceCount(); i++) {
        const PaDeviceInfo *d = Pa_GetDeviceInfo(i);
        if (is_wanted(d) && strcasestr(d->name, name) && (input ? d->maxInputChannels : d->maxOutputChannels) > 0)
            return i;
    }
    return paNoDevice;
}

/* Chooses a sink or source of PulseAudio, "pulse:NAME", in the variable that the device "pulse" of ALSA obeys.
 * @return the device's name for PortAudio; NULL if there is too little memory */
static const char *choose_pulse(const char *name, bool input) {
    static const char prefix[] = "pulse:";
    if (!name || strncmp(name, prefix, sizeof prefix - 1) != 0)
        return name;
    return setenv(input ? "PULSE_SOURCE" : "PULSE_SINK", name + sizeof prefix - 1, 1) == 0 ? "pulse" : NULL;
}

/* The devices of a stream; input: paNoDevice if there are no inputs. */
typedef struct devices {
    int output, input;
} devices;

/* Finds the devices, or fails with DEVICE if one of them does not exist. */
static gpuconv_status find_devices(const gc_sound_config *config, devices *d, gpuconv_error *error) {
    const char *output = choose_pulse(config->output, false), *input = choose_pulse(config->input, true);
    *d = (devices){find_device(output, false), config->inputs ? find_device(input, true) : paNoDevice};
    if (d->output != paNoDevice && (d->input != paNoDevice || !config->inputs))
        return GPUCONV_OK;
    const char *missing = d->output == paNoDevice ? config->output : config->input;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: no such %s device; --list-devices prints the devices",
                   missing ? missing : "default", d->output == paNoDevice ? "output" : "input");
}

/* Adapts PortAudio's callback to gc_sound_callback. */
static int stream_callback(const void *in, void *out, unsigned long frames, const PaStreamCallbackTimeInfo *time,
                           PaStreamCallbackFlags flags, void *context) {
    gc_sound_device *s = context;
    int idle = IDLE;
    (void)time;
    if (!atomic_compare_exchange_strong(&s->state, &idle, IN_CALLBACK))
        return paAbort;
    if (flags & (paOutputUnderflow | paInputOverflow))
        atomic_fetch_add_explicit(&s->xruns, 1, memory_order_relaxed);
    s->callback(s->context, in, out, (int64_t)frames);
    atomic_store(&s->state, IDLE);
    return paContinue;
}

static gpuconv_status sound_open(const gc_sound_config *config, gc_sound_device **sound, gpuconv_error *error) {
    *sound = NULL;
    gc_sound_device *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a sound device");
    s->callback = config->callback;
    s->context = config->context;
    PaError err = initialize();
    if (err) {
        free(s);
        return fail_device(err, "sound", error);
    }
    silence_alsa();
    devices found;
    gpuconv_status status = find_devices(config, &found, error);
    for (int i = 0; i < SEARCHES && status; i++) {
        if ((err = initialize_again()) != paNoError) {
            free(s);
            return fail_device(err, "sound", error);
        }
        status = find_devices(config, &found, error);
    }
    if (!status) {
        const PaDeviceInfo *out = Pa_GetDeviceInfo(found.output),
                           *in = config->inputs ? Pa_GetDeviceInfo(found.input) : NULL;
        /* Two blocks, but at least the device's own low latency: below it sound servers drop blocks. */
        double blocks = 2 * config->block / config->rate;
        PaStreamParameters to = {found.output, config->outputs, paFloat32 | paNonInterleaved,
                                 out->defaultLowOutputLatency, NULL};
        PaStreamParameters from = {found.input, config->inputs, paFloat32 | paNonInterleaved,
                                   in ? in->defaultLowInputLatency : 0, NULL};
        to.suggestedLatency = blocks > to.suggestedLatency ? blocks : to.suggestedLatency;
        from.suggestedLatency = blocks > from.suggestedLatency ? blocks : from.suggestedLatency;
        err = Pa_OpenStream(&s->stream, config->inputs ? &from : NULL, &to, config->rate,
                            config->block ? (unsigned long)config->block : paFramesPerBufferUnspecified,
                            paClipOff | paDitherOff, stream_callback, s);
        if (err == paInvalidSampleRate)
            status = gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: does not run at %g Hz; its rate is --rate %g", out->name,
                             config->rate, out->defaultSampleRate);
        else if (err)
            status = fail_device(err, out->name, error);
    }
    if (status) {
        Pa_Terminate();
        free(s);
        return status;
    }
    *sound = s;
    return GPUCONV_OK;
}

static gpuconv_status sound_start(gc_sound_device *s, gpuconv_error *error) {
    PaError err = Pa_StartStream(s->stream);
    return err ? fail_device(err, "starting the sound device", error) : GPUCONV_OK;
}

static double sound_latency(const gc_sound_device *s) {
    const PaStreamInfo *info = Pa_GetStreamInfo(s->stream);
    return info ? info->outputLatency : 0;
}

static int64_t sound_xruns(const gc_sound_device *s) {
    return atomic_load(&s->xruns);
}

static bool sound_is_active(const gc_sound_device *s) {
    return Pa_IsStreamActive(s->stream) == 1;
}

/* Waits for the callback, and keeps it from running again. The stream stays open to the end of the process: without its
 * server PortAudio waits for ever when it closes it, or ends the process by an assertion. */
static void abandon(gc_sound_device *s) {
    const struct timespec interval = {0, 1000000};
    for (int idle = IDLE; !atomic_compare_exchange_strong(&s->state, &idle, ABANDONED); idle = IDLE)
        nanosleep(&interval, NULL);
}

static void sound_close(gc_sound_device *s, gc_sound_end end) {
    if (s && end == GC_SOUND_ABANDON)
        abandon(s);
    if (!s || end == GC_SOUND_ABANDON)
        return;
    (void)(end == GC_SOUND_DRAIN ? Pa_StopStream(s->stream) : Pa_AbortStream(s->stream)); /* closed in any case */
    Pa_CloseStream(s->stream);
    Pa_Terminate();
    free(s);
}

__attribute__((visibility("default"))) gc_sound_system_get gpuconv_sound_system;

const gc_sound_system *gpuconv_sound_system(gc_sound_choice choice) {
    static const gc_sound_system systems[] = {{"PortAudio", NULL, sound_list, sound_open, sound_start, sound_latency,
                                               sound_xruns, NULL, sound_is_active, sound_close},
                                              {"JACK", jack_is_running, sound_list, sound_open, sound_start,
                                               sound_latency, sound_xruns, NULL, sound_is_active, sound_close}};
    only_jack = choice == GC_SOUND_JACK;
    return &systems[only_jack];
}
