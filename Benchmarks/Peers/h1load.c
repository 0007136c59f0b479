// h1load: HTTP/1.1 keep-alive load generator, one thread, epoll, one request under way per connection.
// usage: h1load -p port -m mode -n count -c connections [-H hub -P policy -K key -i idfile]
//   modes: raw404   GET /                         (no token)
//          get401   GET /HUB/installations/ID     (no token)
//          get404   GET /HUB/installations/ID     (token, unknown id)
//          get200   the same with ids that -i lists
//          put      PUT of new installations; writes its ids to -i when given
//          reput    the same PUT of ids of -i with the same body (unchanged)
// Every request has a token of its own (expiry differs), so that nothing can be remembered.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int port = 8080, conns = 64;
static long count = 100000;
static const char *mode = "raw404", *hub = "bench", *policy = "", *key = "", *idfile = 0;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
static double cpu(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}
static uint64_t seed = 88172645463325252ull;
static uint64_t rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed * 0x2545F4914F6CDD1Dull;
}
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

static void token(char *out, long n) {
  char text[256], sig[64], esc[192];
  unsigned char mac[32];
  unsigned l = 32;
  long se = time(0) + 36000 + n;
  const char *enc = "http%3a%2f%2f127.0.0.1%2f";
  char sr[128];
  snprintf(sr, sizeof sr, "%s%s", enc, hub);
  snprintf(text, sizeof text, "%s\n%ld", sr, se);
  HMAC(EVP_sha256(), key, strlen(key), (unsigned char *)text, strlen(text), mac, &l);
  EVP_EncodeBlock((unsigned char *)sig, mac, 32);
  char *q = esc;
  for (char *p = sig; *p; p++) {
    if (*p == '+')
      q += sprintf(q, "%%2b");
    else if (*p == '/')
      q += sprintf(q, "%%2f");
    else if (*p == '=')
      q += sprintf(q, "%%3d");
    else
      *q++ = *p;
  }
  *q = 0;
  sprintf(out, "SharedAccessSignature sr=%s&sig=%s&se=%ld&skn=%s", sr, esc, se, policy);
}

typedef struct {
  char *p;
  int n;
} req;
static req build(long n, const char *id) {
  char tok[512], head[2048], body[1024];
  int bl = 0;
  int wants = strcmp(mode, "raw404") && strcmp(mode, "get401");
  if (wants)
    token(tok, n);
  if (!strncmp(mode, "put", 3) || !strcmp(mode, "reput")) {
    uint64_t h = strtoull(id, 0, 16);
    char handle[65];
    for (int k = 0; k < 4; k++)
      sprintf(handle + 16 * k, "%016lx", (unsigned long)mix(h * 4 + k));
    long u = (long)(mix(h) % 1000000000);
    bl =
        snprintf(body, sizeof body,
                 "{\"installationId\":\"%s\",\"platform\":\"apns\",\"pushChannel\":\"%s\",\"userId\":\"user%"
                 "ld\",\"tags\":[\"city%ld\",\"news\",\"group%ld\"],"
                 "\"pushVariables\":{\"lang\":\"en\"},\"templates\":{\"main\":{\"body\":\"{\\\"aps\\\":{"
                 "\\\"alert\\\":\\\"$(message)\\\",\\\"badge\\\":\\\"#(badge)\\\"}}\",\"tags\":[\"main\"]}}}",
                 id, handle, u, u % 1000, u % 10);
  }
  int l;
  if (!strcmp(mode, "raw404"))
    l = snprintf(head, sizeof head, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
  else if (bl)
    l = snprintf(
        head, sizeof head,
        "PUT /%s/installations/%s?api-version=2020-06 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: "
        "%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
        hub, id, port, tok, bl, body);
  else if (wants)
    l = snprintf(head, sizeof head,
                 "GET /%s/installations/%s?api-version=2020-06 HTTP/1.1\r\nHost: "
                 "127.0.0.1:%d\r\nAuthorization: %s\r\n\r\n",
                 hub, id, port, tok);
  else
    l = snprintf(head, sizeof head,
                 "GET /%s/installations/%s?api-version=2020-06 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", hub,
                 id, port);
  req r = {malloc(l), l};
  memcpy(r.p, head, l);
  return r;
}

typedef struct {
  int fd, need;
  char buf[8192];
  int len;
  double began;
} conn;
static int cmpd(const void *a, const void *b) {
  double x = *(double *)a, y = *(double *)b;
  return x < y ? -1 : x > y;
}

int main(int ac, char **av) {
  int o;
  while ((o = getopt(ac, av, "p:m:n:c:H:P:K:i:")) > 0)
    switch (o) {
    case 'p':
      port = atoi(optarg);
      break;
    case 'm':
      mode = optarg;
      break;
    case 'n':
      count = atol(optarg);
      break;
    case 'c':
      conns = atoi(optarg);
      break;
    case 'H':
      hub = optarg;
      break;
    case 'P':
      policy = optarg;
      break;
    case 'K':
      key = optarg;
      break;
    case 'i':
      idfile = optarg;
      break;
    }
  seed ^= mix(time(0) * 1000003ull + getpid());
  req *reqs = malloc(sizeof(req) * count);
  FILE *in = 0, *out = 0;
  char id[64];
  int listed = idfile && (!strcmp(mode, "get200") || !strcmp(mode, "reput"));
  if (listed)
    in = fopen(idfile, "r");
  if (idfile && !strcmp(mode, "put"))
    out = fopen(idfile, "w");
  for (long i = 0; i < count; i++) {
    if (in) {
      if (fscanf(in, "%63s", id) != 1) {
        rewind(in);
        if (fscanf(in, "%63s", id) != 1)
          return 1;
      }
    } else {
      uint64_t a = rnd(), b = rnd();
      snprintf(id, sizeof id, "%08x%08x-4%03x-8%03x-%012lx", (unsigned)(a >> 32), (unsigned)a,
               (unsigned)(b >> 52), (unsigned)(b >> 40) & 0xfff, (unsigned long)(b & 0xffffffffffff));
    }
    if (out)
      fprintf(out, "%s\n", id);
    reqs[i] = build(i, id);
  }
  if (out)
    fclose(out);
  conn *cs = calloc(conns, sizeof *cs);
  int ep = epoll_create1(0);
  for (int i = 0; i < conns; i++) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, 4);
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (void *)&sa, sizeof sa)) {
      perror("connect");
      return 1;
    }
    cs[i].fd = fd;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = cs + i};
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
  }
  double *lat = malloc(sizeof(double) * count);
  long next = 0, done = 0, st[6] = {0};
  double t0 = now(), u0 = cpu();
  for (int i = 0; i < conns && next < count; i++) {
    cs[i].began = now();
    if (write(cs[i].fd, reqs[next].p, reqs[next].n) != reqs[next].n)
      return 1;
    next++;
  }
  struct epoll_event ev[256];
  while (done < count) {
    int n = epoll_wait(ep, ev, 256, 10000);
    if (n <= 0) {
      fprintf(stderr, "stall at %ld\n", done);
      return 1;
    }
    double t = now();
    for (int i = 0; i < n; i++) {
      conn *c = ev[i].data.ptr;
      int r = read(c->fd, c->buf + c->len, sizeof c->buf - c->len - 1);
      if (r <= 0) {
        fprintf(stderr, "closed at %ld\n", done);
        return 1;
      }
      c->len += r;
      c->buf[c->len] = 0;
      char *e = memmem(c->buf, c->len, "\r\n\r\n", 4);
      if (!e)
        continue;
      char *cl = strcasestr(c->buf, "content-length:");
      long body = cl && cl < e ? atol(cl + 15) : 0;
      if (c->len < e + 4 - c->buf + body)
        continue;
      int s = c->buf[9] - '0';
      st[s >= 0 && s < 6 ? s : 0]++;
      c->len = 0;
      lat[done++] = t - c->began;
      if (next < count) {
        c->began = t;
        if (write(c->fd, reqs[next].p, reqs[next].n) != reqs[next].n)
          return 1;
        next++;
      }
    }
  }
  double T = now() - t0, U = cpu() - u0;
  qsort(lat, count, sizeof *lat, cmpd);
  printf("RESULT n=%ld rate=%.0f secs=%.3f load_cpu_us=%.2f p50_ms=%.2f p99_ms=%.2f s2xx=%ld s4xx=%ld "
         "s5xx=%ld\n",
         count, count / T, T, U / count * 1e6, lat[count / 2] * 1e3, lat[count * 99 / 100] * 1e3, st[2],
         st[4], st[5]);
  return 0;
}
