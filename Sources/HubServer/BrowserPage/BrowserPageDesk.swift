package import HTTPServer

/// What the browser page asks of the program that serves it.
///
/// What it throws as ``HubFailure`` the page shows; of anything else it only learns that it failed.
package protocol BrowserPageDesk: Sendable {
  /// - Parameters:
  ///   - host: The `Host` header: host and port.
  ///   - isSecure: Whether the page came over TLS.
  func settings(host: String, isSecure: Bool) async throws -> BrowserPageSettings

  /// Subscribes at the push service of this machine.
  func subscribe(_ wanted: LocalSubscription.Wanted) async throws -> LocalSubscription
  /// - Returns: `nil` when that push service has no such subscription, or not any more.
  func subscription(_ id: String) async throws -> LocalSubscription?
  func unsubscribe(_ id: String) async throws
  /// What is pushed to a subscription, encrypted as it came: events named `push`. What came while
  /// nobody listened comes first. An event `ended` is the last, when the push service has ended the
  /// subscription or replaced its endpoint.
  ///
  /// - Parameter after: The id of the last event that the page has, when its line broke.
  func messages(
    of subscription: LocalSubscription, after: Int?
  ) -> AsyncThrowingStream<ServerSentEvent, any Error>

  /// Sends a template notification to one installation, and waits for what becomes of it.
  func push(_ wanted: BrowserPush) async throws -> BrowserPush.Report
}

/// What the page needs to know.
package struct BrowserPageSettings: Sendable, Encodable {
  package let hub: String
  /// A shared access signature for listening, as the `Authorization` header carries it.
  package let token: String
  /// When ``token`` ends, in Unix seconds.
  package let expiresAt: Int
  /// The public key of the hub's Web Push credential, base 64 URL: 87 characters.
  package let vapidPublicKey: String
  /// Whether there is a push service on this machine.
  package let localPush: Bool

  package init(
    hub: String, token: String, expiresAt: Int, vapidPublicKey: String, localPush: Bool
  ) {
    self.hub = hub
    self.token = token
    self.expiresAt = expiresAt
    self.vapidPublicKey = vapidPublicKey
    self.localPush = localPush
  }
}

/// A subscription at the push service of this machine. The private key stays in the browser.
package struct LocalSubscription: Sendable, Encodable {
  private enum CodingKeys: CodingKey { case id, endpoint }

  package struct Wanted: Sendable, Decodable {
    /// The browser's public key, base 64 URL.
    package let p256dh: String
    /// The secret, base 64 URL.
    package let auth: String
    /// The one sender that may push: `applicationServerKey` of the Push API, base 64 URL.
    package let vapidPublicKey: String
  }

  /// Names this endpoint too: when the push service replaces it, there is no such subscription.
  package let id: String
  /// Where the hub pushes to.
  package let endpoint: String
  /// The id of the last event so far; not for the page.
  package let lastEvent: Int

  package init(id: String, endpoint: String, lastEvent: Int = 0) {
    self.id = id
    self.endpoint = endpoint
    self.lastEvent = lastEvent
  }
}

/// A push that the page asks for.
package struct BrowserPush: Sendable, Decodable {
  package struct Report: Sendable, Encodable {
    /// Whether the push service took it.
    package let ok: Bool
    /// What became of it, for people.
    package let text: String

    package init(ok: Bool, text: String) {
      self.ok = ok
      self.text = text
    }
  }

  package let installationId: String
  /// What stands for `$(message)` in templates.
  package let message: String
}
