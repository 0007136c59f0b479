#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

// libmicrohttpd's variadic calls, which Swift cannot import, each with the one shape we use.

// Where there is no epoll, the library waits on a thread of its own, and `MHD_run` does nothing.
#ifdef __linux__
#define MHD_WAITS_ITSELF 0
#else
#define MHD_WAITS_ITSELF 1
#endif

/// Starts a daemon without a listening socket, which serves what `MHD_add_connection` gives it whenever
/// `MHD_run` is called. Everything is passed `cls`. Requests without `Host` and with blanks in the target come
/// through to `access`: anyone who refuses them words the refusal. With a certificate (PEM, the leaf first) and its key
/// (PEM) it speaks TLS 1.2 and 1.3 only, in place of plain HTTP; both texts are copied.
static inline struct MHD_Daemon *mhd_start(
    unsigned int connections, size_t connection_memory, const char *certificate, const char *key, MHD_LogCallback log,
    MHD_AccessHandlerCallback access,
    void *(*uri_log)(void *cls, const char *uri, struct MHD_Connection *connection),
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback notify, void *cls) {
  struct MHD_OptionItem tls[] = {
      {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *) certificate},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *) key},
      {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
      {MHD_OPTION_END, 0, NULL}};
  struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
  return MHD_start_daemon(
      (MHD_WAITS_ITSELF ? MHD_USE_AUTO_INTERNAL_THREAD : MHD_USE_EPOLL) | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
          MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
          (certificate ? MHD_USE_TLS : 0),
      0, NULL, NULL, access, cls,
      MHD_OPTION_EXTERNAL_LOGGER, log, cls,
      MHD_OPTION_CONNECTION_LIMIT, connections,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
      MHD_OPTION_URI_LOG_CALLBACK, uri_log, cls,
      MHD_OPTION_NOTIFY_COMPLETED, completed, cls,
      MHD_OPTION_NOTIFY_CONNECTION, notify, cls,
      MHD_OPTION_ARRAY, certificate ? tls : none,
      MHD_OPTION_END);
}

/// What is readable when `MHD_run` has something to do, or -1.
static inline int mhd_poll_descriptor(struct MHD_Daemon *daemon) {
  if (MHD_WAITS_ITSELF) return -1;
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

/// How many milliseconds later `MHD_run` has something to do in any case, or -1.
static inline int mhd_poll_timeout(struct MHD_Daemon *daemon) {
  MHD_UNSIGNED_LONG_LONG timeout;
  if (MHD_WAITS_ITSELF || MHD_get_timeout(daemon, &timeout) != MHD_YES) return -1;
  return timeout > 1000000 ? 1000000 : (int) timeout;
}

/// The connection's socket, or -1.
static inline int mhd_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

/// What the MHD_NotifyConnectionCallback stored for this connection.
static inline void *mhd_socket_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

/// Whether the head of the connection's present request has been read to its end.
static inline int mhd_has_head(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL;
}

/// How many bytes the head of the connection's present request takes, from the method to the empty
/// line; 0 while it is not complete.
static inline size_t mhd_head_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info ? info->header_size : 0;
}

/// Whether the request carries `Transfer-Encoding: chunked` as libmicrohttpd reads it, which looks
/// at the first such field and leaves blanks behind it in place.
static inline int mhd_is_chunked(struct MHD_Connection *connection) {
  const char *coding =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding");
  return coding && strlen(coding) == 7;
}

/// How many bytes the peer has sent on a TCP socket, or -1 where the system does not tell.
static inline long long mhd_bytes_received(int socket) {
#ifdef __linux__
  // The C library's `struct tcp_info` ends before the field `tcpi_bytes_received` of the system's
  // (linux/tcp.h, since Linux 4.1), whose place is fixed.
  unsigned char info[136];
  socklen_t size = sizeof(info);
  unsigned long long count;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, &size) == 0 && size == sizeof(info)) {
    memcpy(&count, info + 128, sizeof(count));
    return (long long) count;
  }
#else
  (void) socket;
#endif
  return -1;
}

/// Lets a response carry a `Content-Length` of the application's own.
static inline void mhd_allow_content_length(struct MHD_Response *response) {
  (void) MHD_set_response_options(response, MHD_RF_INSANITY_HEADER_CONTENT_LENGTH, MHD_RO_END);
}
