package import Foundation
package import HubCore
package import NotificationHubs

/// Feedback of push services about handles, and registrations that were removed because of it.
extension SimulatedStore {
  package func feedbackHours(hub: Hub.ID) async throws -> [FeedbackHour] {
    try await read { state in
      let all = state.feedback.filter { $0.hub == hub }
      let first = (all.map(\.hour).max() ?? 0) - Int64(HandleFeedback.lifetime / 3_600)
      let hours = Dictionary(grouping: all.filter { $0.hour >= first }, by: \.hour)
      return hours.sorted { $0.key < $1.key }.map { hour, rows in
        FeedbackHour(
          hour: hour, count: rows.count, modifiedAt: rows.map(\.feedback.at).max() ?? .distantPast)
      }
    }
  }

  package func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) async throws -> [HandleFeedback] {
    try await read { state in
      state.feedback.after(after).lazy.filter { $0.hub == hub && $0.hour == hour }
        .prefix(max(0, limit)).map(\.feedback)
    }
  }

  package func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovedDevices.Item] {
    try await read { state in
      try state.requireHub(hub)
      let groups = Dictionary(grouping: state.removed.filter { wave.has($0, hub: hub) }) {
        removed in
        let platform = removed.row.draft.platform.storedCode
        return [removed.hour, platform, Int64(removed.outcome.rawValue)]
      }
      return groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { _, group in
        RemovedDevices.Item(
          hour: Date(milliseconds: group[0].hour * 3_600_000),
          platform: group[0].row.draft.platform, outcome: group[0].outcome.name,
          registrations: group.count)
      }
    }
  }

  package func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> DeviceRestoration {
    try await write { [self] state in
      try state.requireHub(hub)
      if wave.isDoubted {
        state.feedback.removeAll { row in
          row.hub == hub && row.feedback.at >= wave.since && row.feedback.registration != nil
            && wave.platform.map { row.feedback.platform == $0 } ?? true
        }
      }
      let found = state.removed.filter { wave.has($0, hub: hub) }
        .sorted { ($0.removedAt, $0.number) < ($1.removedAt, $1.number) }.prefix(max(0, limit))
      var result = DeviceRestoration(hasMore: found.count == limit && limit > 0)
      var seen: Set<Int64> = []
      for removed in found {
        let installation = removed.row.installation
        if installation == 0 {
          let isBack = !removed.row.isOver(at: now) && state.bringBack(removed)
          if isBack { result.restored += 1 } else { result.superseded += 1 }
        } else if seen.insert(installation).inserted {
          let all = state.removed.filter { $0.row.installation == installation }
          let restored = restore(all, of: installation, asOf: now, &state)
          result.restored += restored
          result.superseded += max(0, all.count - restored)
        }
      }
      for removed in found { state.removed[number: removed.number] = nil }
      return result
    }
  }

  /// Brings back registrations of an installation, as it says now: its tags may have been changed
  /// meanwhile.
  /// - Returns: How many.
  private func restore(
    _ all: [RemovedRow], of number: Int64, asOf now: Date, _ state: inout State
  ) -> Int {
    guard let device = state.installations[number: number] else { return 0 }
    var after = device.installation
    let valid = all.filter { !$0.row.isOver(at: now) }
    for removed in valid {
      if let newHandle = removed.newHandle {
        after.replaceHandle(newHandle, with: removed.row.handle)
      } else {
        after.setExpired(false, handle: removed.row.handle)
      }
    }
    var restored = 0
    let live = state.registrations(of: [number])
    for row in live {
      let removed = valid.first { $0.row.draft.key == row.draft.key }
      if let removed, removed.newHandle != nil, state.bringBack(removed) { restored += 1 }
    }
    for draft in after.registrationDrafts where !live.contains(where: { $0.draft.key == draft.key })
    {
      let removed = all.first {
        $0.row.draft.key == draft.key && $0.newHandle == nil
          && $0.row.handle == draft.channel.stored
      }
      if var row = removed?.row {
        if !row.isClients { row.draft = draft }
        state.bringBack(row)
      } else {
        let new = newNumber(&state, slot: state.slot(ofNumber: number))
        let row = RegistrationRow(
          number: new, hub: device.hub, installation: number, draft: draft,
          at: all[0].row.confirmedAt, commit: state.commit)
        state.registrations.put(row)
        state.markShared(row.device)
      }
      restored += 1
    }
    for removed in all { state.removed[number: removed.number] = nil }
    guard restored > 0 else { return 0 }
    state.rewriteInstallation(number) { $0 = after }
    return restored
  }
}

extension RemovalWave {
  fileprivate func has(_ removed: RemovedRow, hub: Hub.ID) -> Bool {
    removed.row.hub == hub && removed.removedAt >= since
      && platform.map { removed.row.draft.platform == $0 } ?? true
  }
}

extension SimulatedDatabase.State {
  /// Removes registrations whose handle the push service has reported dead, where that handle still
  /// stands, with the others of the same device, and marks their installations.
  mutating func removeDead(_ words: [Checkpoint.Condemned], hub: Hub.ID, at: Date) {
    for (row, word) in condemned(by: words, hub: hub) {
      removed.put(RemovedRow(row: row, removedAt: at, outcome: word.outcome, newHandle: nil))
      registrations[number: row.number] = nil
      rewriteInstallation(row.installation) { $0.setExpired(true, handle: row.handle) }
    }
  }

  /// Gives the registrations of devices, and their installations, the handles that push services
  /// have put in the place of theirs, where those still stand.
  mutating func replaceHandles(_ words: [Checkpoint.Condemned], hub: Hub.ID, at: Date) {
    for (row, word) in condemned(by: words, hub: hub) {
      guard let new = word.newHandle, new != row.handle else { continue }
      // Replaced again: the first handle is the one that an app has told.
      var kept =
        removed[number: row.number]
        ?? RemovedRow(row: row, removedAt: at, outcome: word.outcome, newHandle: new)
      (kept.removedAt, kept.newHandle) = (at, new)
      removed.put(kept)
      setHandle(of: row.number, to: new)
      rewriteInstallation(row.installation) { $0.replaceHandle(row.handle, with: new) }
    }
  }

  /// The registrations that words concern: those that still have the handle, and that no app has
  /// written since, with the others of the same device, each once.
  private func condemned(by words: [Checkpoint.Condemned], hub: Hub.ID)
    -> [(row: RegistrationRow, word: Checkpoint.Condemned)]
  {
    var all: [(row: RegistrationRow, word: Checkpoint.Condemned)] = []
    for word in words {
      guard let named = registration(word.registration, hub: hub), named.isMeant(by: word) else {
        continue
      }
      for row in registrations
      where row.device == named.device && row.installation == named.installation
        && row.isMeant(by: word) && !all.contains(where: { $0.row.number == row.number })
      {
        all.append((row, word))
      }
    }
    return all.sorted { $0.row.number < $1.row.number }
  }

  private mutating func setHandle(of number: RegistrationID, to handle: String) {
    let device = registrations.change(number) { row in
      row.draft.channel = PushChannel(stored: handle, platform: row.draft.platform)
      row.etag += 1
      row.written = commit
      return row.device
    }
    if let device { markShared(device) }
  }

  /// Puts a registration, or its old handle, back as it was.
  /// - Returns: `false` when its id is in use, or its handle is another one by now.
  fileprivate mutating func bringBack(_ removed: RemovedRow) -> Bool {
    if let newHandle = removed.newHandle {
      guard registrations[number: removed.number]?.handle == newHandle else { return false }
      setHandle(of: removed.number, to: removed.row.handle)
      return true
    }
    let id = removed.row.publicID
    let isUsed = registrations.contains {
      $0.number == removed.number || id != nil && $0.hub == removed.row.hub && $0.publicID == id
    }
    guard !isUsed else { return false }
    bringBack(removed.row)
    return true
  }

  /// A client that remembers the etag of before must not take it for that one.
  fileprivate mutating func bringBack(_ row: RegistrationRow) {
    var row = row
    row.etag += 1
    (row.written, row.confirmed) = (commit, commit)
    registrations.put(row)
    markShared(row.device)
  }

  /// Changes an installation outside its own writes; the next one brings the registrations back.
  fileprivate mutating func rewriteInstallation(
    _ number: Int64, _ change: (inout Installation) -> Void
  ) {
    installations.change(number) { row in
      change(&row.installation)
      row.written = nil
    }
  }

  /// Adds the feedback of a page of deliveries; called before dead registrations are removed.
  mutating func addFeedback(
    _ checkpoint: Checkpoint, of notification: NotificationRow, _ coding: RegistrationIDCoding
  ) {
    for (registration, outcome, newHandle) in checkpoint.handleNews {
      let target = notification.target(registration)
      let row = target == nil ? self.registration(registration, hub: checkpoint.hub) : nil
      guard let platform = target?.platform ?? row?.draft.platform,
        let handle = target?.handle ?? row?.draft.channel.handle
      else { continue }
      let installation = row.flatMap { installations[number: $0.installation]?.installation }
      feedback.put(
        FeedbackRow(
          hub: checkpoint.hub,
          feedback: HandleFeedback(
            number: sequences.next(\.feedback), at: checkpoint.at.stored, outcome: outcome,
            platform: platform, handle: String(handle.prefix { $0 != "\n" }),
            registration: row?.id(coding), installation: installation?.installationID,
            notification: checkpoint.notification, newHandle: newHandle)))
    }
  }
}

extension RegistrationRow {
  fileprivate func isMeant(by word: Checkpoint.Condemned) -> Bool {
    handle == word.handle && confirmed <= word.revision.rawValue
  }
}
