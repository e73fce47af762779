/* Parses a manifest in JSON Lines. */
#include "libgpuconv/core/error.h"
#include "manifest_entry.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool set_field(gc_entry *e, const char *name, const json_t *value) {
    char number[40];
    int c = 0;
    while (c < GC_COLUMNS && strcmp(name, gc_columns[c]) != 0)
        c++;
    if (c == GC_COLUMNS)
        return gc_entry_refuse(e, "unknown field:", name);
    if (json_is_string(value))
        return gc_entry_set(e, c, json_string_value(value));
    if (json_is_null(value))
        return true;
    if (!json_is_number(value) || c <= GC_COLUMN_OUTPUT)
        return gc_entry_refuse(e, "neither a string nor a number:", name);
    if (json_is_integer(value))
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else
        (void)snprintf(number, sizeof number, "%.17g", json_real_value(value));
    return gc_entry_set(e, c, number);
}

gpuconv_status gc_manifest_parse_jsonl(const char *path, char *text, gc_manifest *m, gpuconv_error *error) {
    int64_t line = 0, capacity = 0;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        char *next = at + length + (at[length] == '\n');
        line++;
        at[length] = '\0';
        if (at[strspn(at, " \t\r")]) {
            gc_entry *e = gc_manifest_add(m, &capacity, line);
            json_error_t why;
            json_t *object = json_loads(at, JSON_REJECT_DUPLICATES, &why);
            const char *name;
            json_t *value;
            bool good = e != NULL;
            if (good && !json_is_object(object))
                good = gc_entry_refuse(e, "not a JSON object:", object ? "another JSON value" : why.text);
            else if (good)
                json_object_foreach(object, name, value) good = good && set_field(e, name, value);
            json_decref(object);
            if (!good || !gc_entry_complete(e))
                return gc_fail_memory(error, path);
        }
        at = next;
    }
    return GPUCONV_OK;
}
