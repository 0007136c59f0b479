// OpenSSL's macros, as functions that Swift can call.
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/obj_mac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Keys, certificates and archives.
static inline EVP_PKEY *belfry_generate_p256(void) { return EVP_EC_gen("P-256"); }
static inline int belfry_utf8_string_kind(void) { return MBSTRING_UTF8; }
static inline unsigned long belfry_rfc2253(void) { return XN_FLAG_RFC2253; }
static inline void belfry_free(void *memory) { OPENSSL_free(memory); }

// TLS: what HTTP2 needs of <openssl/ssl.h>.

static inline int belfry_ssl_ctx_set_minimum_tls12(SSL_CTX *context) {
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}
static inline void belfry_ssl_ctx_set_maximum(SSL_CTX *context, int version) {
  SSL_CTX_set_max_proto_version(context, version);
}
// Partial writes from a buffer that may move; `readAhead` bytes are read from the socket at once.
static inline void belfry_ssl_ctx_set_batching(SSL_CTX *context, size_t readAhead) {
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, readAhead);
}
static inline void belfry_ssl_ctx_disable_resumption(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
}
static inline void belfry_ssl_ctx_refuse_renegotiation(SSL_CTX *context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
}
static inline void belfry_ssl_set_message_callback(
    SSL *ssl,
    void (*callback)(int, int, int, const void *, size_t, SSL *, void *), void *argument) {
  SSL_set_msg_callback(ssl, callback);
  SSL_set_msg_callback_arg(ssl, argument);
}
static inline int belfry_ssl_ctx_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
  return (int)SSL_CTX_add1_chain_cert(context, certificate);
}
static inline int belfry_ssl_set_server_name(SSL *ssl, const char *name) {
  return (int)SSL_set_tlsext_host_name(ssl, name);
}
static inline int belfry_err_reason(unsigned long code) { return ERR_GET_REASON(code); }

// RSA, and what encrypts for Web Push.
static inline EVP_PKEY *belfry_generate_rsa(size_t bits) { return EVP_RSA_gen(bits); }
// A context for HMAC-SHA-256 that lacks its key; EVP_MAC_init sets one for each message.
static inline EVP_MAC_CTX *belfry_hmac_sha256(void) {
  EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
  EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
  EVP_MAC_free(mac);
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
      OSSL_PARAM_construct_end()};
  if (context != NULL && EVP_MAC_CTX_set_params(context, parameters) != 1) {
    EVP_MAC_CTX_free(context);
    return NULL;
  }
  return context;
}
