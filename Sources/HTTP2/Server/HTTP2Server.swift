/// An HTTP/2 server over TLS: for the emulator, the tests and the benchmarks.
///
/// ALPN is `h2`, or left out where the configuration allows that; TLS at least 1.2. A few threads with
/// blocking `poll` carry all connections; loop 0 accepts too.
package final class HTTP2Server: Sendable {
  private let core: ServerCore

  /// Binds, listens and serves from now on.
  package init(
    _ configuration: HTTP2ServerConfiguration, handler: any HTTP2ServerHandler
  ) throws(HTTP2ServerError) {
    core = try ServerCore(configuration, handler: handler)
    core.start()
  }

  deinit { core.stop() }

  /// The port in use, real even when 0 was asked for.
  package var port: UInt16 { core.port }

  /// The connections open now.
  package var connections: [HTTP2ServerConnection] { core.connections }

  /// Closes the listening socket: connects are refused, open connections stay.
  package func stopListening() { core.stopListening() }

  /// Opens the listening socket again on the same port.
  package func resumeListening() throws(HTTP2ServerError) { try core.resumeListening() }

  /// Closes everything and returns when the threads have ended; safe to call again.
  package func stop() async { await core.stopAndWait() }
}
