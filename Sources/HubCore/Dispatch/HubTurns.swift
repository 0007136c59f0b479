/// The turns of a hub's notifications, and the hub's own among others.
struct HubTurns {
  /// Those of one flow that no page has been asked for, in the order they came. What keeps the
  /// first from being read keeps them all.
  private struct Newcomers {
    var list: [Int] = []
    var head = 0

    var first: Int? { head < list.count ? list[head] : nil }

    mutating func removeFirst() {
      head += 1
      guard head * 2 > list.count else { return }
      list.removeFirst(head)
      head = 0
    }
  }

  /// The hub's share in relation to others.
  var weight: Double
  private var newcomers: [DispatchSchedule.FlowKey: Newcomers] = [:]
  /// The others with pages left; ``turn`` is the place of the next.
  private var order: [Int] = []
  private var turn = 0
  /// Newcomers that have gone ahead since one of the others had its turn.
  private var ahead = 0
  /// Targets read and not recorded.
  var held = 0
  /// When it last had a page read, as a number.
  private(set) var served = 0

  /// So many newcomers may go ahead of the notification whose turn it is.
  private static let mostAhead = 8

  init(weight: Double) { self.weight = weight }

  /// What it holds, in units of its share.
  var load: Double { Double(held) / weight }
  var isEmpty: Bool { newcomers.isEmpty && order.isEmpty }
  /// Those that may be next.
  var candidates: [Int] { newcomers.values.compactMap(\.first) + order }

  mutating func join(_ notification: Int, _ flow: DispatchSchedule.FlowKey) {
    newcomers[flow, default: Newcomers()].list.append(notification)
  }

  mutating func leave(_ notification: Int, _ flow: DispatchSchedule.FlowKey) {
    if let index = order.firstIndex(of: notification) {
      order.remove(at: index)
      if index < turn { turn -= 1 }
    } else if newcomers[flow]?.first == notification {
      removeFirst(of: flow)
    } else {
      newcomers[flow]?.list.removeAll { $0 == notification }
    }
  }

  private mutating func removeFirst(of flow: DispatchSchedule.FlowKey) {
    newcomers[flow]?.removeFirst()
    if newcomers[flow]?.first == nil { newcomers[flow] = nil }
  }

  /// The notification to read next of those that can be read.
  func next(where canRead: (Int) -> Bool) -> Int? {
    let newcomer = newcomers.values.compactMap(\.first).filter(canRead).min()
    if ahead < Self.mostAhead, let newcomer { return newcomer }
    for step in order.indices {
      let notification = order[(turn + step) % order.count]
      if canRead(notification) { return notification }
    }
    return newcomer
  }

  /// Notes that a page is being read.
  mutating func read(_ notification: Int, _ flow: DispatchSchedule.FlowKey, as number: Int) {
    served = number
    if newcomers[flow]?.first == notification {
      removeFirst(of: flow)
      order.append(notification)
      ahead += 1
    } else if let index = order.firstIndex(of: notification) {
      // Not wrapped round: a hub that joins now stands at the end, and is next.
      turn = index + 1
      ahead = 0
    }
  }
}
