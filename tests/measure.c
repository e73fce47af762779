/* Runs a command and writes its peak resident memory in KiB to a file:
 *
 *   measure FILE COMMAND [ARGUMENT...]        exit status: the command's own, 128 + signal when it was killed */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (child < 0 || waitpid(child, &status, 0) != child || getrusage(RUSAGE_CHILDREN, &usage) != 0)
        return 2;
    FILE *f = fopen(argv[1], "w");
    if (!f || fprintf(f, "%ld\n", usage.ru_maxrss) < 0 || fclose(f) != 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
