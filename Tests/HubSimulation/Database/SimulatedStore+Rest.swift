package import Foundation
package import HubCore
package import NotificationHubs

package struct JobRow: Sendable {
  package var job: HubJob
  /// The node that does it.
  package var owner: Int64?
  var seals: [String]
  var isFinished: Bool { job.status.isFinal }
}

package struct ActivityRow: NumberedRow {
  package let number: Int64
  package let entry: ActivityEntry
}

/// Jobs belong to the node that does them; others take them over when it is gone.
extension SimulatedStore {
  package func addJob(_ job: HubJob, forgetting limit: Date) async throws {
    let node = livingID
    try await write(ifUnclear: .refuse) { state in
      try state.requireHub(job.hub)
      state.jobs.removeAll { $0.job.hub == job.hub && $0.isFinished && $0.job.updatedAt < limit }
      state.jobs.append(JobRow(job: job, owner: node, seals: [state.sealingKey]))
    }
  }

  package func updateJob(_ job: HubJob) async throws {
    let node = owner
    try await write(ifUnclear: .again) { state in
      let place = state.jobs.firstIndex { $0.job.id == job.id && $0.job.hub == job.hub }
      guard let place else { return }
      if let owner = state.jobs[place].owner, owner != node { throw StoreError.leaseLost }
      state.jobs[place].job = job
    }
  }

  package func job(_ id: String, hub: Hub.ID) async throws -> HubJob? {
    try await read { $0.jobs.first { $0.job.id == id && $0.job.hub == hub }?.job }
  }

  package func jobs(hub: Hub.ID) async throws -> [HubJob] {
    try await read { state in
      state.jobs.map(\.job).filter { $0.hub == hub }.sorted { $0.id < $1.id }
    }
  }

  /// In a node, those that no living node has; from here on they are this node's.
  package func unfinishedJobs() async throws -> [HubJob] {
    @Sendable func sorted(_ rows: [JobRow]) -> [HubJob] {
      rows.map(\.job).sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
    }
    guard owner != nil else { return try await read { sorted($0.jobs.filter { !$0.isFinished }) } }
    guard let node = livingID else { return [] }
    return try await write(ifUnclear: .again) { state in
      for index in state.jobs.indices where !state.jobs[index].isFinished {
        let isTaken = state.jobs[index].owner.map { state.isAlive($0) } ?? false
        if !isTaken { state.jobs[index].owner = node }
      }
      return sorted(state.jobs.filter { !$0.isFinished && $0.owner == node })
    }
  }
}

/// The activity log.
extension SimulatedStore {
  package func record(_ entries: [ActivityEntry]) async throws {
    try await write { state in for entry in entries { state.add(entry) } }
  }

  package func activity(
    _ query: ActivityQuery, hub: Hub.ID?, after: ListPosition?, limit: Int
  ) async throws -> ActivityPage {
    try await read { state in
      let rows = state.activity.lazy.filter { row in
        let time = row.entry.line.time
        return (hub == nil || row.entry.hub == hub)
          && query.from.map { time >= $0 } ?? true && query.until.map { time < $0 } ?? true
      }.map { row in
        let time = row.entry.line.time.milliseconds
        return (ListPosition(time: time, number: row.number), row.entry.line)
      }.filter { place, _ in after.map { place.isBefore($0) } ?? true }
        .sorted { $1.0.isBefore($0.0) }
      let (lines, next) = listPage(of: rows, limit: limit) { line in
        let isMeant =
          query.actor.map { $0 == line.actor } ?? true
          && query.action.map { $0 == line.action } ?? true
        return isMeant ? line : nil
      }
      return ActivityPage(lines: lines, next: next)
    }
  }

  package func clearActivity(before limit: Date?, keeping maximum: Int) async throws -> Bool {
    try await write { state in
      let count = state.activity.count
      if let limit { state.activity.removeAll { $0.entry.line.time < limit } }
      if state.activity.count < count { return true }
      guard count > maximum else { return false }
      let largest = largest(state.activity.map { ($0.entry.hub, 1) })
      let oldest = state.activity.filter { $0.entry.hub == largest }
        .sorted { ($0.entry.line.time, $0.number) < ($1.entry.line.time, $1.number) }
        .prefix(count - maximum)
      let gone = Set(oldest.map(\.number))
      state.activity.removeAll { gone.contains($0.number) }
      return state.activity.count > maximum
    }
  }
}

extension SimulatedDatabase.State {
  mutating func add(_ entry: ActivityEntry) {
    activity.put(ActivityRow(number: sequences.next(\.activity), entry: entry))
  }
}

/// Sessions of operators at the portal.
extension SimulatedStore {
  package func addSession(
    _ session: OperatorSession, forgetting limit: Date, keeping most: Int
  ) async throws {
    try await write { state in
      state.sessions.removeAll { $0.seenAt < limit || $0.id == session.id }
      state.sessions.append(session)
      let own = state.sessions.filter { $0.user == session.user }.sorted { $0.seenAt > $1.seenAt }
      let gone = Set(own.dropFirst(max(0, most)).map(\.id))
      state.sessions.removeAll { gone.contains($0.id) }
    }
  }

  package func session(_ id: [UInt8]) async throws -> OperatorSession? {
    try await read { $0.sessions.first { $0.id == id } }
  }

  package func updateSession(_ session: OperatorSession) async throws {
    try await write { state in
      guard let place = state.sessions.firstIndex(where: { $0.id == session.id }) else { return }
      state.sessions[place].seenAt = session.seenAt
      state.sessions[place].confirmedAt = session.confirmedAt
    }
  }

  package func endSession(_ id: [UInt8]) async throws {
    try await write { $0.sessions.removeAll { $0.id == id } }
  }
}
