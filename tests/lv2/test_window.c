/* Tests the plug-in's window with a minimal host on an X server: it asks for the response, lists its folder, and mouse
 * events change the controls and choose a file. */
#include "check.h"
#include "files.h"
#include "lv2/window/window.h"

#undef Bool /* of Xlib.h; a member of LV2_Atom_Forge has this name */

#include <dlfcn.h>
#include <lv2/atom/forge.h>
#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/patch/patch.h>
#include <lv2/ui/ui.h>
#include <lv2/urid/urid.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

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
    float value[64];
    int writes, gets;
    char path[1024];
} written;

static void write_port(LV2UI_Controller controller, uint32_t index, uint32_t size, uint32_t protocol,
                       const void *data) {
    (void)controller;
    written.writes++;
    if (protocol == 0) {
        assert_int_equal(size, sizeof(float));
        assert_true(index < COUNT(written.value));
        memcpy(&written.value[index], data, size);
        return;
    }
    const LV2_Atom_Object *object = data;
    const LV2_Atom *value = NULL;
    assert_int_equal(index, CONTROL);
    assert_int_equal(size, lv2_atom_total_size(data));
    written.gets += object->body.otype == map_uri(NULL, LV2_PATCH__Get);
    lv2_atom_object_get(object, map_uri(NULL, LV2_PATCH__value), &value, 0);
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
    uint32_t audio_ports;
} fixture;

static fixture begin(const char *plugin) {
    fixture f = {.layout = {.width = WINDOW_WIDTH, .height = WINDOW_HEIGHT},
                 .audio_ports = strstr(plugin, "mono") ? 3 : 4};
    memset(&written, 0, sizeof written);
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
    const LV2_Feature *features[] = {&feature, NULL};
    f.handle = f.ui->instantiate(f.ui, plugin, PLUGIN_BUNDLE "/", write_port, NULL, &f.widget, features);
    CHECK(f.handle, "no window");
    f.idle = f.ui->extension_data(LV2_UI__idleInterface);
    assert_int_equal(written.gets, 1);
    f.layout.wave.channels = 1;
    f.layout.wave.seconds = 1;
    f.layout.value[STRETCH] = 1;
    return f;
}

static void end(fixture *f) {
    f->ui->cleanup(f->handle);
    XCloseDisplay(f->display);
    dlclose(f->library);
}

/* Announces a response and waits until its envelope has been read. */
static void show(fixture *f, const char *path) {
    LV2_Atom_Forge forge;
    LV2_Atom_Forge_Frame object;
    uint8_t buffer[2048] __attribute__((aligned(8)));
    lv2_atom_forge_init(&forge, &map);
    lv2_atom_forge_set_buffer(&forge, buffer, sizeof buffer);
    lv2_atom_forge_object(&forge, &object, 0, map_uri(NULL, LV2_PATCH__Set));
    lv2_atom_forge_key(&forge, map_uri(NULL, LV2_PATCH__property));
    lv2_atom_forge_urid(&forge, map_uri(NULL, RESPONSE_URI));
    lv2_atom_forge_key(&forge, map_uri(NULL, LV2_PATCH__value));
    lv2_atom_forge_path(&forge, path, (uint32_t)strlen(path));
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
    for (int i = 0; i < 50; i++) {
        struct timespec moment = {0, 2000000};
        nanosleep(&moment, NULL);
        f->idle->idle(f->handle);
    }
}

/* Sends one mouse event and lets the window handle it. */
static void mouse(fixture *f, int type, double x, double y, unsigned button, Time when) {
    XEvent e = {.xbutton = {.type = type,
                            .window = (Window)f->widget,
                            .root = DefaultRootWindow(f->display),
                            .time = when,
                            .x = (int)lrint(x),
                            .y = (int)lrint(y),
                            .button = button,
                            .same_screen = True}};
    if (type == MotionNotify)
        e.xmotion.state = 0;
    long mask = type == MotionNotify ? ButtonMotionMask : type == ButtonPress ? ButtonPressMask : ButtonReleaseMask;
    assert_true(XSendEvent(f->display, (Window)f->widget, False, mask, &e));
    XSync(f->display, False);
    for (int i = 0; i < 3; i++)
        f->idle->idle(f->handle);
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
        const float *edit = &written.value[f.audio_ports];
        rectangle w = window_wave(&f.layout);
        drag(&f, w.x, w.y + 5, w.x + 0.25 * w.w, w.y + 5);
        CHECK(fabsf(edit[START] - 0.25f) < 0.003f, "start %g", (double)edit[START]);
        drag(&f, w.x + w.w, w.y + 20, w.x + 0.75 * w.w, w.y + 20);
        CHECK(fabsf(edit[LENGTH] - 0.5f) < 0.005f, "length %g", (double)edit[LENGTH]);
        drag(&f, w.x + 0.75 * w.w, w.y + w.h - 6, w.x + 0.5 * w.w, w.y + w.h - 6);
        CHECK(fabsf(edit[FADE] - 0.25f) < 0.005f, "fade %g", (double)edit[FADE]);
        drag(&f, w.x + 0.25 * w.w, w.y + 5, w.x + 0.5 * w.w, w.y + 5); /* the end stays */
        CHECK(fabsf(edit[START] + edit[LENGTH] - 0.75f) < 0.006f, "end %g", (double)(edit[START] + edit[LENGTH]));
        rectangle wet = window_knob(&f.layout, 3), stretch = window_knob(&f.layout, 1);
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
        rectangle bypass = window_bypass(&f.layout);
        written.value[f.audio_ports + ENABLED] = 1;
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

static void files_that_are_no_response_are_shown_with_the_reason(void **state) {
    (void)state;
    fixture f = begin("urn:gpuconv:stereo");
    show(&f, "/nowhere/at/all.wav");
    int writes = written.writes;
    rectangle w = window_wave(&f.layout);
    drag(&f, w.x, w.y + 5, w.x + 100, w.y + 5); /* there is no handle to drag */
    assert_int_equal(written.writes, writes);
    end(&f);
    for (int i = 1; i < COUNT(mapped); i++)
        free(mapped[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_and_knobs_write_the_controls),
        cmocka_unit_test(the_list_walks_folders_and_chooses_files),
        cmocka_unit_test(files_that_are_no_response_are_shown_with_the_reason),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
