package import HTTPServer

/// What the portal asks of the program that serves it for development.
///
/// What it throws as `HubFailure` the page shows; of anything else it only learns that it failed.
package protocol PortalDesk: Sendable {
  /// What stands behind the portal's address where the program prints it: a browser that
  /// shows it has read that, and so is the local user.
  func key() async throws -> String
  /// - Parameters:
  ///   - host: The `Host` header: host and port.
  ///   - isSecure: Whether the page came over TLS.
  func signIn(host: String, isSecure: Bool) async throws -> LocalSignIn
  /// Carries a call to the emulator's control API; a stream of events is not for this.
  func emulate(_ call: EmulatorCall) async throws -> HTTPResponse
  /// The events of a device or an app of the emulator, from now on or after one that the page has
  /// had.
  func events(
    _ call: EmulatorCall, after: Int?
  ) async throws -> AsyncThrowingStream<ServerSentEvent, any Error>
}

/// What signs the local user in.
package struct LocalSignIn: Sendable {
  /// Of the namespace: makes and deletes hubs, too.
  package let connectionString: String
  /// The hub to show first.
  package let hub: String
  /// Whether there is an emulator whose control API the portal may call.
  package let emulator: Bool

  package init(connectionString: String, hub: String, emulator: Bool) {
    self.connectionString = connectionString
    self.hub = hub
    self.emulator = emulator
  }
}

/// A call of the emulator's control API (docs/protocol/emulator.md).
package struct EmulatorCall: Sendable {
  package let method: HTTPMethod
  /// From `v1` on, as it came, still encoded, with its query.
  package let path: String
  /// JSON, or empty.
  package let body: [UInt8]
}
