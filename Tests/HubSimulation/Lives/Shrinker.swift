/// Makes a plan shorter, as long as living it breaks the same promise: delta debugging (ddmin) over
/// its lines, then faults that last less, fewer nodes, and parameters with their defaults.
package struct Shrinker {
  /// The most lives that it takes.
  package static let mostLives = 2_000

  package private(set) var plan: Plan
  /// The number of lives that were played.
  package private(set) var lives = 0
  private let breaks: (Plan) -> Bool
  private let isOver: () -> Bool

  /// - Parameters:
  ///   - breaks: Whether a life of a plan breaks the promise.
  ///   - isOver: Whether the time for it is up.
  package init(
    _ plan: Plan, isOver: @escaping () -> Bool, breaks: @escaping (Plan) -> Bool
  ) {
    self.plan = plan
    self.isOver = isOver
    self.breaks = breaks
  }

  private var isSpent: Bool { lives >= Self.mostLives || isOver() }

  /// - Returns: `false` when the plan as it is does not break the promise.
  package mutating func shrink() -> Bool {
    lives += 1
    guard breaks(plan) else { return false }
    var before: Plan
    repeat {
      before = plan
      leaveOutLines()
      lessenNodes()
      takeDefaultParameters()
      shortenFaults()
    } while plan != before && !isSpent
    return true
  }

  /// Takes a candidate in place of the plan if it breaks the promise too.
  private mutating func takes(_ candidate: Plan) -> Bool {
    guard !isSpent, candidate != plan else { return false }
    lives += 1
    guard breaks(candidate) else { return false }
    plan = candidate
    return true
  }

  private mutating func takes(_ change: (inout Plan) -> Void) -> Bool {
    var candidate = plan
    change(&candidate)
    return takes(candidate)
  }

  private mutating func leaveOutLines() {
    var length = (plan.lines.count + 1) / 2
    while length >= 1, !isSpent {
      var hasChanged = false
      // From the end: what comes after the break goes first.
      var end = plan.lines.count
      while end > 0, !isSpent {
        let range = max(0, end - length)..<end
        if takes({ $0.lines.removeSubrange(range) }) { hasChanged = true }
        end = range.lowerBound
      }
      if length == 1, !hasChanged { return }
      length = length > 1 ? (length + 1) / 2 : 1
    }
  }

  private mutating func lessenNodes() {
    var nodes = 1
    while nodes < plan[.nodes], !takes({ $0.parameters[.nodes] = nodes }) { nodes += 1 }
  }

  private mutating func takeDefaultParameters() {
    _ = takes { $0.parameters[.order] = World.Order.firstInFirstOut.rawValue }
    for parameter in Plan.Parameter.allCases
    where parameter != .order && parameter != .nodes && plan[parameter] != parameter.defaultValue {
      _ = takes { $0.parameters[parameter] = nil }
    }
    // Lines and values that have no effect.
    for parameter in Plan.Parameter.allCases
    where plan.parameters[parameter] == parameter.defaultValue {
      plan.parameters[parameter] = nil
    }
  }

  private mutating func shortenFaults() {
    for index in plan.lines.indices {
      guard let place = plan.lines[index].act.length else { continue }
      while plan.lines[index][place] > 100 {
        let shorter = plan.lines[index][place] / 2
        guard takes({ $0.lines[index].arguments[place] = shorter }) else { break }
      }
    }
  }
}
