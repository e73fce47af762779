/* Tests the plug-in's window with a minimal host on an X server: it asks for the response, lists its folder, and mouse
 * events change the controls and choose a file. */
#include "check.h"
#include "files.h"
#include "lv2/window/window.h"

#include <X11/Xutil.h>
#include <X11/keysym.h>

#undef Bool /* of Xlib.h; a member of LV2_Atom_Forge has this name */

#include <dlfcn.h>
#include <lv2/atom/forge.h>
#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/options/options.h>
#include <lv2/patch/patch.h>
#include <lv2/ui/ui.h>
#include <lv2/urid/urid.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KNOB_STRETCH = 1, KNOB_WET = 8, AUTOGAIN_BUTTON = 5 };

static char *mapped[64];

static LV2_URID map_uri(LV2_URID_Map_Handle handle, const char *uri) {
    (void)handle;
    for (int i = 1; i < COUNT(mapped); i++) {
        if (!mapped[i])
            mapped[i] = strdup(uri);
        if (strcmp(mapped[i], uri) == 0)
            return (LV2_URID)i;
    }
    return 0;
}

static LV2_URID_Map map = {NULL, map_uri};

/* What the window wrote. */
static struct {
    lv2_form form;
    float value[PORTS];
    int writes, gets;
    char path[1024];
    bool second; /* of the path */
} written;

static void write_port(LV2UI_Controller controller, uint32_t index, uint32_t size, uint32_t protocol,
                       const void *data) {
    (void)controller;
    written.writes++;
    if (protocol == 0) {
        uint32_t channel;
        const port number = gc_lv2_port_at(written.form, index, &channel);
        assert_int_equal(size, sizeof(float));
        assert_true(number < PORTS);
        memcpy(&written.value[number], data, size);
        return;
    }
    const LV2_Atom_Object *object = data;
    const LV2_Atom *value = NULL, *property = NULL;
    assert_int_equal(index, CONTROL);
    assert_int_equal(size, lv2_atom_total_size(data));
    written.gets += object->body.otype == map_uri(NULL, LV2_PATCH__Get);
    lv2_atom_object_get(object, map_uri(NULL, LV2_PATCH__value), &value, map_uri(NULL, LV2_PATCH__property), &property,
                        0);
    written.second = property && ((const LV2_Atom_URID *)property)->body == map_uri(NULL, SECOND_URI);
    if (value)
        (void)snprintf(written.path, sizeof written.path, "%s", (const char *)LV2_ATOM_BODY_CONST(value));
}

typedef struct fixture {
    void *library;
    const LV2UI_Descriptor *ui;
    const LV2UI_Idle_Interface *idle;
    LV2UI_Handle handle;
    LV2UI_Widget widget;
    Display *display;
    window layout; /* of the same size, to find the parts */
} fixture;

static const char *bundle = PLUGIN_BUNDLE "/";

static fixture begin_scaled(const char *plugin, float scale) {
    fixture f = {.layout = {.width = WINDOW_WIDTH, .height = WINDOW_HEIGHT, .form = gc_lv2_form(plugin)}};
    f.layout.panel = &window_panels[f.layout.form.is_space];
    memset(&written, 0, sizeof written);
    written.form = f.layout.form;
    f.display = XOpenDisplay(NULL);
    CHECK(f.display, "no X server");
    f.library = dlopen(PLUGIN_BUNDLE "/gpuconv-window.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(f.library, "%s", dlerror());
    const LV2UI_Descriptor *(*descriptor)(uint32_t) = NULL;
    *(void **)&descriptor = dlsym(f.library, "lv2ui_descriptor");
    CHECK(descriptor, "no entry");
    f.ui = descriptor(0);
    assert_null(descriptor(1));
    LV2_Feature feature = {LV2_URID__map, &map};
    const LV2_Options_Option option[2] = {{.key = map_uri(NULL, LV2_UI__scaleFactor),
                                           .size = sizeof scale,
                                           .type = map_uri(NULL, LV2_ATOM__Float),
                                           .value = &scale}};
    LV2_Feature options = {LV2_OPTIONS__options, (void *)(uintptr_t)option};
    const LV2_Feature *features[] = {&feature, &options, NULL};
    f.handle = f.ui->instantiate(f.ui, plugin, bundle, write_port, NULL, &f.widget, features);
    CHECK(f.handle, "no window");
    f.idle = f.ui->extension_data(LV2_UI__idleInterface);
    assert_int_equal(written.gets, 1);
    f.layout.wave.channels = 1;
    f.layout.wave.seconds = 1;
    f.layout.value[STRETCH] = 1;
    return f;
}

static fixture begin(const char *plugin) {
    return begin_scaled(plugin, 1);
}

static void end(fixture *f) {
    f->ui->cleanup(f->handle);
    XCloseDisplay(f->display);
    dlclose(f->library);
}

/* Sends a patch:Set of a property to the window. */
static void announce(fixture *f, const char *property, const char *type, const char *text) {
    LV2_Atom_Forge forge;
    LV2_Atom_Forge_Frame object;
    uint8_t buffer[2048] __attribute__((aligned(8)));
    lv2_atom_forge_init(&forge, &map);
    lv2_atom_forge_set_buffer(&forge, buffer, sizeof buffer);
    lv2_atom_forge_object(&forge, &object, 0, map_uri(NULL, LV2_PATCH__Set));
    lv2_atom_forge_key(&forge, map_uri(NULL, LV2_PATCH__property));
    lv2_atom_forge_urid(&forge, map_uri(NULL, property));
    lv2_atom_forge_key(&forge, map_uri(NULL, LV2_PATCH__value));
    lv2_atom_forge_typed_string(&forge, map_uri(NULL, type), text, (uint32_t)strlen(text));
    lv2_atom_forge_pop(&forge, &object);
    uint32_t size = lv2_atom_total_size((const LV2_Atom *)(const void *)buffer);
    LV2_URID transfer = map_uri(NULL, "http://lv2plug.in/ns/ext/atom#eventTransfer");
    f->ui->port_event(f->handle, NOTIFY, size, transfer, buffer);
    for (uint32_t shorter = 0; shorter < size; shorter += 4) { /* a message that is cut off is ignored */
        uint8_t *exact = malloc(size);
        CHECK(exact, "no memory");
        memcpy(exact, buffer, size);
        f->ui->port_event(f->handle, NOTIFY, shorter, transfer, exact);
        free(exact);
    }
    f->idle->idle(f->handle);
}

/* Announces a response and waits until its envelope has been read. */
static void show(fixture *f, const char *path) {
    announce(f, RESPONSE_URI, LV2_ATOM__Path, path);
    for (int i = 0; i < 50; i++) {
        struct timespec moment = {0, 2000000};
        nanosleep(&moment, NULL);
        f->idle->idle(f->handle);
    }
}

/* Returns the color of a pixel of the window, 0xRRGGBB. */
static unsigned long pixel(fixture *f, double x, double y) {
    f->idle->idle(f->handle);
    XSync(f->display, False);
    XImage *image = XGetImage(f->display, (Window)f->widget, (int)x, (int)y, 1, 1, AllPlanes, ZPixmap);
    CHECK(image, "no pixel at %g, %g", x, y);
    unsigned long rgb = XGetPixel(image, 0, 0) & 0xffffff;
    XDestroyImage(image);
    return rgb;
}

/* Returns whether a pixel has a color, or gets it soon: the window draws through a connection of its own. */
static bool becomes(fixture *f, double x, double y, unsigned long rgb) {
    const struct timespec moment = {0, 1000000};
    for (int i = 0; i < 2000 && pixel(f, x, y) != rgb; i++)
        nanosleep(&moment, NULL);
    return pixel(f, x, y) == rgb;
}

/* Sends one mouse event and lets the window handle it. */
static void mouse(fixture *f, int type, double x, double y, unsigned which, Time when) {
    XEvent e = {.xbutton = {.type = type,
                            .window = (Window)f->widget,
                            .root = DefaultRootWindow(f->display),
                            .time = when,
                            .x = (int)lrint(x),
                            .y = (int)lrint(y),
                            .button = which,
                            .same_screen = True}};
    if (type == MotionNotify)
        e.xmotion.state = 0;
    long mask = type == MotionNotify ? ButtonMotionMask : type == ButtonPress ? ButtonPressMask : ButtonReleaseMask;
    assert_true(XSendEvent(f->display, (Window)f->widget, False, mask, &e));
    XSync(f->display, False);
    for (int i = 0; i < 3; i++)
        f->idle->idle(f->handle);
}

/* Presses a key. */
static void key(fixture *f, KeySym symbol, unsigned state) {
    XEvent e = {.xkey = {.type = KeyPress,
                         .display = f->display,
                         .window = (Window)f->widget,
                         .root = DefaultRootWindow(f->display),
                         .keycode = XKeysymToKeycode(f->display, symbol),
                         .state = state,
                         .same_screen = True}};
    CHECK(e.xkey.keycode, "the keyboard lacks key %lx", symbol);
    assert_true(XSendEvent(f->display, (Window)f->widget, False, KeyPressMask, &e));
    XSync(f->display, False);
    for (int i = 0; i < 3; i++)
        f->idle->idle(f->handle);
}

/* Presses the keys of a text of letters, digits and - . , / */
static void type(fixture *f, const char *text) {
    for (; *text; text++)
        key(f,
            *text == '-'   ? XK_minus
            : *text == '.' ? XK_period
            : *text == ',' ? XK_comma
            : *text == '/' ? XK_slash
                           : (KeySym)*text,
            0);
}

static void drag(fixture *f, double x, double y, double to_x, double to_y) {
    static Time when;
    when += 10000;
    mouse(f, ButtonPress, x, y, Button1, when);
    mouse(f, MotionNotify, to_x, to_y, 0, when + 10);
    mouse(f, ButtonRelease, to_x, to_y, Button1, when + 20);
}

static void handles_and_knobs_write_the_controls(void **state) {
    (void)state;
    static const char *const plugins[] = {"urn:gpuconv:stereo", "urn:gpuconv:mono"};
    for (int k = 0; k < COUNT(plugins); k++) {
        fixture f = begin(plugins[k]);
        guarded taps = guarded_new(2, 48000);
        for (int c = 0; c < 2; c++)
            for (int i = 0; i < 48000; i++)
                taps.channel[c][i] = 0.5f;
        const char *path = files_path("%s", "second.wav");
        files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps);
        guarded_free(&taps);
        show(&f, path);
        const float *edit = written.value;
        rectangle w = window_wave(&f.layout);
        drag(&f, w.x, w.y + 5, w.x + 0.25 * w.w, w.y + 5);
        CHECK(fabsf(edit[START] - 0.25f) < 0.003f, "start %g", (double)edit[START]);
        drag(&f, w.x + w.w, w.y + 20, w.x + 0.75 * w.w, w.y + 20);
        CHECK(fabsf(edit[LENGTH] - 0.5f) < 0.005f, "length %g", (double)edit[LENGTH]);
        drag(&f, w.x + 0.75 * w.w, w.y + w.h - 6, w.x + 0.5 * w.w, w.y + w.h - 6);
        CHECK(fabsf(edit[FADE] - 0.25f) < 0.005f, "fade %g", (double)edit[FADE]);
        drag(&f, w.x + 0.25 * w.w, w.y + 5, w.x + 0.5 * w.w, w.y + 5); /* the end stays */
        CHECK(fabsf(edit[START] + edit[LENGTH] - 0.75f) < 0.006f, "end %g", (double)(edit[START] + edit[LENGTH]));
        rectangle wet = window_knob(&f.layout, KNOB_WET), stretch = window_knob(&f.layout, 1);
        drag(&f, wet.x + 30, wet.y + 50, wet.x + 30, wet.y + 150);
        CHECK(fabsf(written.value[WET] + 57) < 0.5f, "wet %g",
              (double)written.value[WET]); /* 100 of 200 pixels of 114 dB */
        drag(&f, stretch.x + 30, stretch.y + 50, stretch.x + 30, stretch.y);
        CHECK(fabsf(edit[STRETCH] - 2) < 0.02f, "stretch %g", (double)edit[STRETCH]); /* 50 of 200 of a factor 16 */
        mouse(&f, ButtonPress, stretch.x + 30, stretch.y + 50, Button1, 1000000);
        mouse(&f, ButtonRelease, stretch.x + 30, stretch.y + 50, Button1, 1000010);
        mouse(&f, ButtonPress, stretch.x + 30, stretch.y + 50, Button1, 1000100);
        CHECK(edit[STRETCH] == 1, "a double click does not reset: %g", (double)edit[STRETCH]);
        mouse(&f, ButtonRelease, stretch.x + 30, stretch.y + 50, Button1, 1000110);
        for (int twice = 0; twice < 2; twice++) {
            mouse(&f, ButtonPress, w.x + 0.5 * w.w, w.y + 5, Button1, (Time)(1100000 + 100 * twice));
            mouse(&f, ButtonRelease, w.x + 0.5 * w.w, w.y + 5, Button1, (Time)(1100010 + 100 * twice));
        }
        CHECK(edit[START] == 0, "a double click does not reset the start: %g", (double)edit[START]);
        rectangle bypass = window_button(&f.layout, BYPASS);
        written.value[ENABLED] = 1;
        drag(&f, bypass.x + 5, bypass.y + 5, bypass.x, bypass.y);
        assert_true(edit[ENABLED] == 0);
        drag(&f, bypass.x + 5, bypass.y + 5, bypass.x, bypass.y);
        assert_true(edit[ENABLED] == 1);
        end(&f);
    }
}

static void the_list_walks_folders_and_chooses_files(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    guarded taps = guarded_new(1, 10);
    memset(taps.channel[0], 0, 10 * sizeof(float));
    taps.channel[0][0] = 1;
    assert_int_equal(mkdir(files_path("%s", "rooms"), 0700), 0);
    static const char *const names[] = {"rooms/b.wav", "rooms/a.wav", "rooms/.hidden.wav"};
    for (int i = 0; i < COUNT(names); i++)
        files_write(files_path("%s", names[i]), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps);
    guarded_free(&taps);
    FILE *other = fopen(files_path("%s", "rooms/picture.png"), "w");
    CHECK(other && fclose(other) == 0, "no file");
    assert_int_equal(mkdir(files_path("%s", "rooms/inner"), 0700), 0);
    show(&f, files_path("%s", "rooms/b.wav")); /* .. inner a.wav b.wav */
    rectangle l = window_list(&f.layout);
    drag(&f, l.x + 20, l.y + 2.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/rooms/a.wav"), "chose %s", written.path);
    drag(&f, l.x + 20, l.y + 1.5 * ROW, l.x, l.y); /* inner: .. only */
    written.path[0] = '\0';
    drag(&f, l.x + 20, l.y + 2.5 * ROW, l.x, l.y);
    assert_string_equal(written.path, "");
    drag(&f, l.x + 20, l.y + 0.5 * ROW, l.x, l.y);
    drag(&f, l.x + 20, l.y + 3.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/rooms/b.wav"), "chose %s", written.path);
    for (int i = 0; i < 10; i++) /* the list is shorter than its frame: it does not scroll */
        mouse(&f, ButtonPress, l.x + 20, l.y + 20, Button5, (Time)(2000000 + i));
    drag(&f, l.x + 20, l.y + 2.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/rooms/a.wav"), "chose %s", written.path);
    end(&f);
}

static bool overlap(rectangle a, rectangle b) {
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

static void nothing_covers_anything_at_any_size(void **state) {
    (void)state;
    static const int sizes[][2] = {
        {WINDOW_LEAST_WIDTH, WINDOW_LEAST_HEIGHT}, {700, 425}, {WINDOW_WIDTH, WINDOW_HEIGHT}, {1600, 900}};
    for (int s = 0; s < 2 * COUNT(sizes); s++) {
        window w = {.width = sizes[s / 2][0], .height = sizes[s / 2][1], .form = {.is_space = s % 2}};
        w.panel = &window_panels[s % 2];
        rectangle r[3 + KNOBS_MOST + BUTTONS_MOST + 4] = {window_list(&w), window_wave(&w), window_search(&w)};
        int count = 3;
        for (int i = 0; i < w.panel->knobs; i++)
            r[count++] = window_knob(&w, i);
        for (int i = 0; i < w.panel->buttons; i++)
            r[count++] = window_button(&w, i);
        for (int i = 0; i < 4; i++)
            r[count++] = window_meter(&w, i);
        for (int i = 0; i < count; i++) {
            CHECK(r[i].x >= 0 && r[i].y >= 0 && r[i].x + r[i].w <= w.width && r[i].y + r[i].h <= w.height &&
                      r[i].w >= 14 && r[i].h >= 20,
                  "part %d is not in the window of %d x %d", i, w.width, w.height);
            for (int k = 0; k < i; k++)
                CHECK(!overlap(r[i], r[k]), "part %d covers part %d at %d x %d", i, k, w.width, w.height);
        }
        CHECK((window_knob(&w, 0).h > KNOB_HEIGHT) == (w.width > WINDOW_WIDTH), "knobs of %g at %d x %d",
              window_knob(&w, 0).h, w.width, w.height);
    }
}

static void each_channel_is_seen(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    guarded taps = guarded_new(2, 4800);
    for (int i = 0; i < 4800; i++) {
        taps.channel[0][i] = 0.5f;
        taps.channel[1][i] = i < 2400 ? 0.5f : 0;
    }
    const char *path = files_path("%s", "half.wav");
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps);
    guarded_free(&taps);
    show(&f, path);
    const rectangle r = window_wave(&f.layout);
    static const unsigned long colors[2][2] = {{0x4c8bc7, 0x4c8bc7},
                                               {0x4a8a6b, 0x17191c}}; /* of a channel, of a half */
    for (int c = 0; c < 2; c++)
        for (int half = 0; half < 2; half++) {
            const double x = r.x + r.w * (0.3 + 0.4 * half), y = r.y + r.h * (0.4 + 0.5 * c);
            CHECK(becomes(&f, x, y, colors[c][half]), "channel %d, half %d: %lx", c, half, pixel(&f, x, y));
        }
    end(&f);
}

static void the_list_begins_with_the_included_responses(void **state) {
    (void)state;
    char state_home[1024];
    (void)snprintf(state_home, sizeof state_home, "%s", getenv("XDG_STATE_HOME"));
    assert_int_equal(setenv("XDG_STATE_HOME", files_path("%s", "never"), 1), 0);
    char installed[1024];
    guarded taps = guarded_new(1, 10);
    assert_int_equal(mkdir(files_path("%s", "installed"), 0700), 0);
    assert_int_equal(mkdir(files_path("%s", "installed/impulses"), 0700), 0);
    files_write(files_path("%s", "installed/default.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps);
    files_write(files_path("%s", "installed/impulses/hall.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps);
    guarded_free(&taps);
    (void)snprintf(installed, sizeof installed, "%s/", files_path("%s", "installed"));
    bundle = installed;
    fixture f = begin("urn:gpuconv:stereo");
    bundle = PLUGIN_BUNDLE "/";
    show(&f, files_path("%s", "installed/default.wav"));
    const rectangle l = window_list(&f.layout);
    drag(&f, l.x + 20, l.y + 1.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/impulses/hall.wav"), "chose %s", written.path);
    end(&f);
    assert_int_equal(setenv("XDG_STATE_HOME", state_home, 1), 0);
}

static void a_scaled_window_is_larger_and_its_parts_follow(void **state) {
    (void)state;
    static const float scales[] = {1, 1.5f, 2};
    for (int k = 0; k < COUNT(scales); k++) {
        fixture f = begin_scaled("urn:gpuconv:stereo", scales[k]);
        const double scale = (double)scales[k];
        XWindowAttributes a;
        assert_true(XGetWindowAttributes(f.display, (Window)f.widget, &a));
        CHECK(fabs(a.width - WINDOW_WIDTH * scale) < 1 && fabs(a.height - WINDOW_HEIGHT * scale) < 1,
              "scale %g: %d x %d", scale, a.width, a.height);
        rectangle b = window_button(&f.layout, AUTOGAIN_BUTTON), wet = window_knob(&f.layout, KNOB_WET);
        drag(&f, (b.x + 5) * scale, (b.y + 5) * scale, 0, 0);
        assert_true(written.value[AUTOGAIN] == 1);
        drag(&f, (wet.x + 30) * scale, (wet.y + 30) * scale, (wet.x + 30) * scale, (wet.y + 130) * scale);
        CHECK(fabsf(written.value[WET] + 57) < 0.6f, "scale %g: wet %g", scale, (double)written.value[WET]);
        end(&f);
    }
}

static void the_keyboard_reaches_every_part(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    const float *edit = written.value;
    key(&f, XK_Tab, ShiftMask); /* the last part: autogain */
    key(&f, XK_space, 0);
    assert_true(edit[AUTOGAIN] == 1);
    key(&f, XK_Tab, 0); /* the list, and without a response no handles */
    key(&f, XK_Tab, 0);
    key(&f, XK_Down, 0); /* the first knob */
    CHECK(fabsf(edit[TRIM] + 1.2f) < 0.01f, "trim %g", (double)edit[TRIM]);
    key(&f, XK_Tab, 0);
    for (int i = 0; i < 25; i++)
        key(&f, XK_Up, 0);
    CHECK(fabsf(edit[STRETCH] - 2) < 0.01f, "stretch %g", (double)edit[STRETCH]);
    key(&f, XK_Home, 0);
    assert_true(edit[STRETCH] == 1);
    key(&f, XK_Escape, 0); /* nothing has the keyboard */
    key(&f, XK_Up, 0);
    assert_true(edit[STRETCH] == 1);
    rectangle wet = window_knob(&f.layout, KNOB_WET);
    written.value[WET] = 0;
    mouse(&f, ButtonPress, wet.x + 30, wet.y + 30, Button1, 3000000);
    mouse(&f, MotionNotify, wet.x + 30, wet.y + 90, 0, 3000010);
    assert_true(written.value[WET] < -30);
    key(&f, XK_Escape, 0); /* what is dragged comes back */
    assert_true(written.value[WET] == 0);
    mouse(&f, MotionNotify, wet.x + 30, wet.y + 190, 0, 3000020);
    assert_true(written.value[WET] == 0);
    end(&f);
}

static void an_error_is_shown_until_it_is_over(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    rectangle r = window_wave(&f.layout);
    const double y = r.y + r.h / 2;
    const unsigned long alarm = 0xe64738, plain = 0x17191c;
    CHECK(becomes(&f, r.x + 3, y, plain), "an error at once");
    for (int k = 0; k < 2; k++) {
        announce(&f, ERROR_URI, LV2_ATOM__String, "/music/rooms/notes.wav: not a file of audio");
        CHECK(becomes(&f, r.x + 3, y, alarm), "%lx", pixel(&f, r.x + 3, y));
        if (k)
            key(&f, XK_Escape, 0);
        else
            announce(&f, ERROR_URI, LV2_ATOM__String, "");
        CHECK(becomes(&f, r.x + 3, y, plain), "the error stays");
    }
    end(&f);
}

static void names_are_in_natural_order_and_recent_files_are_kept(void **state) {
    (void)state;
    static const char *const sorted[] = {"..", "Hall 1.wav", "hall 2.wav", "hall 10.wav", "hall 010b.wav", "Room.wav"};
    char path[WINDOW_PATH_MOST], kept[WINDOW_PATH_MOST];
    folder list = {.count = 0};
    (void)snprintf(path, sizeof path, "%s", files_path("%s", "order"));
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 5; i > 0; i--) {
        FILE *file = fopen(files_path("order/%s", sorted[i]), "w");
        CHECK(file && fclose(file) == 0, "no file");
    }
    assert_true(folder_read(&list, path));
    assert_int_equal(list.count, COUNT(sorted));
    for (int i = 0; i < list.count; i++)
        assert_string_equal(list.entry[i].name, sorted[i]);
    folder_search(&list, "HALL 1");
    assert_int_equal(list.count, 2);
    assert_string_equal(folder_at(&list, 1)->name, "hall 10.wav");
    folder_free(&list);
    assert_int_equal(setenv("XDG_STATE_HOME", files_path("%s", "none"), 1), 0);
    assert_false(folder_recall(&list, kept));
    folder_remember(files_path("%s", "order/Room.wav"));
    folder_remember(files_path("%s", "order/hall 2.wav"));
    folder_remember(files_path("%s", "set.sofa"));
    folder_remember("/nowhere/at/all.wav");
    folder_remember(files_path("%s", "order/Room.wav"));
    assert_true(folder_recall(&list, kept));
    assert_string_equal(kept, path);
    assert_true(folder_read_recent(&list));
    assert_int_equal(list.count, 2); /* those that exist and are responses, the newest first */
    assert_string_equal(list.entry[0].name, files_path("%s", "order/Room.wav"));
    folder_free(&list);
    fixture f = begin("urn:gpuconv:stereo"); /* the plug-in's own response: the list has the folder of the last one */
    show(&f, PLUGIN_BUNDLE "/default.flac");
    rectangle l = window_list(&f.layout), recent = window_button(&f.layout, RECENT);
    drag(&f, l.x + 20, l.y + 1.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/order/Hall 1.wav"), "chose '%s'", written.path);
    drag(&f, recent.x + 5, recent.y + 5, recent.x, recent.y);
    drag(&f, l.x + 20, l.y + 1.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/order/Room.wav"), "chose '%s' of the recent ones", written.path);
    drag(&f, recent.x + 5, recent.y + 5, recent.x, recent.y); /* the folder again */
    show(&f, files_path("%s", "order/Room.wav"));
    drag(&f, l.x + 20, l.y + 2.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/order/hall 2.wav"), "chose '%s'", written.path);
    end(&f);
}

/* In deep/: one/two/three/four/five/six/ with a file each, a link to deep/ itself, and a hidden folder. */
static void a_search_finds_what_is_in_the_folders_below(void **state) {
    (void)state;
    static const char *const parts[] = {"deep", "one", "two", "three", "four", "five", "six", "seven"};
    char place[WINDOW_PATH_MOST] = "", path[WINDOW_PATH_MOST];
    folder list = {.count = 0};
    for (int i = 0; i < COUNT(parts); i++) {
        (void)snprintf(place + strlen(place), sizeof place - strlen(place), "%s%s", i ? "/" : "", parts[i]);
        assert_int_equal(mkdir(files_path("%s", place), 0700), 0);
        (void)snprintf(path, sizeof path, "%s/chapel %d.wav", place, i);
        FILE *file = fopen(files_path("%s", path), "w");
        CHECK(file && fclose(file) == 0, "no file");
    }
    assert_int_equal(symlink(".", files_path("%s", "deep/one/link")), 0);
    assert_int_equal(mkdir(files_path("%s", "deep/.chapel"), 0700), 0);
    assert_true(folder_read(&list, files_path("%s", "deep")));
    assert_int_equal(list.count, 3); /* .. one chapel 0.wav */
    folder_search(&list, "Chapel");
    assert_int_equal(list.count, 6); /* five levels down, that of the folder first */
    assert_string_equal(folder_at(&list, 0)->name, "chapel 0.wav");
    assert_string_equal(folder_at(&list, 1)->name, "one/chapel 1.wav");
    assert_true(folder_path_of(&list, folder_at(&list, 2), path));
    assert_string_equal(path, files_path("%s", "deep/one/two/chapel 2.wav"));
    folder_search(&list, "three");
    assert_int_equal(list.count, 1); /* a folder, but not what it contains */
    folder_search(&list, "");
    assert_int_equal(list.count, 3);
    folder_free(&list);
    fixture f = begin("urn:gpuconv:stereo");
    rectangle l = window_list(&f.layout);
    show(&f, files_path("%s", "deep/chapel 0.wav"));
    type(&f, "pel");
    drag(&f, l.x + 20, l.y + 2.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/deep/one/two/chapel 2.wav"), "chose '%s'", written.path);
    end(&f);
}

static void files_that_are_no_response_are_shown_with_the_reason(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    show(&f, "/nowhere/at/all.wav");
    int writes = written.writes;
    rectangle w = window_wave(&f.layout);
    drag(&f, w.x, w.y + 5, w.x + 100, w.y + 5); /* there is no handle to drag */
    assert_int_equal(written.writes, writes);
    end(&f);
}

static void values_searches_and_paths_are_typed(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    rectangle wet = window_knob(&f.layout, KNOB_WET), field = window_search(&f.layout);
    drag(&f, wet.x + 30, wet.y + 30, wet.x + 30, wet.y + 30);
    type(&f, "-12.5");
    key(&f, XK_BackSpace, 0);
    assert_true(written.value[WET] == 0);
    key(&f, XK_Return, 0);
    CHECK(written.value[WET] == -12, "typed: %g", (double)written.value[WET]);
    type(&f, "-3,25");
    key(&f, XK_Return, 0);
    CHECK(written.value[WET] == -3.25F, "with a comma: %g", (double)written.value[WET]);
    type(&f, "1.2.3"); /* no number, as is a sign alone */
    key(&f, XK_Return, 0);
    type(&f, "-");
    key(&f, XK_Return, 0);
    CHECK(written.value[WET] == -3.25F, "two points: %g", (double)written.value[WET]);
    type(&f, "-12");
    key(&f, XK_Return, 0);
    type(&f, "99");
    key(&f, XK_Escape, 0);
    key(&f, XK_Return, 0);
    assert_true(written.value[WET] == -12);
    type(&f, "99");
    key(&f, XK_Tab, 0); /* also takes it, within the range */
    assert_true(written.value[WET] == 24);
    show(&f, files_path("%s", "order/Room.wav"));
    drag(&f, field.x + 5, field.y + 5, field.x, field.y);
    type(&f, "l10"); /* hall 10.wav, hall 010b.wav: no, the name has a blank */
    key(&f, XK_BackSpace, 0);
    key(&f, XK_BackSpace, 0);
    key(&f, XK_Down, 0);
    written.path[0] = '\0';
    key(&f, XK_Return, 0);
    CHECK(strstr(written.path, "/order/hall 2.wav"), "found '%s'", written.path);
    key(&f, XK_Escape, 0);
    type(&f, "/none.wav");
    key(&f, XK_Return, 0);
    assert_string_equal(written.path, "/none.wav"); /* the plug-in says why it is not loaded */
    end(&f);
}

static void the_second_response_is_chosen_apart(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    rectangle l = window_list(&f.layout), second = window_button(&f.layout, SECOND);
    show(&f, files_path("%s", "order/Room.wav"));
    drag(&f, second.x + 5, second.y + 5, second.x, second.y);
    drag(&f, l.x + 20, l.y + 1.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/order/Hall 1.wav") && written.second, "chose %s", written.path);
    drag(&f, second.x + 5, second.y + 5, second.x, second.y);
    drag(&f, l.x + 20, l.y + 2.5 * ROW, l.x, l.y);
    CHECK(strstr(written.path, "/order/hall 2.wav") && !written.second, "chose %s", written.path);
    rectangle unload = window_button(&f.layout, UNLOAD);
    announce(&f, SECOND_URI, LV2_ATOM__Path, files_path("%s", "order/Hall 1.wav"));
    const int writes = written.writes;
    drag(&f, unload.x + 5, unload.y + 5, unload.x, unload.y); /* not there while the first one is shown */
    assert_int_equal(written.writes, writes);
    drag(&f, second.x + 5, second.y + 5, second.x, second.y);
    drag(&f, unload.x + 5, unload.y + 5, unload.x, unload.y);
    CHECK(!*written.path && written.second && written.writes == writes + 1, "wrote '%s'", written.path);
    announce(&f, SECOND_URI, LV2_ATOM__Path, "");
    drag(&f, unload.x + 5, unload.y + 5, unload.x, unload.y); /* and there is no other to unload */
    assert_int_equal(written.writes, writes + 1);
    end(&f);
}

/* Sends a message of the protocol Xdnd to the window. */
static void send_drop(fixture *f, const char *name, Window source) {
    XEvent e = {.xclient = {.type = ClientMessage,
                            .window = (Window)f->widget,
                            .message_type = XInternAtom(f->display, name, False),
                            .format = 32,
                            .data.l = {(long)source, 0, CurrentTime}}};
    XSendEvent(f->display, (Window)f->widget, False, NoEventMask, &e);
    XSync(f->display, False);
    f->idle->idle(f->handle);
}

/* Waits for an event of a kind. */
static XEvent wait_for(fixture *f, int type) {
    XEvent e = {.type = 0};
    for (int i = 0; i < 1000 && e.type != type; i++) {
        const struct timespec moment = {0, 1000000};
        f->idle->idle(f->handle);
        if (XPending(f->display))
            XNextEvent(f->display, &e);
        else
            nanosleep(&moment, NULL);
    }
    CHECK(e.type == type, "no event %d", type);
    return e;
}

static void a_file_is_dropped_on_the_window(void **state) {
    (void)state;
    static const char list[] = "file:///music/My%20hall.wav\r\nfile:///music/other.wav\r\n";
    fixture f = begin("urn:gpuconv:stereo");
    Window source = XCreateSimpleWindow(f.display, DefaultRootWindow(f.display), 0, 0, 10, 10, 0, 0, 0);
    Atom selection = XInternAtom(f.display, "XdndSelection", False);
    XSetSelectionOwner(f.display, selection, source, CurrentTime);
    send_drop(&f, "XdndPosition", source);
    XEvent e = wait_for(&f, ClientMessage);
    assert_true(e.xclient.message_type == XInternAtom(f.display, "XdndStatus", False) && (e.xclient.data.l[1] & 1));
    send_drop(&f, "XdndDrop", source);
    e = wait_for(&f, SelectionRequest);
    const XSelectionRequestEvent request = e.xselectionrequest;
    assert_true(request.target == XInternAtom(f.display, "text/uri-list", False));
    XChangeProperty(f.display, request.requestor, request.property, request.target, 8, PropModeReplace,
                    (const unsigned char *)list, sizeof list - 1);
    XEvent given = {.xselection = {.type = SelectionNotify,
                                   .requestor = request.requestor,
                                   .selection = request.selection,
                                   .target = request.target,
                                   .property = request.property}};
    XSendEvent(f.display, request.requestor, False, NoEventMask, &given);
    e = wait_for(&f, ClientMessage);
    assert_true(e.xclient.message_type == XInternAtom(f.display, "XdndFinished", False) && e.xclient.data.l[1] == 1);
    assert_string_equal(written.path, "/music/My hall.wav");
    send_drop(&f, "XdndPosition", 0x12345); /* a source that has gone does not end the program */
    send_drop(&f, "XdndDrop", 0x12345);
    send_drop(&f, "XdndNothing", 0);
    end(&f);
}

static void sources_are_dragged_around_the_head(void **state) {
    (void)state;
    static const char *const plugins[] = {"urn:gpuconv:space-stereo", "urn:gpuconv:space-mono"};
    for (int k = 0; k < COUNT(plugins); k++) {
        fixture f = begin(plugins[k]);
        show(&f, PLUGIN_BUNDLE "/default.sofa");
        double x, y, to_x, to_y;
        window_direction_to_xy(&f.layout, 0, 0, &x, &y);
        window_direction_to_xy(&f.layout, -120, 30, &to_x, &to_y);
        drag(&f, x, y, to_x, to_y);
        CHECK(fabsf(written.value[AZIMUTH] + 120) < 1 && fabsf(written.value[ELEVATION] - 30) < 1, "%g, %g",
              (double)written.value[AZIMUTH], (double)written.value[ELEVATION]);
        rectangle head = window_button(&f.layout, 2), spread = window_knob(&f.layout, 2);
        drag(&f, head.x + 5, head.y + 5, head.x, head.y);
        assert_true(written.value[TRACKED] == 1);
        drag(&f, spread.x + 30, spread.y + 30, spread.x + 30, spread.y + 30);
        type(&f, "45");
        key(&f, XK_Return, 0);
        assert_true(written.value[SPREAD] == 45);
        key(&f, XK_Home, 0);
        assert_true(written.value[SPREAD] == (k ? 0 : 60));
        end(&f);
    }
    for (int i = 1; i < COUNT(mapped); i++)
        free(mapped[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_and_knobs_write_the_controls),
        cmocka_unit_test(the_list_walks_folders_and_chooses_files),
        cmocka_unit_test(nothing_covers_anything_at_any_size),
        cmocka_unit_test(each_channel_is_seen),
        cmocka_unit_test(the_list_begins_with_the_included_responses),
        cmocka_unit_test(a_scaled_window_is_larger_and_its_parts_follow),
        cmocka_unit_test(the_keyboard_reaches_every_part),
        cmocka_unit_test(an_error_is_shown_until_it_is_over),
        cmocka_unit_test(names_are_in_natural_order_and_recent_files_are_kept),
        cmocka_unit_test(a_search_finds_what_is_in_the_folders_below),
        cmocka_unit_test(files_that_are_no_response_are_shown_with_the_reason),
        cmocka_unit_test(values_searches_and_paths_are_typed),
        cmocka_unit_test(the_second_response_is_chosen_apart),
        cmocka_unit_test(a_file_is_dropped_on_the_window),
        cmocka_unit_test(sources_are_dragged_around_the_head),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
