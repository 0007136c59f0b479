// Linked into the coverage build of script/measure. The counters are those of the whole process, and belfry ends
// without running exit handlers: so another process says when they begin at zero, and when they are written.

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void __llvm_profile_reset_counters(void);
extern void __llvm_profile_set_filename(const char *);
extern int __llvm_profile_write_file(void);

/// Reads lines from the named pipe MEASURE_PIPE: `reset`, or the path of the file to write. Each is answered by a file
/// with the pipe's name and `.done`.
static void *listen_for_lines(void *pipe) {
  char done[4096], line[4096];
  snprintf(done, sizeof done, "%s.done", (const char *)pipe);
  // Opened for writing too, so that no reading ends when a writer leaves.
  FILE *lines = fdopen(open(pipe, O_RDWR), "r");
  while (lines && fgets(line, sizeof line, lines)) {
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "reset") == 0) {
      __llvm_profile_reset_counters();
    } else {
      __llvm_profile_set_filename(line);
      __llvm_profile_write_file();
    }
    close(open(done, O_CREAT | O_WRONLY, 0600));
  }
  return NULL;
}

__attribute__((constructor)) static void start_listening(void) {
  pthread_t thread;
  char *pipe = getenv("MEASURE_PIPE");
  if (pipe && pthread_create(&thread, NULL, listen_for_lines, strdup(pipe)) == 0) pthread_detach(thread);
  unsetenv("MEASURE_PIPE");
}
