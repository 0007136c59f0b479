#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Holds a valid token and renews it in time.
///
/// An app on a device should not hold a key. Let its backend mint short-lived tokens:
/// ```swift
/// let tokens = TokenProvider {
///   let text = try await myBackend.fetchHubToken()
///   return try SharedAccessSignature(parsing: text)
/// }
/// ```
/// The expiry is read from the token itself, as a point in time. (Older tutorials store the
/// *duration*, 3600, in its place: every token then looks expired since 1970 and is made again for
/// each request. They also keep using a token for five minutes after it has expired.)
public actor TokenProvider {
  private let fetch: @Sendable () async throws -> SharedAccessSignature
  private let now: @Sendable () -> Date
  private var current: (token: SharedAccessSignature, renewAt: Date)?
  private var flight: Task<SharedAccessSignature, any Error>?

  /// Creates a provider for tokens that are minted elsewhere.
  ///
  /// - Parameters:
  ///   - now: The clock; tests pass their own.
  ///   - fetch: Called once whenever a new token is needed, however many callers wait for it.
  public init(
    now: @escaping @Sendable () -> Date = { Date() },
    fetch: @escaping @Sendable () async throws -> SharedAccessSignature
  ) {
    self.now = now
    self.fetch = fetch
  }

  /// Creates a provider that mints tokens for a hub with the key of a connection string.
  ///
  /// - Parameters:
  ///   - lifetime: The lifetime of each token, in seconds; the official clients use 20 minutes.
  ///   - now: The clock; tests pass their own.
  public init(
    connectionString: ConnectionString, hub: String, lifetime: TimeInterval = 20 * 60,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    let resource = connectionString.endpoint.resource(hub: hub)
    self.init(now: now) {
      SharedAccessSignature(
        resource: resource, keyName: connectionString.keyName, key: connectionString.key,
        expiresAt: now().addingTimeInterval(lifetime))
    }
  }

  /// Returns a valid token: the current one, or a new one once nine tenths of its lifetime have
  /// passed.
  ///
  /// If renewal fails while the old token is still valid, the old one is returned. A cancelled
  /// caller gets `CancellationError`; the others still get the token being fetched.
  ///
  /// - Throws: The error of the closure that fetches tokens, or `CancellationError`.
  public func token() async throws -> SharedAccessSignature {
    if let current, now() < current.renewAt { return current.token }
    do { return try await renewed() } catch {
      try Task.checkCancellation()
      if let current, now() < current.token.expiresAt { return current.token }
      throw error
    }
  }

  /// Discards a token that the hub has refused, so that the next call fetches a new one.
  public func invalidate(_ token: SharedAccessSignature) {
    if current?.token == token { current = nil }
  }

  private func renewed() async throws -> SharedAccessSignature {
    if let flight { return try await value(of: flight) }
    // The task stores its result and clears itself, since the caller that started it may have been
    // cancelled.
    let flight = Task {
      defer { self.flight = nil }
      let token = try await fetch()
      let left = token.expiresAt.timeIntervalSince(now())
      current = (token, token.expiresAt.addingTimeInterval(-left / 10))
      return token
    }
    self.flight = flight
    return try await value(of: flight)
  }
}
