/* The LV2 plug-in's atom messages, read and written on the audio thread. */
#include "plugin.h"

#include <lv2/atom/atom.h>
#include <lv2/atom/util.h>
#include <string.h>

/* A position in atoms that another program wrote; every size in them is checked before it is used. */
typedef struct atom_cursor {
    const uint8_t *position;
    uint64_t left; /* bytes */
} atom_cursor;

/* Returns the next `size` bytes and skips the padding to a multiple of eight bytes. @return NULL if fewer bytes are
 * left */
static const void *read_bytes(atom_cursor *c, uint64_t size) {
    uint64_t padded = (size + 7) & ~(uint64_t)7;
    const void *bytes = c->position;
    if (size > c->left)
        return NULL;
    padded = padded < c->left ? padded : c->left;
    c->position += padded;
    c->left -= padded;
    return bytes;
}

/* Returns the header of an event or a property, which has `size` bytes and ends with an atom, and skips the atom's
 * body.
 * @param atom receives the atom @return NULL if the bytes left are too few */
static const void *read_atom(atom_cursor *c, size_t size, const LV2_Atom **atom) {
    if (size > c->left)
        return NULL;
    const uint8_t *header = c->position;
    *atom = (const LV2_Atom *)(const void *)(header + size - sizeof **atom); /* the position is a multiple of 8 bytes */
    return read_bytes(c, size + (uint64_t)(*atom)->size);
}

/* Schedules a load if the object is a patch:Set of the response to a path. */
static void read_set(plugin *p, atom_cursor object) {
    const LV2_Atom *property = NULL, *value = NULL, *atom;
    const LV2_Atom_Property_Body *item;
    while ((item = read_atom(&object, sizeof *item, &atom))) {
        if (item->key == p->uri.property)
            property = atom;
        else if (item->key == p->uri.value)
            value = atom;
    }
    if (!property || property->type != p->uri.urid || property->size < sizeof(LV2_URID) || !value ||
        value->type != p->uri.path)
        return;
    const char *path = (const char *)(value + 1);
    for (int s = 0; s < (p->form.is_space ? 1 : SLOTS); s++)
        if (*(const LV2_URID *)(property + 1) == p->uri.response[s])
            gc_lv2_schedule_load(p, s, path, strnlen(path, value->size));
}

void gc_lv2_read_messages(plugin *p) {
    if (!p->control || !p->map || p->control->atom.size < sizeof(LV2_Atom_Sequence_Body))
        return;
    atom_cursor events = {(const uint8_t *)(&p->control->body + 1),
                          p->control->atom.size - (uint64_t)sizeof(LV2_Atom_Sequence_Body)};
    const LV2_Atom *atom;
    while (read_atom(&events, sizeof(LV2_Atom_Event), &atom)) {
        if (!lv2_atom_forge_is_object_type(&p->forge, atom->type) || atom->size < sizeof(LV2_Atom_Object_Body))
            continue;
        const LV2_Atom_Object_Body *body = (const LV2_Atom_Object_Body *)(atom + 1);
        if (body->otype == p->uri.get)
            p->announce = true;
        else if (body->otype == p->uri.set)
            read_set(p, (atom_cursor){(const uint8_t *)(body + 1), atom->size - (uint64_t)sizeof *body});
    }
}

/* Writes a patch:Set of a property. @return whether it fitted into the buffer */
static bool write_property(plugin *p, LV2_URID property, LV2_URID type, const char *text) {
    LV2_Atom_Forge_Frame object;
    LV2_Atom_Forge *f = &p->forge;
    bool good = lv2_atom_forge_frame_time(f, 0) && lv2_atom_forge_object(f, &object, 0, p->uri.set) &&
                lv2_atom_forge_key(f, p->uri.property) && lv2_atom_forge_urid(f, property) &&
                lv2_atom_forge_key(f, p->uri.value) &&
                lv2_atom_forge_typed_string(f, type, text, (uint32_t)strlen(text));
    if (good)
        lv2_atom_forge_pop(f, &object);
    return good;
}

/* Writes the responses and the error. @return whether they fitted into the buffer */
static bool write_properties(plugin *p) {
    bool good = true;
    for (int s = 0; s < SLOTS; s++)
        if (*p->slot[s].announced_path || p->slot[s].emptied)
            good = good && write_property(p, p->uri.response[s], p->uri.path, p->slot[s].announced_path);
    return good && write_property(p, p->uri.error, p->uri.string, p->error);
}

void gc_lv2_write_messages(plugin *p) {
    if (!p->notify || !p->map)
        return;
    uint32_t capacity = p->notify->atom.size;
    LV2_Atom_Forge_Frame sequence;
    /* If the message does not fit, the second attempt writes an empty sequence. */
    for (int attempts = p->announce ? 2 : 1; attempts > 0; attempts--) {
        lv2_atom_forge_set_buffer(&p->forge, (uint8_t *)p->notify, capacity);
        if (!lv2_atom_forge_sequence_head(&p->forge, &sequence, 0)) {
            p->notify->atom.size = 0;
            return;
        }
        if (attempts == 1 || write_properties(p))
            break;
    }
    p->forge.stack = NULL; /* discards the frames of a message that did not fit */
    p->announce = false;
}
