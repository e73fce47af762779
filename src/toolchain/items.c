/* A scanner for the subset of C++ that the lab's sources use: comments, strings, brackets and identifiers. */
#include "items.h"

#include <ctype.h>
#include <string.h>

static bool is_identifier_character(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool begins_with(const char *at, const char *word) {
    size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && !is_identifier_character(at[length]);
}

const char *gc_code_skip_quoted(const char *at) {
    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    if (*at != '"' && *at != '\'')
        return at;
    const char *c = at + 1;
    while (*c && *c != *at && *c != '\n')
        c += c[0] == '\\' && c[1] ? 2 : 1;
    return *c == *at ? c + 1 : c;
}

/* Returns the end of a preprocessor line, which backslashes continue. */
static const char *skip_directive(const char *at) {
    while (*at && *at != '\n')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return at;
}

const char *gc_code_identifier(const char *at, const char *end, size_t *length) {
    while (at < end) {
        const char *after = gc_code_skip_quoted(at);
        if (after > at) {
            at = after;
        } else if (isdigit((unsigned char)*at)) {
            while (at < end && (is_identifier_character(*at) || *at == '.'))
                at++;
        } else if (is_identifier_character(*at)) {
            for (*length = 1; at + *length < end && is_identifier_character(at[*length]);)
                ++*length;
            return at;
        } else {
            at++;
        }
    }
    return NULL;
}

/* Returns the end of a pair of brackets that begins here, with all that it contains. */
static const char *skip_brackets(const char *at) {
    int depth = 0;
    while (*at) {
        const char *after = gc_code_skip_quoted(at);
        if (after > at) {
            at = after;
            continue;
        }
        depth += (*at == '(' || *at == '{' || *at == '[') - (*at == ')' || *at == '}' || *at == ']');
        at++;
        if (depth == 0)
            return at;
    }
    return at;
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\n\r");
}

/* Returns what follows template <...>, or `at`. */
static const char *skip_template(const char *at) {
    int angles = 0;
    if (!begins_with(at, "template"))
        return at;
    for (at += strcspn(at, "<"); *at && (angles += (*at == '<') - (*at == '>')) > 0;)
        at++;
    return *at ? skip_blanks(at + 1) : at;
}

/* Takes the first identifier in the brackets that follow `at`. */
static void name_in_brackets(const char *at, const char *end, gc_code_item *item) {
    const char *name = gc_code_identifier(at, end, &item->name_length);
    item->name = name ? name : at;
    item->name_length = name ? item->name_length : 0;
}

/* Finds the name of an item between `at` and `end`: of LAB_LAUNCHER(name), of a type, or the identifier before the
 * parameters, the array bounds or the initialiser. */
static void find_name(const char *at, const char *end, gc_code_item *item) {
    static const char *const attributes[] = {"__launch_bounds__", "__align__", "alignas", "__attribute__"};
    size_t length = 0;
    at = skip_template(at);
    item->is_enum = begins_with(at, "enum");
    if (begins_with(at, "LAB_LAUNCHER") || begins_with(at, "LAB_FACTS") || item->is_enum) {
        name_in_brackets(at + strcspn(at, item->is_enum ? "{" : "("), end, item);
        return;
    }
    if (begins_with(at, "struct") || begins_with(at, "union") || begins_with(at, "class")) {
        name_in_brackets(at + strcspn(at, " "), end, item);
        return;
    }
    item->name = at;
    item->name_length = 0;
    while ((at = gc_code_identifier(at, end, &length)) != NULL) {
        const char *after = skip_blanks(at + length);
        bool attribute = false;
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
            attribute = attribute || begins_with(at, attributes[i]);
        if (attribute) {
            at = skip_brackets(after);
        } else {
            item->name = at;
            item->name_length = length;
            if (strchr("([=;{", *after))
                return;
            at += length;
        }
    }
}

/* Returns the end of the item whose text begins here: its semicolon, or the closing brace of a function. */
static const char *find_end(const char *at) {
    at = skip_template(at);
    bool is_type = begins_with(at, "struct") || begins_with(at, "enum") || begins_with(at, "union"), has_value = false;
    while (*at && *at != ';') {
        const char *after = gc_code_skip_quoted(at);
        if (after > at) {
            at = after;
        } else if (*at == '(' || *at == '[') {
            at = skip_brackets(at);
        } else if (*at == '{') {
            at = skip_brackets(at);
            if (!is_type && !has_value)
                return at;
        } else {
            has_value = has_value || *at == '=';
            at++;
        }
    }
    return *at ? at + 1 : at;
}

/* Returns what follows the opening brace of a namespace or of extern "C"; NULL if none begins here. */
static const char *skip_scope(const char *at) {
    if (!begins_with(at, "namespace") && strncmp(at, "extern \"C\" {", 12) != 0)
        return NULL;
    return at + strcspn(at, "{") + 1;
}

/* Returns what follows the text at file scope that is no item: closing braces, using directives, directives other than
 * #define. NULL if an item begins here. */
static const char *skip_other(const char *at) {
    const char *scope = skip_scope(at);
    if (scope)
        return scope;
    if (*at == '}' || *at == ';')
        return at + 1;
    if (begins_with(at, "using"))
        return at + strcspn(at, ";");
    if (*at == '#' && !begins_with(at, "#define"))
        return skip_directive(at);
    return NULL;
}

int gc_code_items(const char *source, gc_code_item *items, int room) {
    const char *comment = NULL, *at = skip_blanks(source);
    int count = 0;
    while (*at && count < room) {
        const char *after = gc_code_skip_quoted(at);
        if (after > at) { /* a comment belongs to the item below it unless a blank line separates them */
            comment = after[0] == '\n' && after[1] != '\n' ? comment ? comment : at : NULL;
            at = skip_blanks(after);
            continue;
        }
        after = skip_other(at);
        if (!after) {
            gc_code_item *item = &items[count++];
            *item = (gc_code_item){.begin = comment ? comment : at};
            if (*at == '#') {
                after = skip_directive(at);
                name_in_brackets(at + strlen("#define"), after, item);
            } else {
                after = find_end(at);
                find_name(at, after, item);
            }
            item->end = after;
        }
        comment = NULL;
        at = skip_blanks(after);
    }
    return count;
}

bool gc_code_item_defines(const gc_code_item *item, const char *identifier, size_t length) {
    if (item->name_length == length && strncmp(item->name, identifier, length) == 0)
        return true;
    if (!item->is_enum)
        return false;
    size_t other;
    for (const char *at = item->name; (at = gc_code_identifier(at, item->end, &other)) != NULL; at += other)
        if (other == length && strncmp(at, identifier, length) == 0)
            return true;
    return false;
}
