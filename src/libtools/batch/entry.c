/* Entries of a manifest: their files, and what they own. */
#include "libgpuconv/core/memory.h"
#include "row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void free_extra(gc_extra *x) {
    if (!x)
        return;
    for (int i = 0; i < x->sources; i++) {
        free(x->source[i].input);
        free(x->source[i].response);
    }
    free(x->source);
    free(x->noise);
    free(x->early);
    free(x->id);
    free(x->origin);
    free(x);
}

void gc_entry_clear(gc_entry *e) {
    free(e->input);
    free(e->response);
    free(e->output);
    free(e->refusal);
    free_extra(e->extra);
    *e = (gc_entry){.line = e->line, .dry = -HUGE_VAL, .length = -1};
}

bool gc_entry_refuse(gc_entry *e, const char *what, const char *value) {
    if (!e->refusal)
        e->refusal = gc_refusal_text(what, value);
    return e->refusal != NULL;
}

bool gc_manifest_add_list(gc_manifest *m, const char *path) {
    char **larger = realloc((void *)m->list, ((size_t)m->lists + 1) * sizeof *larger);
    if (!larger)
        return false;
    m->list = larger;
    m->list[m->lists] = strdup(path);
    return m->list[m->lists] && ++m->lists;
}

void gc_manifest_free(gc_manifest *m) {
    for (int64_t i = 0; i < m->entries; i++)
        gc_entry_clear(&m->entry[i]);
    free(m->entry);
    for (int i = 0; i < m->lists; i++)
        free(m->list[i]);
    free((void *)m->list);
    free(m->header);
    gc_recipes_free(&m->recipes);
    *m = (gc_manifest){0};
}

const gc_recipe *gc_entry_recipe(const gc_entry *e) {
    return e->recipe ? e->recipe : gc_recipe_default();
}

int gc_entry_sources(const gc_entry *e) {
    return e->extra ? 1 + e->extra->sources : 1;
}

gc_source gc_entry_source(const gc_entry *e, int index) {
    if (index > 0)
        return e->extra->source[index - 1];
    return (gc_source){e->input, e->response, e->extra ? e->extra->gain : 0, e->extra ? e->extra->start : 0};
}

const char *gc_entry_noise(const gc_entry *e) {
    return e->extra ? e->extra->noise : NULL;
}

const char *gc_entry_early(const gc_entry *e) {
    return e->extra ? e->extra->early : NULL;
}
