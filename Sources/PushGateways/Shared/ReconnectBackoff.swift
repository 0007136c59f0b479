import Foundation

/// When to connect again after failures: 1 s, doubling to 60 s, each pause shortened by up to half
/// so that hubs which lost the service together do not return together.
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
