/// An HTTP server on one address: HTTP/1.1, and over TLS HTTP/2 for the clients that choose it by
/// ALPN. Serves until `stop` or until it is released.
package final class HTTPListener: Sendable {
  private let engine: Engine

  /// Binds and starts to serve.
  package init(
    _ configuration: HTTPConfiguration = HTTPConfiguration(), handler: any HTTPHandler
  ) throws(HTTPListenerError) {
    engine = try Engine(configuration, handler: handler)
  }

  deinit {
    // The engine must outlive its threads.
    Task { [engine] in await engine.stop(within: .zero) }
  }

  /// The address as bound, numeric.
  package var host: String { engine.host }
  /// The port as bound; the one chosen by the system if the configuration said 0.
  package var port: UInt16 { engine.port }

  /// Whether it speaks TLS.
  package var isSecure: Bool { engine.isSecure }

  /// Serves new connections with another certificate; those there are finish with theirs. Only for
  /// a listener that was started with one.
  ///
  /// - Throws: ``HTTPListenerError/certificateRefused(host:port:)``; the present one stays then.
  package func replaceIdentity(_ identity: TLSIdentity) throws(HTTPListenerError) {
    try engine.replaceIdentity(identity)
  }

  /// Stops accepting, ends streams, lets requests in flight finish within `limit`, answers the rest
  /// 503 and closes. Returns when every connection is closed; later calls wait for the first.
  package func stop(within limit: Duration = .seconds(5)) async {
    await engine.stop(within: limit)
  }
}

/// Why a server could not start.
package enum HTTPListenerError: Error, Equatable, CustomStringConvertible {
  /// Something else listens there already.
  case addressInUse(host: String, port: UInt16)
  /// The port is privileged and the process may not have it.
  case permissionDenied(host: String, port: UInt16)
  /// The host is not an address of this machine, or no address at all.
  case badAddress(host: String)
  /// The certificate or its private key cannot be used, or the library was built without TLS.
  case certificateRefused(host: String, port: UInt16)
  /// A system call or libmicrohttpd refused; `reason` is the system's text.
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
