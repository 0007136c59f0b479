package import Foundation

/// A push service or token service of the simulator.
package enum SimulatedService: String, CaseIterable, Sendable {
  case apns, fcm, fcmTokens, wns, wnsTokens, webPush

  /// It gives out access tokens, and no pushes.
  package var isForTokens: Bool { self == .fcmTokens || self == .wnsTokens }

  /// The service that takes the tokens of this one, or itself.
  var pushService: Self {
    switch self {
    case .fcmTokens: .fcm
    case .wnsTokens: .wns
    default: self
    }
  }

  /// The service at a host, by its real name.
  ///
  /// - Parameter isHTTP2: Channels of Windows and subscriptions of its browser are at the same hosts.
  /// - Returns: `nil` for a host that nobody knows.
  init?(host: String, isHTTP2: Bool) {
    switch host {
    case "api.push.apple.com", "api.sandbox.push.apple.com": self = .apns
    case "fcm.googleapis.com": self = .fcm
    case "oauth2.googleapis.com": self = .fcmTokens
    case "login.live.com", "login.microsoftonline.com": self = .wnsTokens
    case "updates.push.services.mozilla.com", "web.push.apple.com": self = .webPush
    default:
      guard host.hasSuffix(".notify.windows.com") else { return nil }
      self = isHTTP2 ? .webPush : .wns
    }
  }
}

/// The faults of one service. Moments are of the true time.
package struct ServiceFaults: Sendable {
  /// 429, or what the service has in its place, for every push.
  package struct Throttle: Sendable {
    package var until: Date
    /// In seconds; `nil` for an answer that names no time.
    package var retryAfter: Int?

    package init(until: Date, retryAfter: Int? = nil) {
      self.until = until
      self.retryAfter = retryAfter
    }
  }

  /// A status for every request, whatever it is.
  package struct Failure: Sendable {
    package var until: Date
    package var status: UInt16
    /// In seconds; `nil` for an answer that names no time.
    package var retryAfter: Int?

    package init(until: Date, status: UInt16, retryAfter: Int? = nil) {
      self.until = until
      self.status = status
      self.retryAfter = retryAfter
    }
  }

  /// A fault of one request.
  package enum Single: Sendable, CaseIterable {
    /// Not processed, which the service says (REFUSED_STREAM).
    case refused
    /// The stream ends before the service has acted.
    case resetBefore
    /// The service has acted, and then the stream ends.
    case resetAfter
    /// The connection ends before the service has acted.
    case lostBefore
    /// The service has acted, and then the connection ends.
    case lostAfter
    /// The service acts, and its answer comes when the sender has given up.
    case late
  }

  package var throttle: Throttle?
  package var failure: Failure?
  /// No answer until then. Half of the requests are acted on all the same.
  package var hangsUntil: Date?
  /// From a node, or `nil` for all, no connection until then; those there are end with the next request.
  package var unreachableUntil: [Int?: Date] = [:]
  /// Every handle is called dead until then.
  package var callsAllDeadUntil: Date?
  /// The credential of a node, or `nil` for all, is refused until then.
  package var refusesUntil: [Int?: Date] = [:]
  /// Faults of the next requests, one each.
  package var next: [Single] = []
  /// The reasons for which the connections that send the next batches are ended, in good order: with
  /// GOAWAY after a part of the batch. APNs' words are `Shutdown` and `IdleTimeout`.
  package var goAways: [String] = []

  package init() {}

  func refuses(_ call: ServiceCall) -> Bool {
    [nil, call.node].contains { refusesUntil[$0].map { call.at < $0 } ?? false }
  }

  func isReachable(from node: Int, at now: Date) -> Bool {
    [nil, node].allSatisfy { unreachableUntil[$0].map { now >= $0 } ?? true }
  }

  func throttle(at now: Date) -> Throttle? {
    throttle.flatMap { now < $0.until ? $0 : nil }
  }

  func failure(at now: Date) -> Failure? {
    failure.flatMap { now < $0.until ? $0 : nil }
  }
}

/// A handle as its push service knows it. One that nobody has told the service about is alive, and
/// any app's.
package enum SimulatedHandle: Sendable, Equatable {
  case alive
  /// The service has never known it.
  case unknown
  /// The app is gone since.
  case dead(since: Date)
}
