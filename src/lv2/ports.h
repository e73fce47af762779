/* The LV2 plug-in's URIs and ports, as in gpuconv.ttl; for the plug-in and its window. */
#ifndef GPUCONV_LV2_PORTS_H
#define GPUCONV_LV2_PORTS_H

#define PLUGIN_URI "urn:gpuconv:"
#define RESPONSE_URI PLUGIN_URI "response"
#define ERROR_URI PLUGIN_URI "error"
#define WINDOW_URI PLUGIN_URI "window"

/* Port indices, as in gpuconv.ttl. The audio inputs begin at AUDIO, the outputs follow, then come the ports from
 * ENABLED on, which are numbered here as if there were no audio ports. */
typedef enum port {
    CONTROL,
    NOTIFY,
    WET,
    DRY,
    GAIN,
    PREDELAY,
    FREEWHEEL,
    LATENCY,
    LATE_BLOCKS,
    AUDIO,
    ENABLED = AUDIO,
    START,
    LENGTH,
    FADE,
    STRETCH,
    TRIM,
    PEAK_IN, /* left, right */
    PEAK_OUT = PEAK_IN + 2,
    REVERSE = PEAK_OUT + 2,
    ATTACK,
    AUTOGAIN,
    WIDTH,
    LOW_CUT,
    HIGH_CUT,
    PORTS
} port;

#endif
