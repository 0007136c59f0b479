// What libnghttp2 and OpenSSL cost by themselves: one connection, up to STREAMS requests in flight,
// each to a token of its own, frames gathered into TLS records of 16 KiB. No queue, no batches, no
// pool, no errors handled but by ending.
//
// usage: raw_nghttp2 HOST PORT COUNT STREAMS   (prints how many replies were 200)
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECORD = 16384 };

static const char BODY[] = "{\"aps\":{\"alert\":\"Hello from Postman!\"}}";
static char bearer[200];
static long total, streams, submitted, finished, accepted;
static unsigned long long seed = 42;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static unsigned long long splitmix(void) {
  unsigned long long mixed = seed += 0x9E3779B97F4A7C15ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
  return mixed ^ (mixed >> 31);
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *into, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *user) {
  (void)session, (void)stream, (void)user;
  // What is left of the window may be less than a body: `fd` is how far this stream's has come.
  size_t left = sizeof BODY - 1 - (size_t)source->fd, part = left < room ? left : room;
  memcpy(into, BODY + source->fd, part);
  source->fd += (int)part;
  if (part == left) *flags = NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)part;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *user) {
  (void)session, (void)frame, (void)flags, (void)user;
  if (name_length == 7 && memcmp(name, ":status", 7) == 0)
    accepted += value_length == 3 && memcmp(value, "200", 3) == 0;
  return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
  (void)session, (void)stream, (void)code, (void)user;
  finished++;
  return 0;
}

#define FIELD(n, v, length, flag) \
  {(uint8_t *)n, (uint8_t *)(v), sizeof n - 1, length, \
   NGHTTP2_NV_FLAG_NO_COPY_NAME | flag}

static void submit(nghttp2_session *session) {
  char path[11 + 64 + 1];
  snprintf(path, sizeof path, "/3/device/%016llx%016llx%016llx%016llx", splitmix(), splitmix(),
           splitmix(), splitmix());
  nghttp2_nv fields[] = {
      FIELD(":method", "POST", 4, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
      FIELD(":scheme", "https", 5, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
      FIELD(":authority", "api.push.apple.com", 18, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
      FIELD(":path", path, strlen(path), NGHTTP2_NV_FLAG_NO_INDEX),
      FIELD("authorization", bearer, strlen(bearer),
            NGHTTP2_NV_FLAG_NO_COPY_VALUE | NGHTTP2_NV_FLAG_NO_INDEX),
      FIELD("apns-topic", "com.example.app", 15, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
      FIELD("apns-push-type", "alert", 5, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
      FIELD("apns-priority", "10", 2, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
      FIELD("apns-expiration", "0", 1, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
  };
  nghttp2_data_provider body = {.read_callback = read_body};
  if (nghttp2_submit_request(session, NULL, fields, sizeof fields / sizeof *fields, &body, NULL) < 0)
    die("submit");
  submitted++;
}

static void write_all(SSL *tls, const uint8_t *bytes, size_t count) {
  while (count > 0) {
    int written = SSL_write(tls, bytes, (int)count);
    if (written <= 0) die("SSL_write");
    bytes += written;
    count -= (size_t)written;
  }
}

// Sends all that nghttp2 has, in full TLS records.
static void flush(nghttp2_session *session, SSL *tls) {
  static uint8_t record[RECORD];
  size_t used = 0;
  const uint8_t *frame;
  ssize_t length;
  while ((length = nghttp2_session_mem_send(session, &frame)) > 0) {
    while (length > 0) {
      size_t part = (size_t)length < RECORD - used ? (size_t)length : RECORD - used;
      memcpy(record + used, frame, part);
      used += part, frame += part, length -= (ssize_t)part;
      if (used == RECORD) write_all(tls, record, used), used = 0;
    }
  }
  if (length < 0) die("mem_send");
  if (used > 0) write_all(tls, record, used);
}

int main(int count, char **words) {
  if (count != 5) return fprintf(stderr, "usage: raw_nghttp2 HOST PORT COUNT STREAMS\n"), 64;
  total = atol(words[3]), streams = atol(words[4]);
  strcpy(bearer, "bearer ");
  for (int i = 7; i < 190; i++)
    bearer[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[splitmix() % 64];

  struct addrinfo *address, hints = {.ai_socktype = SOCK_STREAM};
  if (getaddrinfo(words[1], words[2], &hints, &address) != 0) die("getaddrinfo");
  int fd = socket(address->ai_family, SOCK_STREAM, 0), one = 1;
  if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x02h2", 3);
  SSL *tls = SSL_new(context);
  SSL_set_fd(tls, fd);
  SSL_set_tlsext_host_name(tls, "localhost");
  if (SSL_connect(tls) != 1) die("SSL_connect");

  nghttp2_session_callbacks *callbacks;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  nghttp2_session *session;
  nghttp2_session_client_new(&session, callbacks, NULL);
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);

  static uint8_t received[RECORD];
  while (finished < total) {
    // Half a window at a time, so that records are full.
    if (submitted - finished <= streams / 2)
      while (submitted < total && submitted - finished < streams) submit(session);
    flush(session, tls);
    int length = SSL_read(tls, received, sizeof received);
    if (length <= 0) die("SSL_read");
    if (nghttp2_session_mem_recv(session, received, (size_t)length) < 0) die("mem_recv");
  }
  printf("%ld\n", accepted);
  return accepted == total ? 0 : 1;
}
