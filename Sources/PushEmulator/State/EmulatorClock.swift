import Foundation

/// The one clock of the emulator, in milliseconds since the Unix epoch; token ages, expirations,
/// rate windows and store times all follow it (docs/protocol/emulator.md, section 2.5).
struct EmulatorClock: Sendable {
  enum Mode: Sendable, Equatable {
    /// The machine's time plus an offset in ms.
    case real(offset: Int64)
    /// Stands still until it is moved.
    case manual(now: Int64)
  }

  private(set) var mode: Mode

  /// Real time, or standing still at `now`.
  init(manual now: Int64? = nil) {
    mode = now.map { .manual(now: $0) } ?? .real(offset: 0)
  }

  /// Milliseconds since the Unix epoch.
  var now: Int64 {
    switch mode {
    case .real(let offset): Self.machineTime &+ offset
    case .manual(let now): now
    }
  }

  var isManual: Bool { if case .manual = mode { true } else { false } }

  mutating func setReal() { mode = .real(offset: 0) }

  mutating func setManual(now: Int64) { mode = .manual(now: now) }

  /// Moves on by `milliseconds`, in either mode.
  mutating func advance(by milliseconds: Int64) {
    switch mode {
    case .real(let offset): mode = .real(offset: Self.sum(offset, milliseconds))
    case .manual(let now): mode = .manual(now: Self.sum(now, milliseconds))
    }
  }

  /// The latest time the control API takes: the year 9999, far from overflow.
  static let latest: Int64 = 253_402_300_799_999

  private static func sum(_ a: Int64, _ b: Int64) -> Int64 {
    let (sum, overflow) = a.addingReportingOverflow(b)
    if overflow { return b > 0 ? latest : -latest }
    return min(max(sum, -latest), latest)
  }

  private static var machineTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
