package import Foundation

/// Dependencies of the simulated services: time, randomness, and a log of their actions.
package protocol ServiceWorld: Sendable {
  /// The true time, which no node's clock has to agree with.
  var now: Date { get }

  /// Returns when so many seconds of virtual time have passed.
  /// - Throws: When the life has ended, or the task was cancelled.
  func wait(_ seconds: Double) async throws

  /// The next draw.
  func chance() -> UInt64

  /// Notes what happened, for the reader of a life.
  func note(_ line: String)

  /// Hears of each request when the service has acted on it.
  func saw(_ call: ServiceCall)

  /// Hears that a node has looked for a service at a host that has none.
  func strayed(to host: String)
}

extension ServiceWorld {
  package func saw(_ call: ServiceCall) {}
  package func strayed(to host: String) {}

  /// A draw from a range.
  func chance(in range: ClosedRange<Double>) -> Double {
    let unit = Double(chance() >> 11) * 0x1p-53
    return range.lowerBound + (range.upperBound - range.lowerBound) * unit
  }

  /// Waits, but only while a condition holds, which is looked at every second.
  /// - Returns: Whether it held to the end.
  func wait(_ seconds: Double, while condition: () -> Bool) async throws -> Bool {
    var left = seconds
    while left > 0, condition() {
      try await wait(min(1, left))
      left -= 1
    }
    return condition()
  }
}
