package import Foundation
package import HubCore
import NotificationHubs

extension InMemoryHubStore {
  package func accept(_ submission: Submission) throws -> Acceptance {
    let record = submission.record
    _ = try book(record.hub)
    if let claim = submission.idempotency {
      if let earlier = claims[record.hub]?[claim.key], earlier.claim.expiresAt > record.enqueuedAt {
        return earlier.claim.fingerprint == claim.fingerprint
          ? .repeated(earlier.notification) : .keyInUse
      }
      claims[record.hub, default: [:]][claim.key] = (claim, record.id)
    }
    lastNotification += 1
    var entry = Entry(number: lastNotification, record: record)
    entry.record.lastRegistration = lastRegistration
    entry.targets = submission.targets
    entry.version = writes
    entries[record.id] = entry
    return .accepted
  }

  package func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    try check()
    guard let entry = entries[id], entry.record.hub == hub else { return TargetPage() }
    let numbers = entry.targets.indices.map { RegistrationID($0 + 1) }.filter { $0 > after }
    var page = Self.page(of: Array(numbers.prefix(limit)), entry: entry)
    if numbers.count > limit { page.next = page.targets.last?.registration }
    return page
  }

  private static func page(of numbers: [RegistrationID], entry: Entry) -> TargetPage {
    var page = TargetPage()
    guard case .native(let platform) = entry.record.request.format else { return page }
    for number in numbers {
      let target = entry.targets[Int(number) - 1]
      let start = page.handles.count
      page.handles += Array(target.handle.utf8)
      page.targets.append(
        Target(
          registration: number, handle: start..<page.handles.count, platform: platform,
          template: -1, variables: -1, confirmedAt: 0, isDuplicate: target.isDuplicate))
    }
    return page
  }

  func directRetries(_ retries: [Checkpoint.Retry], of record: NotificationRecord) -> DueRetries {
    let numbers = retries.map(\.registration).sorted()
    return DueRetries(
      notification: record.id, hub: record.hub,
      page: entries[record.id].map { Self.page(of: numbers, entry: $0) } ?? TargetPage(),
      attempts: Dictionary(
        retries.map { ($0.registration, $0.attempts) }, uniquingKeysWith: { $1 }),
      gone: [])
  }

  /// A target of a direct send; `nil` when the notification is none.
  func directTarget(
    _ number: RegistrationID, of id: NotificationID
  ) -> (platform: PushPlatform, handle: String)? {
    guard let entry = entries[id], entry.record.request.isDirect,
      case .native(let platform) = entry.record.request.format,
      entry.targets.indices.contains(Int(number) - 1)
    else { return nil }
    return (platform, entry.targets[Int(number) - 1].handle)
  }

  package func sample(_ query: AudienceQuery, limit: Int) throws -> TargetPage {
    try check()
    var page = PageBuilder(templates: templates)
    for row in matches(query).shuffled().prefix(limit).sorted(by: { $0.id < $1.id }) {
      page.append(row, isDuplicate: false)
    }
    templates = page.templateIDs
    return page.page
  }

  package func nextSchedule() throws -> Date? {
    try check()
    return scheduled.compactMap(\.scheduledFor).min()
  }

  package func releaseSchedules(asOf now: Date, limit: Int) throws -> FoundNotifications {
    try check()
    let due = scheduled.filter { ($0.scheduledFor ?? now) <= now }
      .sorted { ($0.scheduledFor ?? now) < ($1.scheduledFor ?? now) }.prefix(limit)
    return FoundNotifications(
      due.map { record in
        var next = record
        next.state = .enqueued
        next.startedAt = now
        entries[record.id]?.record = next
        entries[record.id]?.version = writes
        return next
      })
  }

  package func cancelSchedule(_ id: NotificationID, hub: Hub.ID, at: Date) throws -> Bool {
    try check()
    guard let record = entries[id]?.record, record.hub == hub, record.state == .scheduled else {
      return false
    }
    entries[id]?.record.state = .canceled
    entries[id]?.record.endedAt = at
    return true
  }

  private var scheduled: [NotificationRecord] {
    entries.values.map(\.record).filter { $0.state == .scheduled }
  }

  package func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) throws -> [RegistrationID: String] {
    let rows = try book(hub).rows
    return Dictionary(
      numbers.compactMap { number in
        rows[number].map { (number, $0.publicID ?? Self.coding.id(of: number, hub: hub)) }
      }
    ) { first, _ in first }
  }
}
