public import Foundation

/// The time of day, and calls at a later time.
public protocol DeviceClock: Sendable {
  /// The time of day, which the user may set.
  var now: Date { get }

  /// Makes a call at that time, or at once if it has passed.
  /// - Returns: The way to cancel the call.
  func call(at time: Date, _ action: @escaping @Sendable () async -> Void) -> ScheduledCall
}

/// A call that has not been made yet.
public struct ScheduledCall: Sendable {
  /// Cancels the call; without effect once it has been made.
  public let cancel: @Sendable () -> Void

  /// - Parameter cancel: Cancels the call.
  public init(cancel: @escaping @Sendable () -> Void) { self.cancel = cancel }
}

/// The system's clock.
public struct SystemDeviceClock: DeviceClock {
  public init() {}

  public var now: Date { Date() }

  public func call(
    at time: Date, _ action: @escaping @Sendable () async -> Void
  ) -> ScheduledCall {
    let seconds = max(time.timeIntervalSinceNow, 0)
    let task = Task {
      do { try await Task.sleep(for: .seconds(seconds)) } catch { return }
      await action()
    }
    return ScheduledCall { task.cancel() }
  }
}

extension Duration {
  var seconds: TimeInterval {
    TimeInterval(components.seconds) + TimeInterval(components.attoseconds) / 1e18
  }
}
