/* Lines of Kaldi's lists. */
#ifndef GPUCONV_BATCH_KALDI_H
#define GPUCONV_BATCH_KALDI_H

#include <stdbool.h>

#define GC_KALDI_BLANKS " \t" /* between the parts of a line */

/* Splits a line "ID REST" in place. @return false: it has no two parts */
bool gc_kaldi_split(char *line, char **id, char **rest);

/* Divides a line at its blanks, in place. @return the number of words; -1: there are more than `most` */
int gc_kaldi_words(char *line, char **word, int most);

/* Returns why a path of a list is not a file name - a command that ends in |, a place in an archive - or NULL. */
const char *gc_kaldi_refusal(const char *path);

/* Returns the path of a line of a RIR or noise list, or of a wav.scp, to be freed. *weight: its --probability, or 1.
 * NULL: *why is the reason, or NULL if memory is out. */
char *gc_kaldi_path(char *line, double *weight, const char **why);

#endif
