/* gpuconv-manual FOLDER: writes manual pages and the completions of three shells, from the tables that --help reads. It
 * is run by the build. */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A file of the folder; the process ends where it cannot be made. */
static FILE *open_file(const char *folder, const char *name) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(GC_EXIT_FAILED);
    }
    return f;
}

static void close_file(FILE *f) {
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        perror("gpuconv-manual");
        exit(GC_EXIT_FAILED);
    }
}

static bool takes_value(const struct poptOption *o) {
    return (o->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE;
}

/* The subcommand's words without the program's: "ir info"; "" for the plain command. */
static const char *words_of(const gc_command *c) {
    const char *blank = strchr(c->name, ' ');
    return blank ? blank + 1 : "";
}

/* The name with another character for each blank. */
static void joined(const gc_command *c, char with, char *name, size_t size) {
    (void)snprintf(name, size, "%s", c->name);
    for (char *at = name; *at; at++)
        *at = *at == ' ' ? with : *at;
}

/* ---- Manual pages ------------------------------------------------------------------------------------------------ */

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

static void write_page(const char *folder, const gc_command *c) {
    char name[128], file[140], option[160];
    joined(c, '-', name, sizeof name);
    (void)snprintf(file, sizeof file, "%s.1", name);
    FILE *f = open_file(folder, file);
    fputs(".TH ", f);
    for (const char *at = name; *at; at++)
        fputc(toupper((unsigned char)*at), f);
    fprintf(f, " 1 \"\" \"gpuconv %s\"\n.SH NAME\n", gpuconv_version());
    put_roff(f, name);
    fputs(" \\- ", f);
    size_t sentence = strcspn(c->about, ".;:,\n");
    for (size_t i = 0; i < sentence; i++)
        fputc(i == 0 ? tolower((unsigned char)c->about[i]) : c->about[i], f);
    fputs("\n.SH SYNOPSIS\n.B ", f);
    put_roff(f, c->name);
    fputc('\n', f);
    put_roff(f, c->arguments);
    fputs("\n[\\fIOPTION\\fR...]\n.SH DESCRIPTION\n", f);
    put_roff(f, c->about);
    fputs("\n.SH OPTIONS\n", f);
    for (const struct poptOption *o = c->options; o->longName; o++) {
        gc_option_name(o, option, sizeof option);
        fputs(".TP\n.B ", f);
        put_roff(f, option);
        fputc('\n', f);
        put_roff(f, o->descrip);
        fputc('\n', f);
    }
    fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 usage, 130 interrupted.\n.SH SEE ALSO\n", f);
    for (int i = 0, told = 0; gc_commands[i]; i++) {
        if (gc_commands[i] == c)
            continue;
        joined(gc_commands[i], '-', name, sizeof name);
        fputs(told++ ? ",\n.BR " : ".BR ", f);
        put_roff(f, name);
        fputs(" (1)", f);
    }
    fputc('\n', f);
    close_file(f);
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

/* What a value is: words, a folder, a number of some sort, else a file. */
static bool is_words(const struct poptOption *o) {
    return o->argDescrip && strchr(o->argDescrip, '|') && islower((unsigned char)*o->argDescrip);
}

static bool is_file(const struct poptOption *o) {
    return o->argDescrip && (strcmp(o->argDescrip, "FILE") == 0 || strcmp(o->argDescrip, "FOLDER") == 0 ||
                             strcmp(o->argDescrip, "PATTERN") == 0);
}

static void put_words(FILE *f, const char *words) {
    for (; *words; words++)
        fputc(*words == '|' ? ' ' : *words, f);
}

static void bash_command(FILE *f, const gc_command *c) {
    fprintf(f, "    '%s')\n        case $option in\n", words_of(c));
    for (const struct poptOption *o = c->options; o->longName; o++) {
        if (!takes_value(o))
            continue;
        fprintf(f, "        --%s", o->longName);
        if (o->shortName)
            fprintf(f, " | -%c", o->shortName);
        fputs(")\n            ", f);
        if (is_words(o)) {
            fputs("mapfile -t COMPREPLY < <(compgen -W '", f);
            put_words(f, o->argDescrip);
            fputs("' -- \"$value\")\n", f);
        } else if (is_file(o)) {
            fputs("mapfile -t COMPREPLY < <(compgen -f -- \"$value\")\n", f);
        } else {
            fputs("COMPREPLY=()\n", f);
        }
        fputs("            return ;;\n", f);
    }
    fputs("        esac\n        options='", f);
    for (const struct poptOption *o = c->options; o->longName; o++)
        fprintf(f, "%s--%s%s", o == c->options ? "" : " ", o->longName,
                takes_value(o) && (o->argInfo & POPT_ARG_MASK) != POPT_ARG_ARGV ? "=" : "");
    fputs("' ;;\n", f);
}

/* The first words of subcommands, and the second ones of those that have two. */
static void put_first_words(FILE *f, const char *behind) {
    size_t room = strlen(behind);
    for (int i = 1; gc_commands[i]; i++) {
        const char *words = words_of(gc_commands[i]);
        bool below = room && strncmp(words, behind, room) == 0 && words[room] == ' ';
        if (room && below)
            fprintf(f, " %s", words + room + 1);
        else if (!room)
            fprintf(f, " %.*s", (int)strcspn(words, " "), words);
    }
}

static void write_bash(const char *folder) {
    FILE *f = open_file(folder, "gpuconv.bash");
    fputs("# Completion of gpuconv for bash, made from its tables of options.\n"
          "_gpuconv() {\n"
          "    local value=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command='' options=''\n"
          "    if [[ $value == '=' ]]; then\n        value=''\n"
          "    elif [[ $option == '=' ]]; then\n        option=${COMP_WORDS[COMP_CWORD - 2]}\n    fi\n"
          "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n",
          f);
    for (int pass = 0; pass < 2; pass++) /* longer names first */
        for (int i = 1; gc_commands[i]; i++) {
            const char *words = words_of(gc_commands[i]);
            if ((strchr(words, ' ') != NULL) == (pass == 0))
                fprintf(f, "    '%s%s) command='%s' ;;\n", words, pass ? " '*" : "'", words);
        }
    fputs("    esac\n    case $command in\n", f);
    for (int i = 0; gc_commands[i]; i++)
        bash_command(f, gc_commands[i]);
    fputs("    esac\n    if [[ $value == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$value\")\n"
          "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n        return\n    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -f -- \"$value\")\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W '",
          f);
    put_first_words(f, "");
    fputs("' -- \"$value\" | sort -u)\n"
          "    elif ((COMP_CWORD == 2)) && [[ ${COMP_WORDS[1]} == ir ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W '",
          f);
    put_first_words(f, "ir");
    fputs("' -- \"$value\")\n    fi\n}\ncomplete -o filenames -F _gpuconv gpuconv\n", f);
    close_file(f);
}

/* A text in single quotes, which neither shell has inside. */
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
    FILE *f = open_file(folder, "_gpuconv");
    fputs("#compdef gpuconv\n# Completion of gpuconv for zsh, made from its tables of options.\n_gpuconv() {\n"
          "    local command=''\n    case \"${words[2]} ${words[3]}\" in\n",
          f);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 1; gc_commands[i]; i++) {
            const char *words = words_of(gc_commands[i]);
            if ((strchr(words, ' ') != NULL) == (pass == 0))
                fprintf(f, "    '%s%s) command='%s' ;;\n", words, pass ? " '*" : "'", words);
        }
    fputs("    esac\n    if ((CURRENT == 2)); then\n        compadd --", f);
    put_first_words(f, "");
    fputs("\n    elif ((CURRENT == 3)) && [[ ${words[2]} == ir ]]; then\n        compadd --", f);
    put_first_words(f, "ir");
    fputs("\n        return\n    fi\n    case $command in\n", f);
    for (int i = 0; gc_commands[i]; i++) {
        fprintf(f, "    '%s')\n        _arguments", words_of(gc_commands[i]));
        for (const struct poptOption *o = gc_commands[i]->options; o->longName; o++) {
            fprintf(f, " \\\n            '--%s%s[", o->longName, takes_value(o) ? "=" : "");
            put_quoted(f, o->descrip, "[]:\\");
            fputc(']', f);
            if (is_words(o)) {
                fputs(":value:(", f);
                put_words(f, o->argDescrip);
                fputc(')', f);
            } else if (takes_value(o)) {
                fputs(is_file(o) ? ":file:_files" : ":value: ", f);
            }
            fputc('\'', f);
        }
        fputs(" \\\n            '*:file:_files' ;;\n", f);
    }
    fputs("    esac\n}\n_gpuconv \"$@\"\n", f);
    close_file(f);
}

static void write_fish(const char *folder) {
    FILE *f = open_file(folder, "gpuconv.fish");
    fputs("# Completion of gpuconv for fish, made from its tables of options.\n", f);
    fputs("complete -c gpuconv -n __fish_is_first_token -a '", f);
    put_first_words(f, "");
    fputs("'\ncomplete -c gpuconv -n '__fish_seen_subcommand_from ir' -a '", f);
    put_first_words(f, "ir");
    fputs("'\n", f);
    for (int i = 0; gc_commands[i]; i++) {
        const char *words = words_of(gc_commands[i]);
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
            if (is_words(o)) {
                fputs(" -x -a '", f);
                put_words(f, o->argDescrip);
                fputc('\'', f);
            } else if (takes_value(o)) {
                fputs(is_file(o) ? " -r" : " -x", f);
            }
            fputs(" -d '", f);
            put_quoted(f, o->descrip, "\\");
            fputs("'\n", f);
        }
    }
    close_file(f);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return gc_exit(GC_EXIT_USAGE, "gpuconv-manual FOLDER");
    for (int i = 0; gc_commands[i]; i++)
        write_page(argv[1], gc_commands[i]);
    write_bash(argv[1]);
    write_zsh(argv[1]);
    write_fish(argv[1]);
    return GC_EXIT_DONE;
}
