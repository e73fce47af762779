/* Parses lines of Kaldi's lists: of recordings, responses and noises. */
#include "kaldi.h"

#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64 };

bool gc_kaldi_split(char *line, char **id, char **rest) {
    static const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = 2, .last = 2};
    char *field[2];
    const char *wrong;
    const int fields = gc_table_split(&form, ' ', line, field, &wrong);
    *id = fields > 0 ? field[0] : line + strlen(line);
    *rest = fields > 1 ? field[1] : line + strlen(line);
    return fields > 1;
}

int gc_kaldi_words(char *line, char **word, int most) {
    const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = most};
    const char *wrong;
    return gc_table_split(&form, ' ', line, word, &wrong);
}

const char *gc_kaldi_refusal(const char *path) {
    size_t n = strlen(path);
    const char *colon = strrchr(path, ':');
    if (n > 0 && (path[n - 1] == '|' || *path == '|'))
        return "is a command, and gpuconv runs no commands; run it once and list the file that it writes:";
    if (colon && colon - path > 4 && strncmp(colon - 4, ".ark", 4) == 0 && isdigit((unsigned char)colon[1]))
        return "is a place in an archive; list audio files:";
    return NULL;
}

char *gc_kaldi_path(char *line, double *weight, const char **why) {
    char *word = NULL, *path = NULL;
    *weight = 1;
    *why = NULL;
    if (line[strspn(line, GC_KALDI_BLANKS)] != '-') {
        if (!gc_kaldi_split(line, &word, &path))
            *why = "needs an identifier and a file";
    } else {
        char *words[WORDS];
        const int count = gc_kaldi_words(line, words, WORDS);
        const char *name = NULL;
        *why = count < 0 ? "has too many words" : NULL;
        for (int i = 0; i < count; i++, name = *word == '-' && !name ? word : NULL) {
            word = words[i];
            if (name && strcmp(name, "--probability") == 0 && (!gc_number_parse(word, weight) || *weight < 0))
                *why = "--probability must be a number from 0 up";
            path = name || *word == '-' ? path : word;
        }
        if (!path && !*why)
            *why = "names no file behind its options";
    }
    if (!*why && gc_kaldi_refusal(path))
        *why = "is a command or a place in an archive; list audio files";
    return *why ? NULL : strdup(path);
}
