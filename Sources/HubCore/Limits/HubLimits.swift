package import Foundation
package import NotificationHubs

/// The limits on clients: those of the original service, or wider ones where the original's are
/// merely an obstacle.
package enum Compatibility: String, CaseIterable, Sendable {
  /// The limits of the original (docs/protocol/rest.md, section 9), for testing a client against
  /// them.
  case strict
  /// Wider limits for expressions, batches and schedules.
  case extended

  package var limits: HubLimits {
    switch self {
    case .strict: .strict
    case .extended: .extended
    }
  }
}

/// The limits enforced by the hub's use cases; limits on the size of one request are the
/// listener's.
package struct HubLimits: Hashable, Sendable {
  /// Limits on the tags in one expression.
  package var tags: TagExpressionLimits
  /// Maximum number of different tags of one installation, its templates and tiles.
  package var tagsPerInstallation: Int
  /// Maximum number of devices in one batch; the limit on request bodies applies too.
  package var devicesPerBatch: Int
  /// Maximum time between now and a scheduled notification, in seconds.
  package var scheduleHorizon: TimeInterval
  /// Number of devices that a test send goes to.
  package var testSendDevices = 10
  /// Maximum number of test sends of one hub in any minute.
  package var testSendsPerMinute = 10
  /// Time for which a repeat is recognised by its key, in seconds.
  package var idempotencyLifetime: TimeInterval = 86_400
  /// Whether devices of services that have been shut down are refused.
  package var refusesRetired = false
  /// Time for which the text of a message is kept after its end, in seconds: `nil` forever; 0 not
  /// at all, so that it is never shown, either.
  package var keptText: TimeInterval?
  var hidesText: Bool { keptText == 0 }

  /// Every limit that decides whether an installation is accepted: a request that was accepted under
  /// others is read again.
  var installationRules: [Int] { [tagsPerInstallation, refusesRetired ? 1 : 0] }

  /// The limits of the original (docs/protocol/rest.md, section 9).
  package static let strict = HubLimits(
    tags: .service, tagsPerInstallation: 60, devicesPerBatch: 1000, scheduleHorizon: 7 * 86_400)
  /// 1000 tags, 200 of them with `&&` or `!`; 120 tags of an installation; 10 000 devices; a year
  /// ahead.
  package static let extended = HubLimits(
    tags: TagExpressionLimits(alternatives: 1000, combinations: 200), tagsPerInstallation: 120,
    devicesPerBatch: 10_000, scheduleHorizon: 366 * 86_400)
}

extension HubLimits {
  /// Refuses a device of a service that has been shut down, if the hub is configured to do so
  /// (docs/protocol/push-services/retired.md, section 1); by default it is accepted, as clients
  /// expect.
  /// - Throws: 400 with the name of the successor.
  func checkRetired(_ platform: PushPlatform) throws(HubFailure) {
    guard refusesRetired, let successor = platform.traits.successor else { return }
    throw HubFailure(
      status: 400,
      message: "The platform '\(platform.rawValue)' has been retired; use \(successor)")
  }
}
