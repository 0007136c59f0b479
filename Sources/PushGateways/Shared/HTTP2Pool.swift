import Foundation
import HTTP2
import HubCore

/// The HTTP/2 connections to one origin under one credential: one to start with, more when the peer's
/// stream limit holds back, new ones for those that have ended.
actor HTTP2Pool {
  /// A connection to use for one batch.
  struct Lease: Sendable {
    let id: Int
    let connection: HTTP2Connection
    /// Whether the peer has accepted a push on it. (Before that APNs allows one stream.)
    let isProven: Bool
  }

  enum CheckOut: Sendable {
    case lease(Lease)
    /// Connecting failed and it is too early to try again.
    case unavailable(HTTP2ConnectionError?)
  }

  private struct Member {
    let id: Int
    let connection: HTTP2Connection
    var isProven = false
  }

  private let template: HTTP2ConnectionConfiguration
  private let configuration: HTTP2PoolConfiguration
  private let clock: HubClock
  private let draw: @Sendable () -> Double
  private var members: [Member] = []
  private var lastID = 0
  private var fullSince: Date?
  private var backoff = ReconnectBackoff()
  private var lastError: HTTP2ConnectionError?

  /// - Parameter draw: A number from 0 to 1 for each pause before connecting again.
  init(
    _ template: HTTP2ConnectionConfiguration, configuration: HTTP2PoolConfiguration,
    clock: HubClock, draw: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.template = template
    self.configuration = configuration
    self.clock = clock
    self.draw = draw
  }

  /// How many connections stand open or are being made.
  var count: Int { members.count }

  /// What they carry now.
  var load: GatewayLoad {
    GatewayLoad(
      connections: members.count,
      streams: members.reduce(0) { $0 + $1.connection.status.inFlight })
  }

  /// Picks the least busy connection, or opens one.
  /// - Parameter avoided: A connection that just refused; used only when there can be no other.
  func checkOut(avoiding avoided: Int? = nil) -> CheckOut {
    dropEnded()
    let others = members.filter { $0.id != avoided }
    let loads = others.map { Self.load($0.connection.status) }
    if let least = loads.enumerated().min(by: { $0.element < $1.element }) {
      if hasBeenFull(loads), let new = open() { return .lease(new) }
      return .lease(Self.lease(others[least.offset]))
    }
    if let new = open() { return .lease(new) }
    if let only = members.first { return .lease(Self.lease(only)) }
    return .unavailable(lastError)
  }

  /// To be called after each batch, with what it met.
  func finished(_ lease: Lease, anyAccepted: Bool) {
    if anyAccepted {
      backoff.succeeded()
      lastError = nil
      if let index = members.firstIndex(where: { $0.id == lease.id }) {
        members[index].isProven = true
      }
    }
    dropEnded()
  }

  /// Takes a connection out of use; batches under way on it still end well.
  func retire(_ lease: Lease) {
    members.removeAll { $0.id == lease.id }
  }

  /// Ends all connections now. A later batch opens new ones.
  func closeAll() {
    for member in members { member.connection.close() }
    members = []
  }

  private static func lease(_ member: Member) -> Lease {
    Lease(id: member.id, connection: member.connection, isProven: member.isProven)
  }

  /// 0 for an idle connection, 1 for one at its stream limit, more when requests wait.
  private static func load(_ status: HTTP2ConnectionStatus) -> Double {
    let limit = max(1, min(status.peerStreamLimit ?? 1000, 1000))
    return Double(status.inFlight + status.queued) / Double(limit)
  }

  private func hasBeenFull(_ loads: [Double]) -> Bool {
    // Before its first success a connection has one stream: that is no reason for another.
    guard loads.allSatisfy({ $0 >= 1 }), members.allSatisfy(\.isProven) else {
      fullSince = nil
      return false
    }
    let now = clock.now()
    let since = fullSince ?? now
    fullSince = since
    guard now.timeIntervalSince(since) >= configuration.growAfter / .seconds(1) else {
      return false
    }
    fullSince = nil
    return true
  }

  private func open() -> Lease? {
    guard members.count < max(1, configuration.maxConnections), backoff.allows(clock.now()) else {
      return nil
    }
    lastID += 1
    let member = Member(id: lastID, connection: HTTP2Connection(template))
    members.append(member)
    return Self.lease(member)
  }

  private func dropEnded() {
    members.removeAll { member in
      let status = member.connection.status
      guard status.isDraining else { return false }
      // A connection that worked, or that the peer ended in good order, may be followed at once.
      if let error = status.error, Self.isFailure(error), status.goAway == nil, !member.isProven {
        lastError = error
        backoff.failed(at: clock.now(), draw: draw())
      }
      return true
    }
  }

  private static func isFailure(_ error: HTTP2ConnectionError) -> Bool {
    switch error.kind {
    case .drained, .idle, .closed: false
    default: true
    }
  }
}
