/* Reading a report from a program: titles, rows, names and values. */
#include "report_tree.h"

#include <math.h>

/* Returns the key of the index-th member of an object, in the order in which they were added; NULL behind the last. */
static const char *find_key(json_t *object, int index) {
    void *member = json_object_iter(object);
    for (int i = 0; member && i < index; i++)
        member = json_object_iter_next(object, member);
    return member && index >= 0 ? json_object_iter_key(member) : NULL;
}

/* Returns the section or list with this title; NULL if there is none. */
static json_t *find_part(const gpuconv_report *r, const char *title) {
    return r ? json_object_get(r->root, title) : NULL;
}

/* Returns the object with the values of a row; NULL if there is none. */
static json_t *find_row(const gpuconv_report *r, const char *title, int row) {
    json_t *part = find_part(r, title);
    if (json_is_array(part))
        return row < 0 ? NULL : json_array_get(part, (size_t)row);
    return row == 0 ? part : NULL;
}

static json_t *find_value(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_object_get(find_row(r, title, row), name);
}

const char *gpuconv_report_title(const gpuconv_report *r, int part) {
    return r ? find_key(r->root, part) : NULL;
}

int gpuconv_report_rows(const gpuconv_report *r, const char *title) {
    json_t *part = find_part(r, title);
    return json_is_array(part) ? (int)json_array_size(part) : part ? 1 : 0;
}

const char *gpuconv_report_name(const gpuconv_report *r, const char *title, int row, int value) {
    return find_key(find_row(r, title, row), value);
}

gpuconv_value_type gpuconv_report_type(const gpuconv_report *r, const char *title, int row, const char *name) {
    json_t *value = find_value(r, title, row, name);
    if (!value)
        return GPUCONV_VALUE_NONE;
    return json_is_string(value)    ? GPUCONV_VALUE_TEXT
           : json_is_integer(value) ? GPUCONV_VALUE_COUNT
                                    : GPUCONV_VALUE_NUMBER; /* an object, or in a list a number or null */
}

const char *gpuconv_report_text(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_string_value(find_value(r, title, row, name));
}

int64_t gpuconv_report_count(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_integer_value(find_value(r, title, row, name));
}

double gpuconv_report_number(const gpuconv_report *r, const char *title, int row, const char *name) {
    json_t *value = find_value(r, title, row, name);
    if (json_is_object(value))
        value = json_object_get(value, "value");
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *gpuconv_report_unit(const gpuconv_report *r, const char *title, int row, const char *name) {
    const char *unit = json_string_value(json_object_get(find_value(r, title, row, name), "unit"));
    return unit ? unit : "";
}

int64_t gpuconv_report_runs(const gpuconv_report *r, const char *title, int row, const char *name) {
    return json_integer_value(json_object_get(find_value(r, title, row, name), "n"));
}

double gpuconv_report_spread(const gpuconv_report *r, const char *title, int row, const char *name) {
    json_t *spread = json_object_get(find_value(r, title, row, name), "spread");
    return json_is_number(spread) ? json_number_value(spread) : (double)NAN;
}
