/* gpuconv-manual FOLDER: writes the manual pages and the completions for bash, zsh and fish, from the tables that
 * --help prints. The build runs it. */
#include "commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Returns the name without the program's: "ir info"; "" for gpuconv itself. */
static const char *words_of(const gc_command *c) {
    const char *blank = strchr(c->name, ' ');
    return blank ? blank + 1 : "";
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

static bool is_file(const struct poptOption *o) {
    return o->argDescrip && (strcmp(o->argDescrip, "FILE") == 0 || strcmp(o->argDescrip, "FOLDER") == 0 ||
                             strcmp(o->argDescrip, "PATTERN") == 0);
}

/* Returns whether some of the values are words: alternatives of the description in lower case. */
static bool has_words(const struct poptOption *o) {
    const char *bar = o->argDescrip ? strchr(o->argDescrip, '|') : NULL;
    return gc_option_takes_words(o) || (bar && islower((unsigned char)bar[1]));
}

/* Writes the lower-case words of "a|b|C" with blanks between them. */
static void put_words(FILE *f, const char *words) {
    for (bool first = true; *words; words += *words == '|') {
        int length = (int)strcspn(words, "|");
        if (islower((unsigned char)*words)) {
            fprintf(f, "%s%.*s", first ? "" : " ", length, words);
            first = false;
        }
        words += length;
    }
}

/* Returns whether the first argument is one of several words: "room|plate IR". */
static bool begins_with_words(const gc_command *c) {
    size_t first = strcspn(c->arguments, " ");
    return islower((unsigned char)*c->arguments) && memchr(c->arguments, '|', first);
}

static void put_first_argument(FILE *f, const gc_command *c) {
    char words[256];
    (void)snprintf(words, sizeof words, "%.*s", (int)strcspn(c->arguments, " "), c->arguments);
    put_words(f, words);
}

/* Returns how many words the name has, without the program's. */
static int count_words(const gc_command *c) {
    int count = 0;
    for (const char *at = c->name; *at; at++)
        count += *at == ' ';
    return count;
}

/* Returns whether the completion ends with "=". */
static bool needs_equals(const struct poptOption *o) {
    return gc_option_takes_value(o) && !gc_option_value_is_optional(o) && (o->argInfo & POPT_ARG_MASK) != POPT_ARG_ARGV;
}

static void bash_command(FILE *f, const gc_command *c) {
    fprintf(f, "    '%s')\n        case $option in\n", words_of(c));
    for (const struct poptOption *o = c->options; o->longName; o++) {
        if (!gc_option_takes_value(o))
            continue;
        fprintf(f, "        --%s", o->longName);
        if (o->shortName)
            fprintf(f, " | -%c", o->shortName);
        fputs(")\n            ", f);
        if (has_words(o)) {
            fputs("_gpuconv_words '", f);
            put_words(f, o->argDescrip);
            fputs("' ;;\n", f);
        } else {
            fputs(is_file(o) ? "_gpuconv_files ;;\n" : "COMPREPLY=() ;;\n", f);
        }
    }
    fputs("        *)\n            taken=''\n", f);
    if (begins_with_words(c)) {
        fprintf(f, "            ((COMP_CWORD == %d)) && words='", count_words(c) + 1);
        put_first_argument(f, c);
        fputs("'\n", f);
    }
    fputs("            ;;\n        esac\n        options='", f);
    for (const struct poptOption *o = c->options; o->longName; o++)
        fprintf(f, "%s--%s%s", o == c->options ? "" : " ", o->longName, needs_equals(o) ? "=" : "");
    fputs("' ;;\n", f);
}

/* Writes the first words of all subcommands; or, if `group` is not empty, the second words of the subcommands whose
 * first word is `group`. */
static void put_first_words(FILE *f, const char *group) {
    size_t room = strlen(group);
    for (int i = 1; gc_commands[i]; i++) {
        const char *words = words_of(gc_commands[i]);
        bool below = room && strncmp(words, group, room) == 0 && words[room] == ' ';
        if (room && below)
            fprintf(f, " %s", words + room + 1);
        else if (!room)
            fprintf(f, " %.*s", (int)strcspn(words, " "), words);
    }
    if (!room)
        fputs(" help", f);
}

/* Writes the cases that find the command: names of two words first. */
static void put_cases(FILE *f) {
    for (int pass = 0; pass < 2; pass++)
        for (int i = 1; gc_commands[i]; i++) {
            const char *words = words_of(gc_commands[i]);
            if ((strchr(words, ' ') != NULL) == (pass == 0))
                fprintf(f, "    '%s%s) command='%s' ;;\n", words, pass ? " '*" : "'", words);
        }
}

static void write_bash(const char *folder) {
    FILE *f = gc_manual_open(folder, "gpuconv.bash");
    fputs(
        "# Completion of gpuconv for bash, made from its tables of options.\n"
        "_gpuconv_words() { # offers the words of $1 that begin with $value\n"
        "    mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -W \"$1\" -- \"$value\")\n"
        "}\n"
        "_gpuconv_files() { # offers file names, which readline quotes if necessary\n"
        "    mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -f -- \"$value\")\n"
        "    compopt -o filenames\n"
        "}\n"
        "_gpuconv() {\n"
        "    local value=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command='' options=''\n"
        "    local prefix='' words='' taken=yes\n"
        "    # --option=value is three words if = separates words, which is the default, else one word\n"
        "    if [[ $value == '=' ]]; then\n        value=''\n"
        "    elif [[ $option == '=' ]]; then\n        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    elif [[ $value == --*=* ]]; then\n        option=${value%%=*} prefix=$option= value=${value#*=}\n    fi\n"
        "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n",
        f);
    put_cases(f);
    fputs("    esac\n    case $command in\n", f);
    for (int i = 0; gc_commands[i]; i++)
        bash_command(f, gc_commands[i]);
    fputs("    esac\n    [[ $taken ]] && return\n"
          "    if [[ $value == -* ]]; then\n"
          "        _gpuconv_words \"$options\"\n"
          "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n        return\n    fi\n"
          "    ((COMP_CWORD == 1)) && words='",
          f);
    put_first_words(f, "");
    fputs("'\n    ((COMP_CWORD == 2)) && [[ ${COMP_WORDS[1]} == help ]] && words='", f);
    put_first_words(f, "");
    fputs("'\n    ((COMP_CWORD == 2)) && [[ ${COMP_WORDS[1]} == ir ]] && words='", f);
    put_first_words(f, "ir");
    fputs("'\n    if [[ $words ]]; then\n"
          "        _gpuconv_words \"$words\"\n"
          "        ((COMP_CWORD == 1)) || return\n"
          "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$value\")\n"
          "        compopt -o filenames\n"
          "    else\n        _gpuconv_files\n    fi\n"
          "}\ncomplete -F _gpuconv gpuconv\n",
          f);
    gc_manual_close(f);
}

/* Writes text for use inside single quotes of a shell. */
static void put_quoted(FILE *f, const char *text, const char *escaped) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", f);
        else if (strchr(escaped, *text))
            fprintf(f, "\\%c", *text);
        else
            fputc(*text, f);
    }
}

static void write_zsh(const char *folder) {
    FILE *f = gc_manual_open(folder, "_gpuconv");
    fputs("#compdef gpuconv\n# Completion of gpuconv for zsh, made from its tables of options.\n_gpuconv() {\n"
          "    local command=''\n    case \"${words[2]} ${words[3]}\" in\n",
          f);
    put_cases(f);
    fputs("    esac\n    if ((CURRENT == 2)); then\n        compadd --", f);
    put_first_words(f, "");
    fputs("\n    elif ((CURRENT == 3)) && [[ ${words[2]} == ir ]]; then\n        compadd --", f);
    put_first_words(f, "ir");
    fputs("\n        return\n    fi\n    case $command in\n", f);
    for (int i = 0; gc_commands[i]; i++) {
        fprintf(f, "    '%s')\n        _arguments", words_of(gc_commands[i]));
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            const bool optional = gc_option_value_is_optional(o);
            fprintf(f, " \\\n            '--%s%s[", o->longName, optional ? "=-" : gc_option_takes_value(o) ? "=" : "");
            put_quoted(f, o->descrip, "[]:\\");
            fputc(']', f);
            if (has_words(o)) {
                fputs(":value:(", f);
                put_words(f, o->argDescrip);
                fputc(')', f);
            } else if (gc_option_takes_value(o)) {
                fputs(is_file(o) ? ":file:_files" : optional ? "::value: " : ":value: ", f);
            }
            fputc('\'', f);
        }
        if (begins_with_words(gc_commands[i])) {
            fprintf(f, " \\\n            '%d:kind:(", count_words(gc_commands[i]) + 1);
            put_first_argument(f, gc_commands[i]);
            fputs(")'", f);
        }
        fputs(" \\\n            '*:file:_files' ;;\n", f);
    }
    fputs("    esac\n}\n_gpuconv \"$@\"\n", f);
    gc_manual_close(f);
}

static void write_fish(const char *folder) {
    FILE *f = gc_manual_open(folder, "gpuconv.fish");
    fputs("# Completion of gpuconv for fish, made from its tables of options.\n", f);
    fputs("complete -c gpuconv -n __fish_is_first_token -a '", f);
    put_first_words(f, "");
    fputs("'\ncomplete -c gpuconv -n '__fish_seen_subcommand_from ir' -a '", f);
    put_first_words(f, "ir");
    fputs("'\n", f);
    for (int i = 0; gc_commands[i]; i++) {
        const char *words = words_of(gc_commands[i]);
        if (begins_with_words(gc_commands[i])) {
            fprintf(f, "complete -c gpuconv -n 'string match -q \"gpuconv %s*\" (commandline -p)' -a '", words);
            put_first_argument(f, gc_commands[i]);
            fputs("'\n", f);
        }
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            fputs("complete -c gpuconv -n '", f);
            if (*words) {
                fputs("string match -q \"gpuconv ", f);
                fprintf(f, "%s*\" (commandline -p)'", words);
            } else {
                fputs("not __fish_seen_subcommand_from", f);
                put_first_words(f, "");
                fputc('\'', f);
            }
            fprintf(f, " -l %s", o->longName);
            if (o->shortName)
                fprintf(f, " -s '%c'", o->shortName);
            if (has_words(o)) {
                fputs(" -x -a '", f);
                put_words(f, o->argDescrip);
                fputc('\'', f);
            } else if (gc_option_takes_value(o) && !gc_option_value_is_optional(o)) {
                fputs(is_file(o) ? " -r" : " -x", f);
            }
            fputs(" -d '", f);
            put_quoted(f, o->descrip, "\\");
            fputs("'\n", f);
        }
    }
    gc_manual_close(f);
}

int main(int argc, char **argv) {
    gc_start_program("gpuconv-manual");
    gc_fill_words();
    if (argc != 2)
        return gc_print_error(GC_EXIT_USAGE, "one FOLDER is needed, not %d arguments", argc - 1);
    for (int i = 0; gc_commands[i]; i++)
        gc_manual_page_write(argv[1], gc_commands[i], gc_commands);
    write_bash(argv[1]);
    write_zsh(argv[1]);
    write_fish(argv[1]);
    return gc_end_program(GC_EXIT_DONE);
}
