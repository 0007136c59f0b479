// libpq, the C client of PostgreSQL.
#include <libpq-fe.h>

// Field codes of an error, macros of characters that Swift would import as integers of another
// width.
static inline const char *belfry_pq_sqlstate(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}
static inline const char *belfry_pq_message(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}
// Notices ("table does not exist, skipping") go nowhere: standard error is the program's own.
static inline void belfry_pq_ignore(void *argument, const PGresult *result) {
  (void)argument;
  (void)result;
}
static inline void belfry_pq_silence(PGconn *connection) {
  PQsetNoticeReceiver(connection, belfry_pq_ignore, NULL);
}
