// A push service that costs next to nothing, so that a broadcast's rate is the hub's: it takes HTTP/2 over TLS, reads
// only the frames' headers, and answers each request with 200 and one apns-id for all. Not a server: it trusts its client.
//
// It takes the place of `belfry-bench transport-sink` (script/bench-peers broadcast sets BELFRY_BENCH_SINK): prints its port and
// certificate as a line of JSON, ends with its standard input, and prints its CPU seconds.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATA, HEADERS, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, HEAD = 9, ROOM = 1 << 16 };

static SSL_CTX *context;

static void must(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

static size_t frame(uint8_t *out, int type, int flags, uint32_t stream, const void *payload, size_t size) {
  uint8_t head[HEAD] = {size >> 16,   size >> 8,    size,        type,  flags,
                        stream >> 24, stream >> 16, stream >> 8, stream};
  memcpy(out, head, HEAD);
  memcpy(out + HEAD, payload, size);
  return HEAD + size;
}

static uint32_t number(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

// :status 200 of the static table, and a field that is not indexed.
static const uint8_t answer[] = "\x88\x00\x07" "apns-id" "\x24" "EC1BF194-B3B2-424A-89E9-5A918A6E6B5F";

static void *serve(void *argument) {
  int socket = (int)(intptr_t)argument, on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  SSL *tls = SSL_new(context);
  uint8_t *in = malloc(2 * ROOM), *out = malloc(8 * ROOM);
  // 1000 streams at a time, as the Swift one, and the largest window.
  static const uint8_t settings[] = {0, 3, 0, 0, 3, 232}, window[] = {0x7f, 0xff, 0, 0};
  size_t kept = 0, written = frame(out, SETTINGS, 0, 0, settings, sizeof settings);
  written += frame(out + written, WINDOW_UPDATE, 0, 0, window, sizeof window);
  uint64_t taken = 0;
  int hasPreface = 0;
  if (SSL_set_fd(tls, socket) != 1 || SSL_accept(tls) != 1) goto end;
  for (;;) {
    if (written && SSL_write(tls, out, (int)written) <= 0) break;
    written = 0;
    int got = SSL_read(tls, in + kept, ROOM);
    if (got <= 0) break;
    kept += got;
    size_t at = 0;
    if (!hasPreface) {
      if (kept < 24) continue;
      at = 24;
      hasPreface = 1;
    }
    while (kept - at >= HEAD) {
      const uint8_t *head = in + at;
      size_t size = head[0] << 16 | head[1] << 8 | head[2];
      if (size > ROOM / 2) goto end;
      if (kept - at < HEAD + size) break;
      int type = head[3], flags = head[4];
      uint32_t stream = number(head + 5);
      if ((type == DATA || type == HEADERS) && flags & END_STREAM)
        written += frame(out + written, HEADERS, END_STREAM | END_HEADERS, stream, answer, sizeof answer - 1);
      if (type == DATA) taken += size;
      if ((type == SETTINGS || type == PING) && !(flags & ACK))
        written += frame(out + written, type, ACK, 0, head + HEAD, type == PING ? size : 0);
      at += HEAD + size;
      if (written > 7 * ROOM) {
        if (SSL_write(tls, out, (int)written) <= 0) goto end;
        written = 0;
      }
    }
    if (taken > 1 << 30) {
      uint8_t more[] = {taken >> 24, taken >> 16, taken >> 8, taken};
      written += frame(out + written, WINDOW_UPDATE, 0, 0, more, sizeof more);
      taken = 0;
    }
    memmove(in, in + at, kept -= at);
  }
end:
  SSL_free(tls);
  close(socket);
  free(in);
  free(out);
  return NULL;
}

static int chooses(SSL *tls, const uint8_t **out, uint8_t *size, const uint8_t *in, unsigned count, void *argument) {
  return SSL_select_next_proto((uint8_t **)out, size, (const uint8_t *)"\x02h2", 3, in, count) == OPENSSL_NPN_NEGOTIATED
             ? SSL_TLSEXT_ERR_OK
             : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// A certificate for 127.0.0.1 that is its own authority.
static X509 *certificate(EVP_PKEY *key) {
  X509 *it = X509_new();
  X509_set_version(it, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(it), 1);
  X509_gmtime_adj(X509_getm_notBefore(it), -60);
  X509_gmtime_adj(X509_getm_notAfter(it), 86400);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(it), "CN", MBSTRING_ASC, (const uint8_t *)"h2sink", -1, -1, 0);
  X509_set_issuer_name(it, X509_get_subject_name(it));
  X509_set_pubkey(it, key);
  static const struct { int id; const char *value; } all[] = {
      {NID_basic_constraints, "critical,CA:TRUE"}, {NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, NULL, all[i].id, all[i].value);
    must(one && X509_add_ext(it, one, -1), "certificate");
    X509_EXTENSION_free(one);
  }
  must(X509_sign(it, key, EVP_sha256()), "certificate");
  return it;
}

static void *accepts(void *argument) {
  for (;;) {  // until the process ends
    int socket = accept((int)(intptr_t)argument, NULL, NULL);
    pthread_t thread;
    if (socket >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)socket) == 0) pthread_detach(thread);
  }
  return NULL;
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *own = certificate(key);
  context = SSL_CTX_new(TLS_server_method());
  must(SSL_CTX_use_certificate(context, own) && SSL_CTX_use_PrivateKey(context, key), "TLS");
  SSL_CTX_set_alpn_select_cb(context, chooses, NULL);
  int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof place;
  must(bind(socket_, (void *)&place, size) == 0 && listen(socket_, 64) == 0, "listen");
  getsockname(socket_, (void *)&place, &size);
  BIO *text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(text, own);
  char *pem;
  long length = BIO_get_mem_data(text, &pem);
  printf("{\"port\":%d,\"authorityPEM\":\"", ntohs(place.sin_port));
  for (long i = 0; i < length; i++)
    if (pem[i] == '\n') printf("\\n");
    else putchar(pem[i]);
  puts("\"}");
  fflush(stdout);
  pthread_t thread;
  must(pthread_create(&thread, NULL, accepts, (void *)(intptr_t)socket_) == 0, "thread");
  char end;
  while (read(0, &end, 1) > 0) {}
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%f\n", used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
  return 0;
}
