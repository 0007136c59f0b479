// OpenSSL's macros, as functions that Swift can call.
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
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
