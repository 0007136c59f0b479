/// An HTTP/2 server over TLS: the half of `HTTPServer` for clients that choose it, and the server of
/// the emulator.
///
/// ALPN is `h2`, or left out where the configuration allows that; TLS at least 1.2. A few threads with
/// blocking `poll` carry all connections; loop 0 accepts too, unless the connections come by `adopt`.
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

  /// Serves a connection that was accepted elsewhere, from its first byte of TLS on.
  ///
  /// - Parameters:
  ///   - descriptor: Owned by the server from here on, which closes it after
  ///     `HTTP2ServerHandler.socketClosed(id:)`.
  ///   - peer: The client's numeric address.
  ///   - id: What `HTTP2ServerConnection.id` is; unique within the server.
  package func adopt(_ descriptor: Int32, peer: String, id: UInt64) {
    core.adopt(descriptor, peer: peer, id: id)
  }

  /// Shows new connections another certificate; those there are keep theirs.
  ///
  /// - Throws: When it cannot be used; the present one stays then.
  package func replaceIdentity(
    certificatePEM: [UInt8], keyPEM: [UInt8]
  ) throws(HTTP2ServerError) {
    try core.replaceIdentity(certificatePEM: certificatePEM, keyPEM: keyPEM)
  }

  /// The port in use, real even when 0 was asked for; 0 without a listening socket.
  package var port: UInt16 { core.port }

  /// The connections open now.
  package var connections: [HTTP2ServerConnection] { core.connections }

  /// Closes the listening socket: connects are refused, open connections stay. Does not wait.
  package func stopListening() { core.stopListening() }

  /// Opens the listening socket again on the same port.
  package func resumeListening() throws(HTTP2ServerError) { try core.resumeListening() }

  /// Has the threads look at the configuration's clock again: for tests, which move it by hand.
  func lookAtClock() { for loop in core.loops { loop.pipe.wake() } }

  /// Closes everything and returns when the threads have ended; safe to call again.
  package func stop() async { await core.stopAndWait() }
}
