/* The plug-in's window as an LV2 UI: instances, and messages between it and the plug-in. */
#include "window.h"

#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/options/options.h>
#include <lv2/ui/ui.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ui {
    window window;
    LV2UI_Write_Function write;
    LV2UI_Controller controller;
    LV2_Atom_Forge forge;
    LV2_URID transfer;
    lv2_uris uri;
} ui;

static void set_value(void *context, port number, float value) {
    ui *u = context;
    u->write(u->controller, gc_lv2_port_index(u->window.form, number), sizeof value, 0, &value);
}

/* Sends a patch:Set of a response, or a patch:Get for a NULL path, to the plug-in. */
static void send_path(ui *u, int slot, const char *path) {
    uint8_t buffer[WINDOW_PATH_MOST + 256] __attribute__((aligned(8)));
    LV2_Atom_Forge_Frame object;
    LV2_Atom_Forge *f = &u->forge;
    lv2_atom_forge_set_buffer(f, buffer, sizeof buffer);
    if (path ? !gc_lv2_write_set(f, &u->uri, u->uri.response[slot], u->uri.path, path)
             : !lv2_atom_forge_object(f, &object, 0, u->uri.get))
        return;
    if (!path)
        lv2_atom_forge_pop(f, &object);
    const LV2_Atom *atom = (const LV2_Atom *)(const void *)buffer;
    u->write(u->controller, CONTROL, lv2_atom_total_size(atom), u->transfer, atom);
}

static void set_path(void *context, int slot, const char *path) {
    send_path(context, slot, path);
}

static void cleanup(LV2UI_Handle handle) {
    ui *u = handle;
    window_close(&u->window);
    free(u);
}

/* Returns the host's scale factor; 0: it gives none. */
static double find_scale(const LV2_Options_Option *o, LV2_URID_Map *m) {
    const LV2_URID key = m->map(m->handle, LV2_UI__scaleFactor), type = m->map(m->handle, LV2_ATOM__Float);
    for (; o && (o->key || o->value); o++)
        if (o->key == key && o->type == type && o->size == sizeof(float) && o->value)
            return (double)*(const float *)o->value;
    return 0;
}

static LV2UI_Handle instantiate(const LV2UI_Descriptor *descriptor, const char *plugin, const char *bundle,
                                LV2UI_Write_Function write, LV2UI_Controller controller, LV2UI_Widget *widget,
                                const LV2_Feature *const *features) {
    LV2_URID_Map *map = NULL;
    const LV2UI_Resize *resize = NULL;
    const LV2_Options_Option *options = NULL;
    Window parent = 0;
    (void)descriptor;
    for (; features && *features; features++) {
        if (strcmp((*features)->URI, LV2_URID__map) == 0)
            map = (*features)->data;
        else if (strcmp((*features)->URI, LV2_UI__parent) == 0)
            parent = (Window)(uintptr_t)(*features)->data;
        else if (strcmp((*features)->URI, LV2_UI__resize) == 0)
            resize = (*features)->data;
        else if (strcmp((*features)->URI, LV2_OPTIONS__options) == 0)
            options = (*features)->data;
    }
    ui *u = map ? calloc(1, sizeof *u) : NULL;
    if (!u)
        return NULL;
    u->write = write;
    u->controller = controller;
    u->transfer = map->map(map->handle, LV2_ATOM__eventTransfer);
    u->uri = gc_lv2_map_uris(map, &u->forge);
    window *w = &u->window;
    w->set_value = set_value;
    w->set_path = set_path;
    w->context = u;
    w->form = gc_lv2_form(plugin);
    w->folder.sets = w->form.is_space;
    w->panel = &window_panels[w->form.is_space];
    w->scale = find_scale(options, map);
    (void)snprintf(w->bundle, sizeof w->bundle, "%s", bundle);
    w->value[ENABLED] = w->value[STRETCH] = 1;
    for (int i = 0; i < w->panel->knobs; i++)
        w->value[w->panel->knob[i].port] = (float)window_normal(w, i);
    for (int i = 0; i < 4; i++)
        w->value[PEAK_IN + i] = -90;
    if (!window_open(w, parent)) {
        cleanup(u);
        return NULL;
    }
    *widget = (LV2UI_Widget)w->id;
    if (resize)
        resize->ui_resize(resize->handle, (int)(WINDOW_WIDTH * w->scale), (int)(WINDOW_HEIGHT * w->scale));
    send_path(u, 0, NULL);
    return u;
}

/* Shows the response or the error if the message is the plug-in's patch:Set of it. */
static void receive(ui *u, const LV2_Atom *atom, uint32_t size) {
    const LV2_Atom *property = NULL, *value = NULL;
    if (size < sizeof(LV2_Atom_Object) || lv2_atom_total_size(atom) > size ||
        !lv2_atom_forge_is_object_type(&u->forge, atom->type))
        return;
    const LV2_Atom_Object *object = (const LV2_Atom_Object *)atom;
    if (object->body.otype != u->uri.set)
        return;
    lv2_atom_object_get(object, u->uri.property, &property, u->uri.value, &value, 0);
    if (!property || property->size != sizeof(LV2_URID) || !value || value->size < 1 || value->size > WINDOW_PATH_MOST)
        return;
    const LV2_URID which = ((const LV2_Atom_URID *)property)->body;
    const char *content = LV2_ATOM_BODY_CONST(value);
    if (content[value->size - 1] != '\0')
        return;
    for (int s = 0; s < SLOTS; s++)
        if (which == u->uri.response[s] && value->type == u->uri.path && (*content || s == 1))
            window_show_path(&u->window, s, content);
    if (which == u->uri.error && value->type == u->uri.string)
        window_show_error(&u->window, content);
}

static void port_event(LV2UI_Handle handle, uint32_t index, uint32_t size, uint32_t format, const void *data) {
    ui *u = handle;
    if (format == u->transfer) {
        receive(u, data, size);
    } else if (format == 0 && size == sizeof(float)) {
        uint32_t channel;
        const port number = gc_lv2_port_at(u->window.form, index, &channel);
        if (number >= PORTS || u->window.value[number] == *(const float *)data)
            return;
        u->window.value[number] = *(const float *)data;
        u->window.dirty = true;
    }
}

static int idle(LV2UI_Handle handle) {
    ui *u = handle;
    window_idle(&u->window);
    return 0;
}

static const void *extension(const char *uri) {
    static const LV2UI_Idle_Interface idle_interface = {idle};
    return strcmp(uri, LV2_UI__idleInterface) == 0 ? &idle_interface : NULL;
}

LV2_SYMBOL_EXPORT const LV2UI_Descriptor *lv2ui_descriptor(uint32_t index) {
    static const LV2UI_Descriptor descriptor = {WINDOW_URI, instantiate, cleanup, port_event, extension};
    return index == 0 ? &descriptor : NULL;
}
