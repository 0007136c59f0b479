import Foundation
import NotificationHubs

/// What all pages of one notification share; made once, read from many tasks.
final class DispatchContext: Sendable {
  let id: NotificationID
  let hub: Hub.ID
  let request: NotificationRequest
  let seed: PushIDSeed
  let messages: MessageBook
  /// When the hub gives up (spec `pns/README.md` 3, rule 1).
  let deadline: Date
  let releasedAt: Date
  let keeping: OutcomeKeeping

  init(_ record: NotificationRecord, limits: DispatchLimits) {
    id = record.id
    hub = record.hub
    request = record.request
    seed = PushIDSeed(record.id)
    messages = MessageBook(record.request)
    deadline = record.releasedAt.addingTimeInterval(limits.window)
    releasedAt = record.releasedAt
    keeping = limits.keeping
  }

  var isTemplate: Bool { request.format == .template }

  /// The lane of a native send.
  var lane: LaneKey? {
    guard case .native(let platform) = request.format else { return nil }
    return LaneKey(hub: hub, platform: platform)
  }

  var query: AudienceQuery {
    let kind: AudienceQuery.Kind =
      switch request.format {
      case .template: .template
      case .native(let platform): .native(platform)
      }
    return AudienceQuery(
      hub: hub, kind: kind, expression: request.expression, asOf: releasedAt)
  }

  /// Until when a message may be tried again; `nil` for one that asks for a single try.
  func lastTry(_ body: PushBody) -> Date? {
    guard let expiry = body.expiry else { return deadline }
    guard expiry > 0 else { return nil }
    return min(deadline, Date(timeIntervalSince1970: Double(expiry)))
  }
}
