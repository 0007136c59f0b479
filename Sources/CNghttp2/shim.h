#include <nghttp2/nghttp2.h>
#if defined(__GLIBC__)
#include <malloc.h>
// Swift's module of the C library has no <malloc.h>.
static inline void belfry_trim_memory(void) { malloc_trim(0); }
#else
static inline void belfry_trim_memory(void) {}
#endif
