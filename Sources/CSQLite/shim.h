#include <sqlite3.h>

/* Macros that hold a cast do not reach Swift. */
static inline sqlite3_destructor_type belfry_sqlite_transient(void) { return SQLITE_TRANSIENT; }
