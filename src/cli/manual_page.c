/* Writes a manual page from the tables that --help prints. */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

FILE *gc_manual_open(const char *folder, const char *name) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(GC_EXIT_FAILED);
    }
    return f;
}

void gc_manual_close(FILE *f) {
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        perror(gc_program);
        exit(GC_EXIT_FAILED);
    }
}

/* Copies the name with another character in place of each blank. */
static void join_name(const gc_command *c, char with, char *name, size_t size) {
    (void)snprintf(name, size, "%s", c->name);
    for (char *at = name; *at; at++)
        *at = *at == ' ' ? with : *at;
}

static void put_roff(FILE *f, const char *text) {
    for (bool first = true; *text; text++) {
        if (first && (*text == '.' || *text == '\''))
            fputs("\\&", f);
        if (*text == '-')
            fputs("\\-", f);
        else if (*text == '\\')
            fputs("\\e", f);
        else
            fputc(*text, f);
        first = *text == '\n';
    }
}

/* Writes lines of text: lines that begin with a blank as they are, an empty line as the end of a paragraph. */
static void put_paragraphs(FILE *f, const char *text) {
    char line[2048];
    bool filled = true;
    for (; *text; text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        if (filled == (*text == ' ')) {
            fputs(filled ? ".nf\n" : ".fi\n", f);
            filled = !filled;
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (length)
            put_roff(f, line);
        fputs(length ? "\n" : ".PP\n", f);
        text += length;
    }
    if (!filled)
        fputs(".fi\n", f);
}

static void put_header(FILE *f, const gc_command *c, const char *name) {
    fputs(".TH ", f);
    for (const char *at = name; *at; at++)
        fputc(toupper((unsigned char)*at), f);
    fprintf(f, " 1 \"\" \"gpuconv %s\"\n.SH NAME\n", gpuconv_version());
    put_roff(f, name);
    fputs(" \\- ", f);
    size_t sentence = strlen(c->about) - 1; /* without the full stop */
    for (size_t i = 0; i < sentence; i++)
        fputc(i == 0 ? tolower((unsigned char)c->about[i]) : c->about[i], f);
    fputs("\n.SH SYNOPSIS\n.B ", f);
    put_roff(f, c->name);
    fputc('\n', f);
    put_roff(f, c->arguments);
    fputs("\n[\\fIOPTION\\fR...]\n", f);
}

static void put_options(FILE *f, const gc_command *c) {
    char option[160];
    fputs(".SH OPTIONS\n", f);
    for (const struct poptOption *o = c->options; o->longName; o++) {
        const char *title = gc_group_title(c, o);
        if (title)
            fprintf(f, ".SS %s\n", title);
        gc_option_name(o, option, sizeof option);
        fputs(".TP\n.B ", f);
        put_roff(f, option);
        fputc('\n', f);
        put_roff(f, o->descrip);
        fputc('\n', f);
    }
}

/* Writes references to the other commands. */
static void put_see_also(FILE *f, const gc_command *c, const gc_command *const *all) {
    char name[128];
    fputs(".SH SEE ALSO\n", f);
    for (int i = 0, count = 0; all[i]; i++) {
        if (all[i] == c)
            continue;
        join_name(all[i], '-', name, sizeof name);
        fputs(count++ ? ",\n.BR " : ".BR ", f);
        put_roff(f, name);
        fputs(" (1)", f);
    }
    fputc('\n', f);
}

void gc_manual_page_write(const char *folder, const gc_command *c, const gc_command *const *all) {
    char name[128], file[140];
    join_name(c, '-', name, sizeof name);
    (void)snprintf(file, sizeof file, "%s.1", name);
    FILE *f = gc_manual_open(folder, file);
    put_header(f, c, name);
    fputs(".SH DESCRIPTION\n", f);
    put_paragraphs(f, c->about);
    if (c->details) {
        fputs(".PP\n", f);
        put_paragraphs(f, c->details);
    }
    put_options(f, c);
    fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong command line, 130 interrupted.\n", f);
    for (int i = 0; i < GC_EXAMPLES && c->examples[i].line; i++) {
        fputs(i ? ".TP\n.B " : ".SH EXAMPLES\n.TP\n.B ", f);
        put_roff(f, c->examples[i].line);
        fputc('\n', f);
        put_roff(f, c->examples[i].purpose);
        fputc('\n', f);
    }
    put_see_also(f, c, all);
    gc_manual_close(f);
}
