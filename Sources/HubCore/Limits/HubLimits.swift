package import Foundation
package import NotificationHubs

/// How far a hub goes along with its clients: as the original service, or further where its limits
/// only stood in the way.
package enum Compatibility: String, CaseIterable, Sendable {
  /// The limits of the original (docs/protocol/rest.md, section 9), to try a client against them.
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

/// The limits that the hub's use cases keep; what bounds one request's size stands with the
/// listener.
package struct HubLimits: Hashable, Sendable {
  /// Tags in one expression.
  package var tags: TagExpressionLimits
  /// Different tags of one installation, its templates and tiles.
  package var tagsPerInstallation: Int
  /// Devices that one batch may name; the limit for request bodies bounds them too.
  package var devicesPerBatch: Int
  /// How far ahead a notification can be scheduled, in seconds.
  package var scheduleHorizon: TimeInterval
  /// Devices that a test send goes to.
  package var testSendDevices = 10
  /// Test sends of one hub in any minute.
  package var testSendsPerMinute = 10
  /// How long a repeat is recognised by its key, in seconds.
  package var idempotencyLifetime: TimeInterval = 86_400
  /// Whether devices of services that have ended are refused.
  package var refusesRetired = false

  /// Those of the original (docs/protocol/rest.md, section 9).
  package static let strict = HubLimits(
    tags: .service, tagsPerInstallation: 60, devicesPerBatch: 1000, scheduleHorizon: 7 * 86_400)
  /// 1000 tags, 200 of them with `&&` or `!`; 120 tags of an installation; 10 000 devices; a year
  /// ahead.
  package static let extended = HubLimits(
    tags: TagExpressionLimits(alternatives: 1000, combinations: 200), tagsPerInstallation: 120,
    devicesPerBatch: 10_000, scheduleHorizon: 366 * 86_400)
}
