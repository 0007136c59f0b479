package import Foundation
package import HubCore
import NotificationHubs
import Synchronization

/// A row for each process that works on the database.
package struct NodeRow: NumberedRow {
  package let number: Int64
  /// Rises with each heartbeat.
  package var beats: Int64 = 0
  /// Another node has not seen a heartbeat for its lease: it does not come back under its number.
  package var isDead = false
  package var lease: TimeInterval
  /// The last one, by the database's clock.
  package var heartbeat: Date
  /// The announcements about lanes that other nodes read.
  package var findings: [LaneFinding] = []
}

/// The process as a node; see ``NodeLease``. Its owner calls ``beat()`` five times in a lease.
extension SimulatedStore {
  /// Makes the process a node: it can claim work from now on.
  package func join(lease: TimeInterval = 10) async throws {
    process.withLock { process in
      process.lease = NodeLease(lease: lease)
      process.leaseTime = lease
    }
    try await beat()
  }

  /// Writes a heartbeat, and records peers that have died and steps of the database's clock.
  package func beat() async throws {
    let (isNode, known, lease) = process.withLock { process in
      (process.lease != nil && !process.isLeaving, process.lease?.id ?? 0, process.leaseTime)
    }
    guard isNode else { return }
    let (asked, machine, now) = (machine.steady(), machine, database.now)
    let beat = try await write("beat", ifUnclear: .again) { [self] state in
      let time = now()
      let id = state.beat(known, lease: lease, at: time)
      // The clock is read in a statement of its own, which takes no time here.
      let reading = NodeLease.Reading(
        local: machine.steady(), uncertainty: 0, time: time.stored, steps: state.clockSteps)
      let peers = state.nodes.filter { !$0.isDead && $0.number != id }
      let step = process.withLock { $0.lease?.step(in: reading, as: id) }
      if let step { state.clockSteps += step }
      return (
        id: id, reading: reading,
        peers: peers.map {
          NodeLease.Peer(id: $0.number, beats: $0.beats, heartbeat: $0.heartbeat, lease: $0.lease)
        }
      )
    }
    let dead = process.withLock { process in
      process.lease?.heard(as: beat.id, asked: asked, beat.reading, beside: beat.peers)
    }
    guard let dead, !dead.isEmpty else { return }
    try await write("beat", ifUnclear: .again) { state in
      for peer in dead {
        // One that has told meanwhile that it lives stays alive.
        state.nodes.change(peer.id) { if $0.beats == peer.beats { $0.isDead = true } }
      }
    }
  }

  /// Leaves the cluster; other nodes take over its work.
  package func leave() async {
    let id: Int64? = process.withLock { process in
      process.isLeaving = true
      process.lease?.end()
      return process.lease?.id
    }
    guard let id else { return }
    _ = try? await write("leave", ifUnclear: .again) { state in
      state.release(id)
      state.nodes[number: id] = nil
    }
  }

  /// Its number, whether or not the database has heard of it in time; 0 before the first heartbeat.
  package var nodeID: Int64 { process.withLock { $0.lease?.id ?? 0 } }

  /// The same in a node, and `nil` in another process.
  var owner: Int64? { process.withLock { $0.lease?.id } }

  /// `nil` when its leases may have ended, or it does not know the time yet: it must not claim
  /// anything.
  package var livingID: Int64? {
    let now = machine.steady()
    return process.withLock { process in
      guard let lease = process.lease, lease.mayClaim(at: now) else { return nil }
      return lease.id
    }
  }

  /// Whether its steady clock is that of the other nodes.
  var isSettled: Bool { process.withLock { $0.lease?.isSettled ?? true } }

  package var holdsLeases: Bool { owner == nil || livingID != nil }

  package var clock: HubClock {
    HubClock(
      now: { [self] in
        let local = machine.steady()
        return process.withLock { $0.lease?.now(at: local) } ?? machine.now()
      },
      steady: { [self] in
        let local = machine.steady()
        return process.withLock { $0.lease?.steady(at: local) } ?? local
      }, sleep: machine.sleep)
  }

  package func exchange(
    _ findings: Set<LaneFinding>, recovered: Set<LaneKey>
  ) async throws -> PeerReport {
    guard let node = owner else { return PeerReport() }
    let told = process.withLock { $0.lease?.told(as: node) ?? [] }
    // Most of the time there is nothing new to tell.
    guard findings != told || !recovered.isEmpty else {
      return try await read { $0.news(for: node, told) }
    }
    let news = try await write(ifUnclear: .again) { state in
      // A number that the database has forgotten cannot tell anything.
      guard state.nodes[number: node] != nil || findings.isSubset(of: told) else {
        throw StoreError.engine(code: 0, message: "no such node")
      }
      state.tell(findings, told, as: node)
      for row in state.nodes {
        state.nodes.change(row.number) { row in
          row.findings.removeAll { $0.kind == .refused && recovered.contains($0.lane) }
        }
      }
      return state.news(for: node, told.intersection(findings))
    }
    process.withLock { $0.lease?.note(told: findings, as: node) }
    return news
  }
}

extension SimulatedDatabase.State {
  func isAlive(_ node: Int64) -> Bool { nodes[number: node].map { !$0.isDead } ?? false }

  /// - Returns: The node's number; another one when the old one was found dead.
  fileprivate mutating func beat(_ id: Int64, lease: TimeInterval, at time: Date) -> Int64 {
    if isAlive(id) {
      nodes.change(id) { row in
        row.beats += 1
        row.heartbeat = time
      }
      return id
    }
    nodes[number: id] = nil
    // Those that have ended without an order are listed for a day.
    nodes.removeAll { $0.isDead && $0.heartbeat < time.addingTimeInterval(-86_400) }
    let number = sequences.next(\.node)
    nodes.put(NodeRow(number: number, lease: lease, heartbeat: time))
    return number
  }

  /// Releases the parts and jobs that a node owns.
  mutating func release(_ node: Int64) {
    for row in notifications.active {
      for index in row.parts.indices where row.parts[index].isOpen(at: node) {
        notifications.change(row.number) { $0.parts[index].owner = nil }
      }
    }
    for index in jobs.indices where jobs[index].owner == node && !jobs[index].isFinished {
      jobs[index].owner = nil
    }
  }

  fileprivate mutating func tell(
    _ findings: Set<LaneFinding>, _ told: Set<LaneFinding>, as node: Int64
  ) {
    nodes.change(node) { row in
      let changed = told.symmetricDifference(findings)
      row.findings.removeAll { finding in
        changed.contains { $0.lane == finding.lane && $0.kind == finding.kind }
      }
      row.findings += findings.subtracting(told)
      row.findings.sort { $0.order < $1.order }
    }
  }

  /// - Parameter told: What this node has told before; a refusal that is not there any more is
  ///   lifted.
  fileprivate func news(for node: Int64, _ told: Set<LaneFinding>) -> PeerReport {
    var news = PeerReport()
    news.lifted = Set(told.lazy.filter { $0.kind == .refused }.map(\.lane))
    for finding in nodes[number: node]?.findings ?? [] where finding.kind == .refused {
      news.lifted.remove(finding.lane)
    }
    let living = nodes.filter { !$0.isDead }
    news.findings = living.filter { $0.number != node }.flatMap(\.findings)
    news.nodes = living.count
    news.aborted = notifications.active { row in
      row.record.abortedAt != nil && row.record.endedAt == nil
        && row.parts.contains { $0.isOpen(at: node) }
    }.map(\.record.id)
    return news
  }
}

extension LaneFinding {
  fileprivate var order: (Hub.ID, Int64, Int) {
    (lane.hub, lane.platform.storedCode, kind.rawValue)
  }
}
