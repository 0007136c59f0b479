package import HTTPServer

/// The functions that the portal needs from the program that serves it in development.
///
/// The page shows the text of a `HubFailure`; of any other error it learns only that the call
/// failed.
package protocol PortalController: Sendable {
  /// The key in the printed portal address. A browser that presents it was opened from that
  /// address, so it acts as the local user.
  func key() async throws -> String
  /// - Parameters:
  ///   - host: The `Host` header: host and port.
  ///   - isSecure: Whether the page was loaded over TLS.
  func signIn(host: String, isSecure: Bool) async throws -> LocalSignIn
  /// Forwards a call to the emulator's control API; not for event streams.
  func emulate(_ call: EmulatorCall) async throws -> HTTPResponse
  /// The events of a device or an app of the emulator, from now on or after one that the page has
  /// received.
  func events(
    _ call: EmulatorCall, after: Int?
  ) async throws -> AsyncThrowingStream<ServerSentEvent, any Error>
}

/// The data that signs the local user in.
package struct LocalSignIn: Sendable {
  /// A connection string of the namespace, which can also create and delete hubs.
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
  /// The path from `v1` on, unchanged and still encoded, with its query.
  package let path: String
  /// A JSON body, or empty.
  package let body: [UInt8]
}
