import Foundation
package import HubCore
import NotificationHubs

/// Checkpoints of pages of deliveries.
extension SimulatedStore {
  @discardableResult
  package func checkpoint(_ checkpoint: Checkpoint) async throws -> CheckpointAnswer {
    let (node, coding) = (owner, coding)
    return try await write { state in
      try state.requireHub(checkpoint.hub)
      return try state.apply(checkpoint, at: node, coding)
    }
  }
}

extension SimulatedDatabase.State {
  /// - Throws: As of ``WorkStore/checkpoint(_:)``.
  fileprivate mutating func apply(
    _ checkpoint: Checkpoint, at node: Int64?, _ coding: RegistrationIDCoding
  ) throws -> CheckpointAnswer {
    guard let found = notification(checkpoint.notification, hub: checkpoint.hub) else {
      return CheckpointAnswer()
    }
    let number = found.number
    if found.parts.isEmpty, checkpoint.lease == WorkLease() {
      // It has no parts yet, because its time has not come.
      notifications.change(number) { row in
        row.parts = [WorkPart(part: 0, owner: node, position: 0, isRead: false)]
      }
    }
    guard let index = notifications[number: number]?.index(of: checkpoint.lease.part),
      let part = notifications[number: number]?.parts[index],
      part.epoch == checkpoint.lease.epoch, part.owner == nil || part.owner == node
    else { throw StoreError.leaseLost }
    if let mark = checkpoint.mark, mark == part.recorded {
      return CheckpointAnswer(
        isAborted: found.record.abortedAt != nil, isFinished: found.record.endedAt != nil)
    }
    if let mark = checkpoint.mark, mark.number > 1,
      part.recorded != Checkpoint.Mark(lease: mark.lease, number: mark.number - 1)
    {
      throw StoreError.leaseLost
    }
    notifications.change(number) { row in
      row.parts[index].recorded = checkpoint.mark
      row.parts[index].move(by: checkpoint)
      row.keep(checkpoint)
    }
    for (key, total) in checkpoint.counts {
      count(hub: checkpoint.hub, at: checkpoint.at) { point in
        point.outcomes[.init(key.platform, key.outcome), default: 0] += total
      }
    }
    addFeedback(checkpoint, of: found, coding)
    for (registration, environment) in checkpoint.environments
    where self.registration(registration, hub: checkpoint.hub) != nil {
      registrations.change(registration) { $0.environment = environment }
    }
    for dead in checkpoint.deadHandles {
      guard let row = registration(dead.registration, hub: checkpoint.hub) else { continue }
      let device = KeptDevice(
        platform: row.draft.platform, handle: row.handle, registrationID: row.id(coding),
        installationID: installations[number: row.installation]?.installation.installationID)
      notifications.change(number) { $0.failures[dead.registration]?.device = device }
    }
    removeDead(checkpoint.deadHandles, hub: checkpoint.hub, at: checkpoint.at.stored)
    replaceHandles(checkpoint.replacedHandles, hub: checkpoint.hub, at: checkpoint.at.stored)
    let isFinished = notifications.change(number) { $0.proceed(checkpoint) } ?? false
    return CheckpointAnswer(isAborted: found.record.abortedAt != nil, isFinished: isFinished)
  }
}

extension WorkPart {
  fileprivate mutating func move(by checkpoint: Checkpoint) {
    position = checkpoint.cursor ?? position
    isRead = isRead || checkpoint.isAudienceRead
    keeping = checkpoint.keeping
    counts.merge(checkpoint.counts, uniquingKeysWith: +)
    if checkpoint.state?.isFinal == true {
      isDone = true
      retries = [:]
      return
    }
    for registration in checkpoint.settledRetries { retries[registration] = nil }
    for retry in checkpoint.retries {
      // One that was put off without being sent leaves what an earlier try has brought.
      retries[retry.registration] = .init(
        registration: retry.registration, platform: retry.platform, attempts: retry.attempts,
        due: retry.due.stored, answer: retry.answer ?? retries[retry.registration]?.answer)
    }
  }
}

extension NotificationRow {
  /// Keeps outcomes device by device.
  fileprivate mutating func keep(_ checkpoint: Checkpoint) {
    var kept = checkpoint.keeping == .none ? [] : checkpoint.failures
    if checkpoint.keeping == .all {
      kept += checkpoint.successes.map {
        .init(
          registration: $0.registration, outcome: .success, status: 200, reason: nil,
          attempts: $0.attempts)
      }
    }
    guard !kept.isEmpty else { return }
    let at = checkpoint.at.stored
    for failure in kept {
      let device = failures[failure.registration]?.device
      failures[failure.registration] = KeptFailure(failure: failure, at: at, device: device)
    }
    keptAt = at
  }

  /// Begins or ends with a part.
  /// - Returns: Whether that part was the last.
  fileprivate mutating func proceed(_ checkpoint: Checkpoint) -> Bool {
    let start = (checkpoint.startedAt ?? checkpoint.at).stored
    guard let state = checkpoint.state, state.isFinal else {
      guard record.endedAt == nil else { return false }
      record.state = checkpoint.state ?? record.state
      record.startedAt = record.startedAt ?? start
      return false
    }
    guard parts.allSatisfy(\.isDone) else { return false }
    guard record.endedAt == nil else { return true }
    let counts = self.record().counts.filter { $0.value > 0 }
    record.state = checkpoint.lease.part == 0 ? state : .ending(Set(counts.keys.map(\.outcome)))
    record.endedAt = checkpoint.at.stored
    record.startedAt = record.startedAt ?? start
    return true
  }
}
