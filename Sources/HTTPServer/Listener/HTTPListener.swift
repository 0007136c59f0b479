/// An HTTP server on one address: HTTP/1.1, and over TLS also HTTP/2 for clients that choose it by
/// ALPN. Serves until `stop` or until it is released.
package final class HTTPListener: Sendable {
  private let engine: Engine

  /// Binds the address and starts serving.
  package init(
    _ configuration: HTTPConfiguration = HTTPConfiguration(), handler: any HTTPHandler
  ) throws(HTTPListenerError) {
    engine = try Engine(configuration, handler: handler)
  }

  deinit {
    // The engine must outlive its threads.
    Task { [engine] in await engine.stop(within: .zero) }
  }

  /// The numeric address that it is bound to.
  package var host: String { engine.host }
  /// The port that it is bound to; chosen by the system if the configuration says 0.
  package var port: UInt16 { engine.port }

  /// Whether it serves TLS.
  package var isSecure: Bool { engine.isSecure }

  /// Serves new connections with another certificate; existing ones keep theirs. Only for a
  /// listener that was started with a certificate.
  ///
  /// - Throws: ``HTTPListenerError/certificateRefused(host:port:)``; the present one then stays.
  package func replaceIdentity(_ identity: TLSIdentity) throws(HTTPListenerError) {
    try engine.replaceIdentity(identity)
  }

  /// Stops accepting, ends streams, lets requests in flight finish within `limit`, replies 503 to
  /// the rest and closes. Returns when every connection is closed; later calls wait for the first.
  package func stop(within limit: Duration = .seconds(5)) async {
    await engine.stop(within: limit)
  }
}

/// The reason why a server could not start.
package enum HTTPListenerError: Error, Equatable, CustomStringConvertible {
  /// Another program is listening on the port.
  case addressInUse(host: String, port: UInt16)
  /// The port is privileged and the process lacks permission.
  case permissionDenied(host: String, port: UInt16)
  /// The host is not an address of this machine, or not an address.
  case badAddress(host: String)
  /// The certificate or its private key cannot be used, or the library was built without TLS.
  case certificateRefused(host: String, port: UInt16)
  /// A system call or libmicrohttpd failed; `reason` is the system's message.
  case system(host: String, port: UInt16, reason: String)

  package var description: String {
    switch self {
    case .addressInUse(let host, let port):
      "cannot listen on \(host) port \(port): another program uses it; stop that program, "
        + "or choose another port (0 takes a free one)"
    case .permissionDenied(let host, let port):
      "cannot listen on \(host) port \(port): ports below 1024 need privileges; "
        + "choose a higher port"
    case .badAddress(let host):
      "cannot listen on '\(host)': it is not an address of this machine; use 127.0.0.1 for this "
        + "machine only, or 0.0.0.0 for all its IPv4 addresses"
    case .certificateRefused(let host, let port):
      "cannot serve HTTPS on \(host) port \(port): the TLS library does not take the certificate "
        + "with its private key; both must be PEM and belong together, the server's own "
        + "certificate first"
    case .system(let host, let port, let reason):
      "cannot listen on \(host) port \(port): \(reason)"
    }
  }
}
