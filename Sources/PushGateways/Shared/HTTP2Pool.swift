import Foundation
import HTTP2
import HubCore
import Synchronization

/// The HTTP/2 connections to one origin under one credential: one to start with, more when the
/// peer's stream limit is a bottleneck, new ones for those that have ended, fewer when fewer
/// suffice.
actor HTTP2Pool {
  /// A connection to use for one batch.
  struct Lease: Sendable {
    let id: Int
    let connection: any PushConnection
    /// Whether the peer has accepted a push on it. (Until then APNs allows one stream.)
    let isProven: Bool
  }

  enum CheckOut: Sendable {
    case lease(Lease)
    /// Connecting failed and it is too early to try again.
    case unavailable(HTTP2ConnectionError?)
  }

  private struct Member {
    let id: Int
    let connection: any PushConnection
    var isProven = false
  }

  /// ``GatewayPool/id``.
  nonisolated let number: Int
  private let connect: @Sendable () -> any PushConnection
  private let configuration: HTTP2PoolConfiguration
  private let clock: HubClock
  private let random: HubRandom
  private var members: [Member] = []
  private var lastID = 0
  private var growth = PoolGrowth()
  /// Peak number of concurrent pushes since the last resize check.
  private var peak = 0
  /// Closes surplus connections while there is more than one.
  private var shrinking: Task<Void, Never>?
  private let published = Atomic<Int>(usualStreams)
  private var backoff = ReconnectBackoff()
  private var lastError: HTTP2ConnectionError?

  /// - Parameter connect: Makes a connection to the origin.
  init(
    _ number: Int, _ connect: @escaping @Sendable () -> any PushConnection,
    configuration: HTTP2PoolConfiguration, clock: HubClock, random: HubRandom
  ) {
    self.number = number
    self.connect = connect
    self.configuration = configuration
    self.clock = clock
    self.random = random
  }

  deinit { shrinking?.cancel() }

  /// Number of connections that are open or being opened.
  var count: Int { members.count }

  /// The current load of the connections.
  var load: GatewayLoad {
    GatewayLoad(
      connections: members.count,
      streams: members.reduce(0) { $0 + $1.connection.status.inFlight }, limit: capacity)
  }

  /// Stream limit of a trusted connection at push services. A connection with so many streams
  /// counts as full whatever the peer allows.
  private static let usualStreams = 1000

  /// The pool as the dispatcher sees it.
  nonisolated var shared: GatewayPool { GatewayPool(id: number, capacity: capacity) }

  /// Maximum number of concurrent pushes on the connections.
  nonisolated var capacity: Int { published.load(ordering: .relaxed) }

  private func publish() {
    let proven = members.filter(\.isProven).map { Self.limit($0.connection.status) }
    published.store(proven.isEmpty ? Self.usualStreams : proven.reduce(0, +), ordering: .relaxed)
  }

  /// Picks the least busy connection, or opens one.
  /// - Parameter avoided: A connection that just refused; used only when there can be no other.
  func checkOut(avoiding avoided: Int? = nil) -> CheckOut {
    dropEnded()
    let others = members.filter { $0.id != avoided }
    let loads = others.map { Self.load($0.connection.status) }
    if let least = loads.enumerated().min(by: { $0.element < $1.element }) {
      if hasBeenFull(loads), let new = widen() { return .lease(new) }
      return .lease(Self.lease(others[least.offset]))
    }
    if let new = open() { return .lease(new) }
    if let only = members.first { return .lease(Self.lease(only)) }
    return .unavailable(lastError)
  }

  /// Must be called after each batch, with its outcome.
  func finished(_ lease: Lease, anyAccepted: Bool) {
    if anyAccepted {
      backoff.succeeded()
      lastError = nil
      if let index = members.firstIndex(where: { $0.id == lease.id }) {
        members[index].isProven = true
      }
    }
    dropEnded()
    publish()
  }

  /// Takes a connection out of use; batches in flight on it are completed.
  func retire(_ lease: Lease) {
    members.removeAll { $0.id == lease.id }
  }

  /// Closes all connections now. A later batch opens new ones.
  func closeAll() {
    for member in members { member.connection.close() }
    members = []
  }

  private static func lease(_ member: Member) -> Lease {
    Lease(id: member.id, connection: member.connection, isProven: member.isProven)
  }

  private static func limit(_ status: HTTP2ConnectionStatus) -> Int {
    max(1, min(status.peerStreamLimit ?? usualStreams, usualStreams))
  }

  /// 0 for an idle connection, 1 for one at its stream limit, more when requests are queued.
  private static func load(_ status: HTTP2ConnectionStatus) -> Double {
    Double(status.inFlight + status.queued) / Double(limit(status))
  }

  private func hasBeenFull(_ loads: [Double]) -> Bool {
    let statuses = members.map(\.connection.status)
    peak = max(peak, statuses.reduce(0) { $0 + $1.inFlight + $1.queued })
    guard members.count < configuration.maxConnections else { return false }
    // Before its first success a connection has one stream, which is no reason to open another.
    // While batches come and go a full connection has room for part of one.
    let isFull = loads.allSatisfy { $0 >= 0.8 } && members.allSatisfy(\.isProven)
    let load = PoolGrowth.Load(
      isFull: isFull, connections: members.count, capacity: capacity,
      answered: statuses.reduce(0) { $0 + $1.answered })
    return growth.isDue(load, after: configuration.growAfter / .seconds(1), at: clock.steady())
  }

  /// Doubles the number of connections, as far as allowed.
  private func widen() -> Lease? {
    guard let new = open() else { return nil }
    for _ in 1..<max(1, members.count - 1) { _ = open() }
    keepWatch()
    return new
  }

  private func open() -> Lease? {
    guard members.count < max(1, configuration.maxConnections), backoff.allows(clock.steady())
    else {
      return nil
    }
    lastID += 1
    let member = Member(id: lastID, connection: connect())
    members.append(member)
    return Self.lease(member)
  }

  /// Checks periodically whether fewer connections suffice, as long as there are several.
  private func keepWatch() {
    guard shrinking == nil, members.count > 1 else { return }
    shrinking = Task { [weak self, clock, pause = configuration.shrinkAfter] in
      while (try? await clock.sleep(pause)) != nil, await self?.shrink() == true {}
    }
  }

  /// Closes the connections that were not needed since the last check.
  /// - Returns: Whether there is still more than one.
  private func shrink() -> Bool {
    dropEnded()
    let needed = peak * members.count / max(1, capacity) + 1
    peak = members.reduce(0) {
      let status = $1.connection.status
      return $0 + status.inFlight + status.queued
    }
    while members.count > max(1, needed) {
      let least = members.indices.min {
        Self.load(members[$0].connection.status) < Self.load(members[$1].connection.status)
      }
      // Pushes in flight on it are completed, because their sender holds the connection.
      guard let least else { break }
      members.remove(at: least)
    }
    publish()
    if members.count > 1 { return true }
    shrinking = nil
    return false
  }

  private func dropEnded() {
    members.removeAll { member in
      let status = member.connection.status
      // Requests on a silent connection time out by themselves; their sender holds the connection.
      guard status.isDraining || status.isSilent else { return false }
      // A connection that worked, or that the peer closed properly, may be replaced at once.
      if let error = status.error, Self.isFailure(error), status.goAway == nil, !member.isProven {
        lastError = error
        backoff.failed(at: clock.steady(), draw: random.unit())
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

/// Limits and timeouts of a gateway's HTTP/2 connections to one origin.
package struct HTTP2PoolConfiguration: Sendable {
  /// Maximum number of connections per credential and origin, from 1. More than one is opened only
  /// when the peer's stream limit has been a bottleneck for ``growAfter``.
  package var maxConnections = 8
  /// Time for which all connections must have been full before another is opened.
  package var growAfter: Duration = .milliseconds(250)
  /// Time for which fewer connections must have sufficed before one is closed. Push services
  /// consider frequent opening and closing an attack.
  package var shrinkAfter: Duration = .seconds(5 * 60)
  /// Limit for name resolution, TCP, TLS and the first SETTINGS together.
  package var connectTimeout: Duration = .seconds(10)
  /// Limit from opening a stream to the end of its reply.
  package var replyTimeout: Duration = .seconds(30)
  /// Time without incoming data after which a PING checks whether the peer is alive.
  package var pingInterval: Duration = .seconds(60)
  /// Time limit for the reply to the PING.
  package var pingTimeout: Duration = .seconds(15)
  /// Time after which a connection without pushes is closed.
  package var idleTimeout: Duration

  package init(idleTimeout: Duration) { self.idleTimeout = idleTimeout }

  /// The initial configuration of all connections of a pool.
  func connection(
    to host: String, port: UInt16, extraAnchorsPEM: [UInt8]
  ) -> HTTP2ConnectionConfiguration {
    var connection = HTTP2ConnectionConfiguration(host: host, port: port)
    connection.extraAnchorsPEM = extraAnchorsPEM
    connection.connectTimeout = connectTimeout
    connection.replyTimeout = replyTimeout
    connection.pingInterval = pingInterval
    connection.pingTimeout = pingTimeout
    connection.idleTimeout = idleTimeout
    // Replies of push services are a line or two.
    connection.maxReplyBody = 4096
    return connection
  }
}

/// Decides when a pool opens more connections: when all have been full for a while, and those
/// opened earlier for this reason have improved throughput.
///
/// On a busy machine connections are full too, and more of them would only add cost. So the rate
/// before opening connections is compared with the rate after; unless it rose by a quarter of what
/// the new ones could add, no others are opened for some time.
struct PoolGrowth: Sendable {
  /// The load of a pool at one moment.
  struct Load: Sendable {
    /// Whether all connections are full.
    var isFull: Bool
    var connections: Int
    /// Number of streams that they may have open together.
    var capacity: Int
    /// Number of replies so far.
    var answered: Int
  }

  private struct Trial {
    let connections: Int
    /// Replies per second before.
    let rate: Double
  }

  /// Time after a fruitless trial before the next, in seconds; it doubles with each, up to ten
  /// minutes.
  static let patience = 30.0

  private var full: (since: Date, answered: Int)?
  private var trial: Trial?
  private var notBefore = Date.distantPast
  private var patience = Self.patience

  /// - Parameter pause: Time for which the connections must have been full, in seconds. They must
  ///   also have replied to four times their capacity, because bursts cannot be recognised earlier.
  /// - Returns: Whether to open more.
  mutating func isDue(_ load: Load, after pause: Double, at now: Date) -> Bool {
    guard load.isFull else {
      full = nil
      return false
    }
    // Replies are counted by connection: when one is gone, counting restarts.
    guard let (since, before) = full, before <= load.answered else {
      full = (now, load.answered)
      return false
    }
    let passed = now.timeIntervalSince(since)
    let answers = load.answered - before
    guard passed >= pause, answers >= 4 * load.capacity else { return false }
    let rate = Double(answers) / max(passed, 0.001)
    full = (now, load.answered)
    judge(rate, connections: load.connections, at: now)
    guard now >= notBefore else { return false }
    trial = Trial(connections: load.connections, rate: rate)
    full = nil
    return true
  }

  private mutating func judge(_ rate: Double, connections: Int, at now: Date) {
    guard let before = trial, before.connections < connections else { return }
    trial = nil
    let gain = Double(connections - before.connections) / Double(before.connections)
    if rate < before.rate * (1 + gain / 4) {
      notBefore = now + patience
      patience = min(600, patience * 2)
    } else {
      patience = Self.patience
    }
  }
}

/// Determines when to reconnect after failures: after 1 s, doubling to 60 s, each pause shortened
/// by up to half so that hubs which lost the service together do not reconnect together.
struct ReconnectBackoff: Sendable {
  private var failures = 0
  private var notBefore = Date.distantPast

  func allows(_ now: Date) -> Bool { now >= notBefore }

  mutating func succeeded() { self = ReconnectBackoff() }

  /// - Parameter draw: From 0 (the whole pause) to 1 (half of it).
  mutating func failed(at now: Date, draw: Double) {
    let pause = Double(min(60, 1 << min(failures, 6)))
    failures += 1
    notBefore = now + pause * (1 - draw / 2)
  }
}
