import Foundation

/// Whose retries are read next, and how many: retries under way are bounded, and each lane has a
/// share of the bound. Pure, as ``DispatchSchedule`` is.
///
/// A lane takes at most half of what the others leave: no lane more than half of all, nor two more
/// than three quarters, and so on; and one with none under way may always have a few. So a push
/// service that is stuck, or has a great many retries due, keeps no other lane's waiting.
struct RetryTurns {
  /// What to read.
  struct Turn: Sendable {
    let lane: LaneKey
    /// Rows to ask for: those that may be taken, and those under way on top, which are still in the
    /// store.
    let asked: Int
  }

  private struct Lane {
    /// When to look for the next that is due; `nil` when there is none.
    var due: Date?
    /// Targets under way.
    var held = 0
  }

  /// So many a lane may have no matter who holds the rest.
  static let least = 64

  private let limits: DispatchLimits
  private var lanes: [LaneKey: Lane] = [:]
  /// Targets under way, of all lanes.
  private(set) var held = 0

  init(limits: DispatchLimits) { self.limits = limits }

  /// A lane has retries that are due then, among others.
  mutating func add(_ lane: LaneKey, due: Date) {
    lanes[lane, default: Lane()].due = min(lanes[lane]?.due ?? due, due)
  }

  /// Takes the turn of the lane with the fewest under way of those with retries due and room. Rows
  /// that are written from here on are announced by ``add(_:due:)``.
  /// - Parameter most: How many more a lane will take before long.
  mutating func next(at now: Date, most: (LaneKey) -> Int = { _ in .max }) -> Turn? {
    var rooms: [LaneKey: Int] = [:]
    for (key, lane) in lanes {
      guard let due = lane.due, due <= now else { continue }
      let room = min(room(for: lane), most(key))
      if room > 0 { rooms[key] = room }
    }
    let neediest = lanes.filter { rooms[$0.key] != nil }.min { one, other in
      if one.value.held != other.value.held { return one.value.held < other.value.held }
      let (first, second) = (one.value.due ?? now, other.value.due ?? now)
      // Which comes first must not hang on the order of a dictionary.
      return first == second
        ? (one.key.hub, one.key.platform.ordinal) < (other.key.hub, other.key.platform.ordinal)
        : first < second
    }
    guard let (key, lane) = neediest, let room = rooms[key] else { return nil }
    lanes[key]?.due = nil
    return Turn(lane: key, asked: room + lane.held)
  }

  private func room(for lane: Lane) -> Int {
    let free = limits.retryTargets - held
    let least = min(Self.least, limits.pageSize)
    let share = min(limits.pageSize, (free - lane.held) / 2)
    if share >= least { return share }
    return lane.held == 0 ? least : 0
  }

  mutating func started(_ lane: LaneKey, _ count: Int) {
    lanes[lane, default: Lane()].held += count
    held += count
  }

  mutating func ended(_ lane: LaneKey, _ count: Int) {
    held -= count
    guard let left = lanes[lane] else { return }
    lanes[lane]?.held -= count
    if left.held <= count, left.due == nil { lanes[lane] = nil }
  }

  /// Lanes of a hub that have retries, or have had them.
  func lanes(of hub: Hub.ID) -> [LaneKey] {
    lanes.keys.filter { $0.hub == hub }.sorted { $0.platform.ordinal < $1.platform.ordinal }
  }

  /// Whether retries are due that no lane takes.
  func areHeldBack(at now: Date, most: (LaneKey) -> Int) -> Bool {
    lanes.contains { key, lane in lane.due.map { $0 <= now } ?? false && most(key) == 0 }
  }

  /// When a lane's next retries come due; those that are due wait for room, not for time.
  func nextWake(after now: Date) -> Date? {
    lanes.values.lazy.compactMap(\.due).filter { $0 > now }.min()
  }
}
