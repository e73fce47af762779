/* Copies the source, and changes two forms outside comments and strings. */
#include "rewrite.h"

#include "gpulab/code_items.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *at;
    size_t length, room;
    bool failed;
} text;

/* A part of the source. */
typedef struct part {
    const char *begin, *end;
} part;

static void append(text *t, const char *from, size_t length) {
    if (t->length + length + 1 > t->room) {
        size_t room = 2 * (t->length + length) + 1000;
        char *grown = realloc(t->at, room);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->at = grown;
        t->room = room;
    }
    memcpy(t->at + t->length, from, length);
    t->length += length;
    t->at[t->length] = '\0';
}

static void append_text(text *t, const char *from) {
    append(t, from, strlen(from));
}

static void append_part(text *t, part p) {
    append(t, p.begin, (size_t)(p.end - p.begin));
}

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n\\");
}

/* Returns the place of `what` outside brackets and quoted text, or NULL. */
static const char *find_outside_brackets(const char *at, const char *what) {
    int depth = 0;
    while (*at) {
        if (depth == 0 && strncmp(at, what, strlen(what)) == 0)
            return at;
        const char *next = gc_code_skip_quoted(at);
        if (next == at) {
            depth += (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
            next = at + 1;
        }
        if (depth < 0)
            return NULL;
        at = next;
    }
    return NULL;
}

/* Returns where the name of a kernel begins that ends the text, a::b<...>; the text's length if there is none. */
static size_t find_kernel(const text *t) {
    size_t at = t->length;
    while (at > 0 && isspace((unsigned char)t->at[at - 1]))
        at--;
    if (at > 0 && t->at[at - 1] == '>') {
        int depth = 0;
        do {
            at--;
            depth += (t->at[at] == '>') - (t->at[at] == '<');
        } while (at > 0 && depth > 0);
        while (at > 0 && isspace((unsigned char)t->at[at - 1]))
            at--;
    }
    size_t end = at;
    while (at > 0 && (is_name(t->at[at - 1]) || t->at[at - 1] == ':'))
        at--;
    return at < end ? at : t->length;
}

/* Rewrites a launch at "<<<". Returns the place after it, or NULL if it is none. */
static const char *rewrite_launch(text *t, const char *at) {
    part configuration = {at + 3, find_outside_brackets(at + 3, ">>>")};
    const char *open = configuration.end ? skip_blanks(configuration.end + 3) : "";
    const char *close = *open == '(' ? find_outside_brackets(open + 1, ")") : NULL;
    size_t begin = find_kernel(t);
    if (!close || begin == t->length)
        return NULL;
    text kernel = {0};
    append(&kernel, t->at + begin, t->length - begin);
    t->length = begin;
    append_text(t, "gce::launch(__LINE__, gce::grid(");
    append_part(t, configuration);
    append_text(t, "), [=] { ");
    if (kernel.at)
        append_text(t, kernel.at);
    append_part(t, (part){configuration.end + 3, close + 1});
    append_text(t, "; })");
    t->failed |= kernel.failed;
    free(kernel.at);
    return close + 1;
}

/* Skips the attributes before a type. */
static const char *skip_alignment(const char *at) {
    static const char *const words[] = {"__align__", "alignas", "__attribute__"};
    at = skip_blanks(at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *open = strncmp(at, words[i], strlen(words[i])) == 0 ? skip_blanks(at + strlen(words[i])) : "";
        const char *close = *open == '(' ? find_outside_brackets(open + 1, ")") : NULL;
        if (close)
            return skip_alignment(close + 1);
    }
    return at;
}

/* Rewrites a declaration at "extern". Returns the place of its semicolon, or NULL if it is of another kind. */
static const char *rewrite_shared(text *t, const char *at) {
    static const char word[] = "__shared__";
    const char *begin = skip_alignment(at + strlen("extern"));
    if (strncmp(begin, word, strlen(word)) != 0)
        return NULL;
    part type = {skip_alignment(begin + strlen(word)), NULL};
    const char *end = find_outside_brackets(type.begin, ";");
    const char *open = end ? memchr(type.begin, '[', (size_t)(end - type.begin)) : NULL;
    const char *close = open ? skip_blanks(open + 1) : "";
    if (*close != ']')
        return NULL;
    part name = {NULL, open};
    while (name.end > type.begin && isspace((unsigned char)name.end[-1]))
        name.end--;
    name.begin = name.end;
    while (name.begin > type.begin && is_name(name.begin[-1]))
        name.begin--;
    type.end = name.begin;
    part sizes = {close + 1, end};
    append_part(t, type);
    append_text(t, "(*const ");
    append_part(t, name);
    append_text(t, ")");
    append_part(t, sizes);
    append_text(t, " = (");
    append_part(t, type);
    append_text(t, "(*)");
    append_part(t, sizes);
    append_text(t, ")gce_dynamic()");
    return end;
}

char *gc_emulator_rewrite(const char *source) {
    text t = {0};
    append_text(&t, "#line 1 \"student.cu\"\n");
    for (const char *at = source; *at;) {
        const char *next = gc_code_skip_quoted(at), *rewritten = NULL;
        if (next == at && strncmp(at, "<<<", 3) == 0)
            rewritten = rewrite_launch(&t, at);
        else if (next == at && strncmp(at, "extern", 6) == 0 && !is_name(at[6]) && (at == source || !is_name(at[-1])))
            rewritten = rewrite_shared(&t, at);
        if (!rewritten) {
            next += next == at;
            append(&t, at, (size_t)(next - at));
        }
        at = rewritten ? rewritten : next;
    }
    if (t.failed) {
        free(t.at);
        return NULL;
    }
    return t.at;
}
