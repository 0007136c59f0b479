package import Foundation
package import HubCore

/// The clocks of one machine: one that people may set, and one that only drifts, and stands still
/// while the machine is suspended.
package final class MachineClock: @unchecked Sendable {  // owner: the world's thread
  private let world: World
  /// Seconds gained in a second.
  private let drift: Double
  /// The sum of all steps of the time of day, in seconds.
  @exclusivity(unchecked) private var offset: Double
  @exclusivity(unchecked) private var suspendedAt: Int64?
  /// Total time that the machine has been suspended, in nanoseconds.
  @exclusivity(unchecked) private var lost: Int64 = 0

  package init(_ world: World, drift: Double = 0, offset: Double = 0) {
    self.world = world
    self.drift = drift
    self.offset = offset
  }

  /// Seconds that have passed here.
  private var elapsed: Double {
    Double((suspendedAt ?? world.now) - lost) / 1e9 * (1 + drift)
  }

  /// A machine asks for the time of day when it comes back.
  package var date: Date {
    World.start.addingTimeInterval(elapsed + Double(lost) / 1e9 + offset)
  }

  /// Somebody sets the time of day.
  package func step(by seconds: Double) { offset += seconds }

  /// Somebody sets the time of day to what it is.
  package func setRight() { offset -= date.timeIntervalSince(world.date) }

  package func suspend() { if suspendedAt == nil { suspendedAt = world.now } }

  package func wake() {
    guard let suspendedAt else { return }
    lost += world.now - suspendedAt
    self.suspendedAt = nil
  }

  /// The clock as a process that starts now has it.
  package func clock(of place: ProcessID) -> HubClock {
    let (wall, began) = (date, elapsed)
    return HubClock(
      now: { [self] in date },
      steady: { [self] in wall.addingTimeInterval(elapsed - began) },
      sleep: { [self, world] duration in
        let due = elapsed + duration / .seconds(1)
        try await world.sleep(at: place) { [self] in
          let left = max(0, due - elapsed) / (1 + drift)
          return suspendedAt == nil ? left : max(left, 0.05)
        }
      })
  }
}
