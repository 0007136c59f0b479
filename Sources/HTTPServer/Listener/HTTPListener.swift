/// An HTTP/1.1 server on one address.
package final class HTTPListener: Sendable {
  /// The address as bound, numeric.
  package let host: String
  /// The port as bound; the one chosen by the system if the configuration said 0.
  package let port: UInt16

  /// Binds and starts to serve.
  package init(
    _ configuration: HTTPConfiguration = HTTPConfiguration(), handler: any HTTPHandler
  ) throws(HTTPListenerError) {
    host = configuration.host
    port = configuration.port
  }

  /// Stops accepting, ends streams, lets requests in flight finish within `limit`, answers the rest
  /// 503 and closes. Returns when every connection is closed. Later calls wait for the first.
  package func stop(within limit: Duration = .seconds(5)) async {
  }
}
