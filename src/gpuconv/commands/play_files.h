/* The responses that `gpuconv play` and `gpuconv live` were given: files, and the files of folders. */
#ifndef GPUCONV_COMMANDS_PLAY_FILES_H
#define GPUCONV_COMMANDS_PLAY_FILES_H

enum { GC_PLAY_RESPONSES_MOST = 256 };

typedef struct gc_play_files {
    char *path[GC_PLAY_RESPONSES_MOST];
    int count;
} gc_play_files;

/* Copies the paths; a folder is replaced by its files of audio and .conf and .matrix files in the order of their names,
 * without hidden ones. Prints an error. @return an exit status; the files must be freed in any case */
int gc_play_files_collect(gc_play_files *files, const char *const *paths, int count);
void gc_play_files_free(gc_play_files *files);

#endif
