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
