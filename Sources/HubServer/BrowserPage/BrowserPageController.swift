package import HTTPServer

/// The functions that the browser page needs from the program that serves it.
///
/// The page shows the text of a ``HubFailure``; of any other error it learns only that the call
/// failed.
package protocol BrowserPageController: Sendable {
  /// - Parameters:
  ///   - host: The `Host` header: host and port.
  ///   - isSecure: Whether the page was loaded over TLS.
  func settings(host: String, isSecure: Bool) async throws -> BrowserPageSettings

  /// Subscribes at the local push service.
  func subscribe(_ wanted: LocalSubscription.Wanted) async throws -> LocalSubscription
  /// - Returns: `nil` if the push service does not have, or no longer has, the subscription.
  func subscription(_ id: String) async throws -> LocalSubscription?
  func unsubscribe(_ id: String) async throws
  /// The pushes to a subscription, still encrypted, as events named `push`. Pushes that arrived
  /// while there was no listener come first. The final event `ended` says that the push service has
  /// ended the subscription or replaced its endpoint.
  ///
  /// - Parameter after: The id of the last event that the page received before its connection
  ///   broke.
  func messages(
    of subscription: LocalSubscription, after: Int?
  ) -> AsyncThrowingStream<ServerSentEvent, any Error>

  /// Sends a template notification to one installation, and waits for its outcome.
  func push(_ wanted: BrowserPush) async throws -> BrowserPush.Report
}

/// The settings of the page.
package struct BrowserPageSettings: Sendable, Encodable {
  package let hub: String
  /// A shared access signature for listening, as sent in the `Authorization` header.
  package let token: String
  /// The expiry of ``token``, in Unix seconds.
  package let expiresAt: Int
  /// The public key of the hub's Web Push credential, 87 characters of base64url.
  package let vapidPublicKey: String
  /// Whether this machine has a push service.
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

/// A subscription at the local push service. The private key stays in the browser.
package struct LocalSubscription: Sendable, Encodable {
  private enum CodingKeys: CodingKey { case id, endpoint }

  package struct Wanted: Sendable, Decodable {
    /// The browser's public key in base64url.
    package let p256dh: String
    /// The authentication secret in base64url.
    package let auth: String
    /// The only sender that may push: the `applicationServerKey` of the Push API, in base64url.
    package let vapidPublicKey: String
  }

  /// The id of the subscription and its endpoint: once the push service replaces the endpoint, the
  /// id is unknown.
  package let id: String
  /// The URL to which the hub pushes.
  package let endpoint: String
  /// The id of the last event so far; not sent to the page.
  package let lastEvent: Int

  package init(id: String, endpoint: String, lastEvent: Int = 0) {
    self.id = id
    self.endpoint = endpoint
    self.lastEvent = lastEvent
  }
}

/// A push requested by the page.
package struct BrowserPush: Sendable, Decodable {
  package struct Report: Sendable, Encodable {
    /// Whether the push service accepted it.
    package let ok: Bool
    /// The outcome in words for people.
    package let text: String

    package init(ok: Bool, text: String) {
      self.ok = ok
      self.text = text
    }
  }

  package let installationId: String
  /// The value of `$(message)` in templates.
  package let message: String
}
