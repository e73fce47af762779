/* Fuzzes saved reports: a report is refused with a message, or gives a page without foreign markup and tables without
 * control characters. */
#include "gpulab/pages/pages.h"
#include "libgpuconv/core/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the length of the word at the start of the text if the list has it, else 0. */
static size_t match_word(const char *text, const char *const *words) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!-");
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0)
            return length;
    return 0;
}

/* Aborts if the page has an unknown element or attribute, or an attribute without closing quote. */
static void check_page(const char *page) {
    static const char *const elements[] = {"!doctype", "a",    "b",       "body",  "circle", "details", "h1",  "h2",
                                           "h3",       "h4",   "head",    "html",  "line",   "meta",    "nav", "p",
                                           "polyline", "pre",  "section", "span",  "style",  "summary", "svg", "table",
                                           "td",       "text", "th",      "title", "tr",     NULL};
    static const char *const attributes[] = {"aria-label",
                                             "charset",
                                             "class",
                                             "colspan",
                                             "content",
                                             "cx",
                                             "cy",
                                             "fill",
                                             "height",
                                             "href",
                                             "html",
                                             "id",
                                             "lang",
                                             "name",
                                             "points",
                                             "r",
                                             "role",
                                             "stroke",
                                             "stroke-dasharray",
                                             "stroke-width",
                                             "style",
                                             "viewBox",
                                             "width",
                                             "x",
                                             "x1",
                                             "x2",
                                             "y",
                                             "y1",
                                             "y2",
                                             NULL};
    const char *at = strstr(page, "</style>"); /* the text before it is constant */
    if (!at)
        abort();
    while ((at = strchr(at, '<')) != NULL) {
        at += 1 + (at[1] == '/');
        size_t length = match_word(at, elements);
        if (!length)
            abort();
        for (at += length; *at == ' ';) {
            at++;
            length = match_word(at, attributes);
            if (!length || at[length] != '=' || at[length + 1] != '\'')
                abort();
            at += length + 2;
            at += strcspn(at, "'<>");
            if (*at++ != '\'')
                abort();
        }
        at += *at == '/';
        if (*at != '>')
            abort();
    }
}

/* Aborts if a line has characters that gc_visible would change. */
static void check_lines(char *tables) {
    static char visible[1 << 16];
    for (char *line = strtok(tables, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) < sizeof visible && strcmp(gc_visible(visible, sizeof visible, line), line) != 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_error_t reason;
    gpuconv_error error = {GPUCONV_OK, ""};
    json_t *report = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &reason);
    if (!report)
        return 0;
    gpuconv_status status = gc_lab_saved_check(report, "file", &error);
    if (status && !*error.message)
        abort();
    for (int page = 0; page < 2 && !status; page++) {
        char *text = NULL;
        size_t length = 0;
        FILE *to = open_memstream(&text, &length);
        if (!to)
            abort();
        if (page)
            gc_lab_write_page(report, to);
        else
            gc_lab_write_tables(report, to);
        if (fclose(to) != 0)
            abort();
        if (page)
            check_page(text);
        else
            check_lines(text);
        free(text);
    }
    json_decref(report);
    return 0;
}
