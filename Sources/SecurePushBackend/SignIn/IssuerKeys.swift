package import Foundation
import NotificationHubs

/// Where the public keys of a token's issuer come from.
package enum IssuerKeySource: Hashable, Sendable {
  case file(String)
  /// The issuer's `jwks_uri`.
  case url(URL)
}

/// The keys of an issuer at hand: read on first use, again after an hour, and when a token names a
/// key that is not there, but not more often than every half minute.
actor IssuerKeys {
  private static let lifetime: TimeInterval = 3600
  private static let pause: TimeInterval = 30
  private static let sizeLimit = 1 << 20

  private let source: IssuerKeySource
  private let transport: any HTTPTransport
  private let now: @Sendable () -> Date
  private var current: JSONWebKeySet?
  private var readAt = Date.distantPast
  private var flight: Task<JSONWebKeySet?, Never>?

  init(
    _ source: IssuerKeySource, transport: any HTTPTransport, now: @escaping @Sendable () -> Date
  ) {
    self.source = source
    self.transport = transport
    self.now = now
  }

  /// - Returns: `nil` when the issuer has no such key.
  /// - Throws: ``BearerRefusal/keysUnavailable`` when the keys cannot be read.
  func key(named id: String?) async throws -> JSONWebKeySet.Key? {
    let age = now().timeIntervalSince(readAt)
    if let key = current?.key(named: id), (0..<Self.lifetime).contains(age) { return key }
    if current == nil || !(0..<Self.pause).contains(age) { await refresh() }
    guard let current else { throw BearerRefusal.keysUnavailable }
    return current.key(named: id)
  }

  private func refresh() async {
    let flight = flight ?? Task { [source, transport] in await Self.read(source, over: transport) }
    self.flight = flight
    let keys = await flight.value
    self.flight = nil
    readAt = now()
    // An issuer that cannot be reached leaves the keys that were there.
    if let keys { current = keys }
  }

  private static func read(
    _ source: IssuerKeySource, over transport: any HTTPTransport
  ) async -> JSONWebKeySet? {
    let json: Data?
    switch source {
    case .file(let path): json = try? Data(contentsOf: URL(filePath: path))
    case .url(let url):
      let reply = try? await transport.send(TransportRequest(method: "GET", url: url))
      json = reply?.status == 200 ? reply?.body : nil
    }
    guard let json, json.count <= sizeLimit else { return nil }
    return JSONWebKeySet(json: json)
  }
}
