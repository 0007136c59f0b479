#include <sqlite3.h>

/* Macros that hold a cast do not reach Swift. */
static inline sqlite3_destructor_type belfry_sqlite_transient(void) { return SQLITE_TRANSIENT; }

/* A variadic function does not either. Counting every allocation under a lock is not worth it. */
static inline int belfry_sqlite_disable_statistics(void) {
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
