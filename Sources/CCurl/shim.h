#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <fcntl.h>
#include <sys/socket.h>

// libcurl's variadic calls, which Swift cannot import, each with the shapes that we use.

static inline CURLcode belfry_curl_global_init(void) { return curl_global_init(CURL_GLOBAL_ALL); }

static inline CURLcode belfry_curl_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode belfry_curl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode belfry_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}
static inline CURLcode belfry_curl_set_headers(CURL *easy, struct curl_slist *list) {
  return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
}
/// Sends these bytes as the body, from where they lie.
static inline CURLcode belfry_curl_set_body(CURL *easy, const void *bytes, curl_off_t count) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, count);
  return code ? code : curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bytes);
}
/// Trusts the certificates of a PEM text, which is copied, in place of the bundle set by default.
static inline CURLcode belfry_curl_set_anchors(CURL *easy, const void *bytes, size_t count) {
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  return curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
}
static inline CURLcode belfry_curl_set_receivers(
    CURL *easy, void *owner, size_t (*header)(char *, size_t, size_t, void *),
    size_t (*body)(char *, size_t, size_t, void *)) {
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, owner);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, owner);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
  return curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
}
static inline CURLcode belfry_curl_set_opener(
    CURL *easy, void *owner, curl_opensocket_callback open) {
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, owner);
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
}
/// Leaves a name look-up that hangs behind instead of waiting for it, where libcurl can (7.87).
static inline void belfry_curl_set_quick_exit(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
  (void)easy;
#endif
}
/// HTTPS only, or plain HTTP too.
static inline CURLcode belfry_curl_set_schemes(CURL *easy, int plain) {
#if LIBCURL_VERSION_NUM >= 0x075500
  return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, plain ? "https,http" : "https");
#else
  return curl_easy_setopt(
      easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | (plain ? CURLPROTO_HTTP : 0)));
#endif
}
static inline long belfry_curl_get_long(CURL *easy, CURLINFO info) {
  long value = 0;
  curl_easy_getinfo(easy, info, &value);
  return value;
}
static inline CURLMcode belfry_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}
/// The directory of hashed certificates that libcurl was built to trust, or NULL.
static inline const char *belfry_curl_default_directory(void) {
  return curl_version_info(CURLVERSION_NOW)->capath;
}
/// The file of certificates that libcurl was built to trust, or NULL.
static inline const char *belfry_curl_default_bundle(void) {
  return curl_version_info(CURLVERSION_NOW)->cainfo;
}
static inline curl_socket_t belfry_curl_no_socket(void) { return CURL_SOCKET_BAD; }
/// A socket that no child process inherits.
static inline curl_socket_t belfry_curl_socket(int family, int type, int protocol) {
  curl_socket_t made = socket(family, type, protocol);
  if (made >= 0) fcntl(made, F_SETFD, FD_CLOEXEC);
  return made;
}
/// The address that libcurl is about to connect to, which lies behind the fixed part.
static inline const struct sockaddr *belfry_curl_address(const struct curl_sockaddr *address) {
  return &address->addr;
}
