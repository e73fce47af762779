/* Sound devices through PortAudio: ALSA, JACK, and through ALSA PulseAudio and PipeWire. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <fcntl.h>
#include <portaudio.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gc_sound {
    PaStream *stream;
    gc_sound_callback *callback;
    void *context;
    _Atomic int64_t gaps;
};

/* PortAudio's host interfaces print what they probe in vain; what matters comes back as an error. */
static PaError initialize(void) {
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), kept = dup(STDERR_FILENO);
    if (null >= 0 && kept >= 0)
        (void)dup2(null, STDERR_FILENO);
    PaError failed = Pa_Initialize();
    if (kept >= 0) {
        (void)dup2(kept, STDERR_FILENO);
        close(kept);
    }
    if (null >= 0)
        close(null);
    return failed;
}

static gpuconv_status told(PaError failed, const char *what, gpuconv_error *error) {
    const PaHostErrorInfo *host = failed == paUnanticipatedHostError ? Pa_GetLastHostErrorInfo() : NULL;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s%s%s", what, Pa_GetErrorText(failed), host ? ": " : "",
                   host ? host->errorText : "");
}

static char *sound_list(gpuconv_error *error) {
    enum { LINE = 400 };
    PaError failed = initialize();
    if (failed) {
        told(failed, "sound", error);
        return NULL;
    }
    int count = Pa_GetDeviceCount();
    size_t room = (size_t)(count > 0 ? count : 0) * LINE + LINE, used = 0;
    char *text = gc_calloc((int64_t)room, 1);
    for (int i = 0; text && i < count; i++) {
        const PaDeviceInfo *d = Pa_GetDeviceInfo(i);
        const PaHostApiInfo *host = Pa_GetHostApiInfo(d->hostApi);
        used += (size_t)snprintf(text + used, LINE, "%3d %s %.200s (%.60s): %d in, %d out, %.0f Hz, %.1f ms%s%s\n", i,
                                 i == Pa_GetDefaultOutputDevice() ? "*" : " ", d->name, host ? host->name : "",
                                 d->maxInputChannels, d->maxOutputChannels, d->defaultSampleRate,
                                 1e3 * d->defaultLowOutputLatency, i == Pa_GetDefaultOutputDevice() ? ", default" : "",
                                 i == Pa_GetDefaultInputDevice() ? ", default input" : "");
    }
    if (text && used == 0)
        (void)snprintf(text, room, "no sound device\n");
    if (!text)
        gc_fail_memory(error, "the list of devices");
    Pa_Terminate();
    return text;
}

/* A device by its number or a part of its name. */
static int find(const char *name, bool input) {
    char *end;
    long number = name ? strtol(name, &end, 10) : 0;
    if (!name)
        return input ? Pa_GetDefaultInputDevice() : Pa_GetDefaultOutputDevice();
    if (end != name && !*end)
        return number >= 0 && number < Pa_GetDeviceCount() ? (int)number : paNoDevice;
    for (int i = 0; i < Pa_GetDeviceCount(); i++) {
        const PaDeviceInfo *d = Pa_GetDeviceInfo(i);
        if (strcasestr(d->name, name) && (input ? d->maxInputChannels : d->maxOutputChannels) > 0)
            return i;
    }
    return paNoDevice;
}

static int call(const void *in, void *out, unsigned long frames, const PaStreamCallbackTimeInfo *time,
                PaStreamCallbackFlags flags, void *context) {
    gc_sound *s = context;
    (void)time;
    if (flags & (paOutputUnderflow | paInputOverflow))
        atomic_fetch_add_explicit(&s->gaps, 1, memory_order_relaxed);
    s->callback(s->context, in, out, (int64_t)frames);
    return paContinue;
}

static gpuconv_status sound_open(const gc_sound_config *config, gc_sound **sound, gpuconv_error *error) {
    *sound = NULL;
    gc_sound *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a sound device");
    s->callback = config->callback;
    s->context = config->context;
    PaError failed = initialize();
    if (failed) {
        free(s);
        return told(failed, "sound", error);
    }
    int output = find(config->output, false), input = config->inputs ? find(config->input, true) : paNoDevice;
    gpuconv_status status = GPUCONV_OK;
    if (output == paNoDevice || (config->inputs && input == paNoDevice)) {
        const char *missing = output == paNoDevice ? config->output : config->input;
        status = gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: no such %s device; --list-devices tells them",
                         missing ? missing : "default", output == paNoDevice ? "output" : "input");
    }
    if (!status) {
        const PaDeviceInfo *o = Pa_GetDeviceInfo(output), *i = config->inputs ? Pa_GetDeviceInfo(input) : NULL;
        /* Two blocks, but no less than what the device calls low: below that servers drop out. */
        double blocks = 2 * config->block / config->rate;
        PaStreamParameters to = {output, config->outputs, paFloat32 | paNonInterleaved, o->defaultLowOutputLatency,
                                 NULL};
        PaStreamParameters from = {input, config->inputs, paFloat32 | paNonInterleaved,
                                   i ? i->defaultLowInputLatency : 0, NULL};
        to.suggestedLatency = blocks > to.suggestedLatency ? blocks : to.suggestedLatency;
        from.suggestedLatency = blocks > from.suggestedLatency ? blocks : from.suggestedLatency;
        failed = Pa_OpenStream(&s->stream, config->inputs ? &from : NULL, &to, config->rate,
                               config->block ? (unsigned long)config->block : paFramesPerBufferUnspecified,
                               paClipOff | paDitherOff, call, s);
        if (failed)
            status = told(failed, o->name, error);
    }
    if (status) {
        Pa_Terminate();
        free(s);
        return status;
    }
    *sound = s;
    return GPUCONV_OK;
}

static gpuconv_status sound_start(gc_sound *s, gpuconv_error *error) {
    PaError failed = Pa_StartStream(s->stream);
    return failed ? told(failed, "starting the sound device", error) : GPUCONV_OK;
}

static double sound_latency(const gc_sound *s) {
    const PaStreamInfo *i = Pa_GetStreamInfo(s->stream);
    return i ? i->outputLatency : 0;
}

static int64_t sound_gaps(const gc_sound *s) {
    return atomic_load(&s->gaps);
}

static bool sound_alive(const gc_sound *s) {
    return Pa_IsStreamActive(s->stream) == 1;
}

static void sound_close(gc_sound *s, bool drain) {
    if (!s)
        return;
    (void)(drain ? Pa_StopStream(s->stream) : Pa_AbortStream(s->stream)); /* it is closed whatever they say */
    Pa_CloseStream(s->stream);
    Pa_Terminate();
    free(s);
}

__attribute__((visibility("default"))) gc_sound_system_of gpuconv_sound_system;

const gc_sound_system *gpuconv_sound_system(void) {
    static const gc_sound_system system = {sound_list, sound_open,  sound_start, sound_latency,
                                           sound_gaps, sound_alive, sound_close};
    return &system;
}
