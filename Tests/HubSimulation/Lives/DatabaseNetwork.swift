import Foundation
import HubCore

/// The network between the nodes of a life and their database, and what goes wrong with both.
package final class DatabaseNetwork: @unchecked Sendable {  // owner: the world's thread
  /// Which way of a connection loses what it carries. Where answers are lost the database does what
  /// was on its way to it, and nothing later: no connection comes about.
  enum Ways: Int { case both, questions, answers }

  /// A call that loses its connection once so many more of its name have been made.
  private struct Trap {
    /// The line of the plan that has set it.
    let line: Int
    let machine: Int
    let call: String
    var left: Int
    let isAfter: Bool
  }

  private let world: World
  private let seed: UInt64
  private let latency: Double
  private var cuts: [Int: (since: Double, until: Double, ways: Ways)] = [:]
  private var awayUntil = 0.0
  private var losses: (until: Double, thousandths: Int) = (0, 0)
  private var refusal: (since: Double, until: Double, error: StoreError)?
  /// When a write of each place was last refused.
  private var refusedAt: [ProcessID: Double] = [:]
  private var traps: [Trap] = []
  /// A call as plans name it, and what each place has made of it.
  private final class Call {
    /// Without the labels.
    let name: String
    /// Of the stream of its random values.
    let key: UInt64
    /// Of each place, by its number.
    private var counts: [(underWay: Int, made: UInt64)] = []

    init(_ name: String) {
      self.name = name
      key = UInt64(keyOf: name)
    }

    /// - Returns: Its number among those of its place.
    func begin(at place: ProcessID) -> UInt64 {
      while counts.count <= place { counts.append((0, 0)) }
      counts[place].underWay += 1
      counts[place].made += 1
      return counts[place].made &+ UInt64(place) << 32
    }

    func end(at place: ProcessID) { counts[place].underWay -= 1 }

    func underWay(at place: ProcessID) -> Int {
      counts.indices.contains(place) ? counts[place].underWay : 0
    }
  }

  private var kinds: [Call] = []
  /// By the name of the function, with its labels.
  private var calls: [String: Call] = [:]
  /// Hears of each writing call that the database has done, and whether it has found nothing to do.
  var hasCommitted: (_ call: String, ProcessLink, _ isIdle: Bool) -> Void = { _, _, _ in }
  /// Hears of each trap that was sprung: its line in the plan, the place, and the call.
  var hasLost: (Int, ProcessID, String) -> Void = { _, _, _ in }

  /// Time for which a process retries before it gives up, in seconds, as the engine does.
  static let patience = 5.0

  init(_ world: World, seed: UInt64, latency: Int) {
    self.world = world
    self.seed = seed
    self.latency = Double(latency) / 100
  }

  // MARK: What goes wrong

  func cut(_ machine: Int, for seconds: Double, _ ways: Ways) {
    cuts[machine] = (
      world.seconds, max(cuts[machine]?.until ?? 0, world.seconds + seconds), ways
    )
  }

  func leave(for seconds: Double) { awayUntil = max(awayUntil, world.seconds + seconds) }

  func lose(_ thousandths: Int, for seconds: Double) {
    losses = (world.seconds + seconds, thousandths)
  }

  func refuse(with error: StoreError, for seconds: Double) {
    refusal = (refusingSince ?? world.seconds, world.seconds + seconds, error)
  }

  func trap(_ line: Int, _ machine: Int, _ call: String, after count: Int, isAfter: Bool) {
    traps.append(
      Trap(line: line, machine: machine, call: call, left: count, isAfter: isAfter))
  }

  func heal() {
    cuts = [:]
    awayUntil = 0
    losses = (0, 0)
    refusal = nil
    traps = []
  }

  /// Whether a machine reaches a database that does its work.
  func isOpen(to machine: Int) -> Bool {
    world.seconds >= awayUntil && world.seconds >= (cuts[machine]?.until ?? 0)
      && world.seconds >= (refusal?.until ?? 0) && world.seconds >= losses.until
  }

  /// The beginning of the time for which it has refused writes without a pause.
  var refusingSince: Double? { refusal.flatMap { world.seconds < $0.until ? $0.since : nil } }

  func hasRefused(_ place: ProcessID, since moment: Double) -> Bool {
    refusedAt[place].map { $0 >= moment } ?? false
  }

  /// Whether nothing of a machine reaches the database.
  func isCutOff(_ machine: Int) -> Bool {
    world.seconds < awayUntil || world.seconds < (cuts[machine]?.until ?? 0)
  }

  // MARK: Calls under way

  /// The names of the calls that a place waits for, in order.
  func waiting(at place: ProcessID) -> [String] {
    kinds.filter { $0.underWay(at: place) > 0 }.map(\.name).sorted()
  }

  /// The number of the calls that a place waits for.
  func callCount(of place: ProcessID) -> Int {
    kinds.reduce(0) { $0 + $1.underWay(at: place) }
  }

  private func kind(of call: SimulatedCall) -> Call {
    if let known = calls[call.name] { return known }
    // Functions that differ in their labels only are one call.
    let base = StoreCalls.base(call.name)
    if let known = kinds.first(where: { $0.name == base }) {
      calls[call.name] = known
      return known
    }
    let kind = Call(base)
    kinds.append(kind)
    calls[call.name] = kind
    return kind
  }

  // MARK: One call

  /// The end of one try.
  enum Delivery: Sendable {
    /// - Parameter error: What the database refuses it with.
    case answered(error: (any Error)?)
    /// The connection is gone; whether the database has done it, nobody knows but we.
    case lost(isDone: Bool, error: (any Error)?)
  }

  func deliver(
    _ call: SimulatedCall, of link: ProcessLink, until deadline: Double,
    _ transaction: @escaping Transaction
  ) async -> Delivery {
    let kind = kind(of: call)
    let (name, occasion) = (kind.name, kind.begin(at: link.place))
    defer { kind.end(at: link.place) }
    var draw = RandomStream(seed, kind.key, UInt64(link.machine), occasion)
    let (there, back) = (travelTime(&draw), travelTime(&draw))
    let isLost = losses.until > world.seconds && draw.below(1_000) < losses.thousandths
    let trap = springTrap(link.machine, name)
    let diesUnheard = draw.oneIn(2)
    return await withCheckedContinuation { continuation in
      world.after(there, at: link.place) { [self] in
        arrive(link, until: deadline) { [self] isThere in
          guard isThere, !(link.isDead && diesUnheard) else {
            return continuation.resume(returning: .lost(isDone: false, error: nil))
          }
          if let trap, !trap.isAfter {
            hasLost(trap.line, link.place, name)
            return hangUp(link, continuation, isDone: false, error: nil)
          }
          if let refusal, refusal.until > world.seconds, call.isWrite {
            refusedAt[link.place] = world.seconds
            return world.after(back, at: link.place) {
              continuation.resume(returning: .answered(error: refusal.error))
            }
          }
          var error: (any Error)?
          do {
            let isOfInterest = try transaction()
            if call.isWrite { hasCommitted(name, link, !isOfInterest) }
            if isOfInterest {
              world.tell("machine \(link.machine): \(name)", at: World.database)
            }
          } catch let refusal { error = refusal }
          if let trap { hasLost(trap.line, link.place, name) }
          let loses = cuts[link.machine].map { $0.until > world.seconds && $0.ways == .answers }
          if trap != nil || isLost || loses == true {
            return hangUp(link, continuation, isDone: true, error: error)
          }
          world.after(back, at: link.place) { [error] in
            continuation.resume(returning: .answered(error: error))
          }
        }
      }
    }
  }

  /// Waits for the database.
  /// - Returns: Whether it was reached in time.
  fileprivate func reach(from link: ProcessLink, until deadline: Double) async -> Bool {
    await withCheckedContinuation { continuation in
      world.after(travelTime(&link.draw), at: link.place) { [self] in
        arrive(link, until: deadline) { continuation.resume(returning: $0) }
      }
    }
  }

  /// The process notices after a while that its connection is gone.
  private func hangUp(
    _ link: ProcessLink, _ continuation: CheckedContinuation<Delivery, Never>, isDone: Bool,
    error: (any Error)?
  ) {
    world.after(0.05, at: link.place) {
      continuation.resume(returning: .lost(isDone: isDone, error: error))
    }
  }

  /// Waits for the way and the database; what waits too long has not arrived.
  private func arrive(
    _ link: ProcessLink, until deadline: Double, _ arrived: @escaping (Bool) -> Void
  ) {
    if world.isClosing { return arrived(false) }
    let cut =
      cuts[link.machine].map { cut in
        cut.ways == .answers && world.seconds < cut.since + 0.005 ? 0 : cut.until
      } ?? 0
    let open = max(cut, awayUntil)
    guard open > world.seconds else { return arrived(true) }
    guard world.seconds < deadline else { return arrived(false) }
    // Not at once when it opens: what has waited comes in another order.
    let again = min(open, deadline) - world.seconds + travelTime(&link.draw)
    world.after(again, at: link.place) { [self] in arrive(link, until: deadline, arrived) }
  }

  /// In seconds: a millisecond or less as a rule, once in a hundred much longer.
  private func travelTime(_ draw: inout RandomStream) -> Double {
    let usual = draw.between(0.000_1, 0.001_5)
    return latency * (draw.oneIn(100) ? usual * draw.between(10, 100) : usual)
  }

  /// - Returns: `nil` when the call meets none.
  private func springTrap(_ machine: Int, _ name: String) -> Trap? {
    for index in traps.indices where traps[index].machine == machine && traps[index].call == name {
      traps[index].left -= 1
      if traps[index].left < 0 { return traps.remove(at: index) }
    }
    return nil
  }
}

/// One process's connections to the database.
package final class ProcessLink: DatabaseLink, @unchecked Sendable {  // owner: the world's thread
  let place: ProcessID
  let machine: Int
  /// Its process has been killed.
  var isDead = false
  private let network: DatabaseNetwork
  private let world: World
  fileprivate var draw: RandomStream

  init(_ network: DatabaseNetwork, _ world: World, place: ProcessID, machine: Int, seed: UInt64) {
    self.network = network
    self.world = world
    self.place = place
    self.machine = machine
    draw = RandomStream(seed, UInt64(keyOf: "link"), UInt64(place))
  }

  package func carry(
    _ call: SimulatedCall, _ transaction: @escaping Transaction
  ) async throws {
    let deadline = world.seconds + DatabaseNetwork.patience
    while !world.isClosing {
      switch await network.deliver(call, of: self, until: deadline, transaction) {
      case .answered(let error):
        if let error { throw error }
        return
      case .lost(false, _):
        guard world.seconds < deadline else { throw Self.isAway }
      case .lost(true, let error):
        switch call.unclear {
        case .again:
          guard world.seconds < deadline else { throw Self.isAway }
        case .refuse: throw Self.isUnclear
        case .mark:
          // It has to be asked for, by another connection.
          guard await network.reach(from: self, until: deadline) else { throw Self.isUnclear }
          if let error { throw error }
          return
        }
      }
    }
    throw StoreError.closed
  }

  private static let isAway = StoreError.engine(code: 0, message: "the database does not answer")
  private static let isUnclear = StoreError.engine(
    code: 0, message: "the connection was lost at the end of a write")
}
