import Foundation
package import HubCore
import NotificationHubs

/// The promises of every ``HubStore``, as a table of sentences with their proofs.
///
/// An engine's tests run all of ``clauses`` as arguments of one test, each on a store of its own.
package enum HubStoreContract {
  /// One promise.
  package struct Clause: Sendable, CustomStringConvertible {
    /// The promise as a sentence.
    package let description: String
    /// Throws when a new, empty store does not keep it.
    package let check: @Sendable (any HubStore) async throws -> Void

    init(_ description: String, check: @escaping @Sendable (any HubStore) async throws -> Void) {
      self.description = description
      self.check = check
    }
  }

  /// A promise that was not kept.
  package struct Violation: Error, CustomStringConvertible {
    package let description: String
  }

  package static let clauses: [Clause] =
    directoryClauses + installationsClauses + registrationsClauses
    + audienceClauses + notificationsClauses + workClauses + outcomesClauses + feedbackClauses
    + jobsClauses + statisticsClauses + activityClauses + upkeepClauses + refusalsClauses

  /// The moment at which the contract's scenes play.
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  static func expect(
    _ isKept: Bool, _ what: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    if !isKept { throw Violation(description: "\(what()) (\(file):\(line))") }
  }

  static func expectEqual<Value: Equatable>(
    _ found: Value, _ wanted: Value, _ what: String = "values", file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    try expect(
      found == wanted, "\(what): found \(found), wanted \(wanted)", file: file, line: line)
  }

  /// Expects a refusal.
  static func expectRefusal(
    _ wanted: StoreError, file: StaticString = #fileID, line: UInt = #line,
    _ body: () async throws -> Void
  ) async throws {
    do {
      try await body()
    } catch let error as StoreError where error == wanted {
      return
    } catch {
      throw Violation(description: "\(error) instead of \(wanted) (\(file):\(line))")
    }
    throw Violation(description: "no refusal where \(wanted) was due (\(file):\(line))")
  }

  static func makeHub(_ store: any HubStore, _ name: String = "hub1") async throws -> Hub.ID {
    try await store.createHub(named: name, registrationTTL: nil, policies: [], at: now).id
  }

  static func template(_ body: String = #"{"aps":{"alert":"$(message)"}}"#) -> PushTemplate {
    PushTemplate(body: body)
  }

  /// The handles of native targets that carry a tag.
  static func handles(
    _ store: any HubStore, _ hub: Hub.ID, _ tag: Tag, platform: PushPlatform = .apns
  ) async throws -> [String] {
    try await store.targets(
      AudienceQuery(hub: hub, kind: .native(platform), expression: .tag(tag), asOf: now),
      after: 0, limit: 1_000
    ).handleTexts
  }

  /// All targets of a hub, native ones on Apple's platform first.
  static func all(_ store: any HubStore, _ hub: Hub.ID) async throws -> [Target] {
    var targets: [Target] = []
    for kind in [AudienceQuery.Kind.native(.apns), .template] {
      let query = AudienceQuery(hub: hub, kind: kind, expression: nil, asOf: now)
      targets += try await store.targets(query, after: 0, limit: 1_000).targets
    }
    return targets
  }

  static func put(
    _ store: any HubStore, _ id: String, _ draft: RegistrationDraft, _ hub: Hub.ID
  ) async throws -> StoredRegistration {
    let write = try await store.putRegistration(id, draft, hub: hub, condition: .none, at: now)
    guard case .done(let stored) = write else {
      throw Violation(description: "\(write) for a write without a condition")
    }
    return stored
  }

  /// Dead or replaced handles, as a push service reports them, of the next page of a hub's native
  /// audience.
  static func condemned(
    _ store: any HubStore, _ hub: Hub.ID, platform: PushPlatform = .apns,
    by outcome: NotificationOutcome = .expiredChannel, _ newHandle: String? = nil
  ) async throws -> [Checkpoint.Condemned] {
    let query = AudienceQuery(hub: hub, kind: .native(platform), expression: nil, asOf: now)
    let page = try await store.targets(query, after: 0, limit: 1_000)
    return page.targets.map { target in
      .init(
        registration: target.registration, platform: target.platform,
        handle: String(decoding: page.handles[target.handle], as: UTF8.self),
        revision: page.revision, outcome: outcome, newHandle: newHandle)
    }
  }

  static func record(_ id: String, hub: Hub.ID) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(format: .template, body: Array(#"{"message":"hi"}"#.utf8)),
      state: .enqueued, enqueuedAt: now)
  }

  /// Reports handles dead, as a page of a send does.
  static func checkpoint(
    _ store: any HubStore, _ hub: Hub.ID, dead: [Checkpoint.Condemned]
  ) async throws {
    let id = NotificationID(at: now, random: .system)
    let request = NotificationRequest(
      format: .native(.apns), body: Array("{}".utf8), tags: nil, headers: [:], expiry: nil)
    try await store.accept(
      NotificationRecord(id: id, hub: hub, request: request, state: .enqueued, enqueuedAt: now))
    var checkpoint = Checkpoint(notification: id, hub: hub, at: now)
    checkpoint.deadHandles = dead
    try await store.checkpoint(checkpoint)
  }

  static func checkpoint(_ hub: Hub.ID, _ id: String = "n-1") -> Checkpoint {
    Checkpoint(notification: NotificationID(rawValue: id), hub: hub, at: now)
  }

  static func stored(
    _ store: any HubStore, _ hub: Hub.ID
  ) async throws -> NotificationRecord {
    let found = try await store.notification(NotificationID(rawValue: "n-1"), hub: hub)
    guard let found else { throw Violation(description: "the notification is gone") }
    return found
  }

  static func apns(_ hub: Hub.ID) -> LaneKey { LaneKey(hub: hub, platform: .apns) }

  static func native(
    _ handle: String = "AA", tags: [Tag] = ["Red"], kind: RegistrationDraft.Kind = .native,
    platform: PushPlatform = .apns
  ) -> RegistrationDraft {
    RegistrationDraft(kind: kind, platform: platform, channel: .handle(handle), tags: tags)
  }
}
