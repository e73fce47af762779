/* The word that a user probably meant instead of a mistyped one. */
#ifndef GC_CLI_SUGGEST_H
#define GC_CLI_SUGGEST_H

/* The nearest of the words that gc_suggestion_try has seen. */
typedef struct gc_suggestion {
    const char *typed; /* the mistyped word, set by the caller, as `best` and `distance` are to 0 */
    const char *best;  /* NULL: no word is near */
    int distance;      /* of `best`, in letters */
} gc_suggestion;

/* Keeps `word` if it is nearer to the typed word than those before it: letters that are missing, superfluous, wrong or
 * swapped with the next one count 1 each (optimal string alignment), and one in three letters of the typed word, at
 * least one, may be wrong. Words of up to 31 letters are compared. */
void gc_suggestion_try(gc_suggestion *s, const char *word);

#endif
