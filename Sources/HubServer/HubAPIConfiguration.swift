package import HTTPServer

/// What the REST API needs to know about where it is served.
package struct HubAPIConfiguration: Sendable {
  /// Names, besides the one in a request's `Host` header, under which clients may have signed their
  /// tokens: those a proxy in front answers to (spec `sas.md` 4.1). Without port.
  package var publicHosts: [String] = []
  /// The scheme of the URLs that replies carry: `https` when a proxy in front speaks TLS. `nil`
  /// takes that of the listener that a request came to.
  package var publicScheme: String?
  /// The name of the namespace that the hubs belong to; `nil` takes it from the request's host.
  package var namespace: String?
  /// The value of the `Server` header.
  package var serverName = "Belfry"

  package init() {}

  /// The largest body of any request, in bytes: a batch of a thousand devices, whatever their
  /// handles. A notification has its own, smaller limit.
  package static let maxBodyBytes = 1024 * 1024

  /// The listener's limits that suit this API; host and port remain to be set.
  package static var listener: HTTPConfiguration {
    var configuration = HTTPConfiguration()
    configuration.maxBodyBytes = maxBodyBytes
    return configuration
  }
}
