#include <microhttpd.h>

// libmicrohttpd's variadic calls, which Swift cannot import, each with the one shape we use.

/// Starts a daemon that serves `listen_fd` (bound, listening, non-blocking) on `threads` threads
/// of its own. Everything is passed `cls`.
static inline struct MHD_Daemon *mhd_start(
    int listen_fd, unsigned int threads, unsigned int connections, unsigned int connections_per_ip,
    size_t connection_memory, MHD_AccessHandlerCallback access,
    void *(*uri_log)(void *cls, const char *uri, struct MHD_Connection *connection),
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback notify, void *cls) {
  return MHD_start_daemon(
      MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, access, cls,
      MHD_OPTION_LISTEN_SOCKET, listen_fd,
      MHD_OPTION_THREAD_POOL_SIZE, threads,
      MHD_OPTION_CONNECTION_LIMIT, connections,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, connections_per_ip,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
      MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_URI_LOG_CALLBACK, uri_log, cls,
      MHD_OPTION_NOTIFY_COMPLETED, completed, cls,
      MHD_OPTION_NOTIFY_CONNECTION, notify, cls,
      MHD_OPTION_END);
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

/// The peer's address, or NULL.
static inline const struct sockaddr *mhd_peer(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : NULL;
}

/// Lets a response carry a `Content-Length` of the application's own.
static inline void mhd_allow_content_length(struct MHD_Response *response) {
  (void) MHD_set_response_options(response, MHD_RF_INSANITY_HEADER_CONTENT_LENGTH, MHD_RO_END);
}
