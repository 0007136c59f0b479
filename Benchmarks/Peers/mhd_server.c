/* What libmicrohttpd itself costs: 404 to every request, at once, or as a hub must whose answer is
   not there yet: suspended, and resumed by another thread.
   usage: mhd_server PORT at-once|suspended */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };
static int suspends;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct MHD_Connection *waiting[MOST];
static int count;

static void *resume(void *unused) {
  struct MHD_Connection *taken[MOST];
  for (;;) {
    pthread_mutex_lock(&lock);
    while (count == 0)
      pthread_cond_wait(&ready, &lock);
    int number = count;
    memcpy(taken, waiting, sizeof *taken * number);
    count = 0;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < number; i++)
      MHD_resume_connection(taken[i]);
  }
  return unused;
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body, size_t *size,
                              void **state) {
  static char seen, passed;
  (void)cls, (void)url, (void)method, (void)version, (void)body;
  if (!*state)
    return *state = &seen, MHD_YES;
  if (*size)
    return *size = 0, MHD_YES;
  if (suspends && *state == &seen) {
    *state = &passed;
    MHD_suspend_connection(connection);
    pthread_mutex_lock(&lock);
    waiting[count++] = connection;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    return MHD_YES;
  }
  struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
  enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, response);
  MHD_destroy_response(response);
  return result;
}

int main(int words, char **word) {
  if (words != 3)
    return fprintf(stderr, "usage: mhd_server PORT at-once|suspended\n"), 64;
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(atoi(word[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  suspends = !strcmp(word[2], "suspended");
  pthread_t thread;
  if (suspends)
    pthread_create(&thread, NULL, resume, NULL);
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | (suspends ? MHD_ALLOW_SUSPEND_RESUME : 0);
  if (!MHD_start_daemon(flags, 0, NULL, NULL, answer, NULL, MHD_OPTION_SOCK_ADDR, &address,
                        MHD_OPTION_THREAD_POOL_SIZE, 2u, MHD_OPTION_END))
    return perror("mhd_server"), 1;
  pause();
}
