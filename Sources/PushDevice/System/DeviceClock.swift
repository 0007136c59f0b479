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
  /// Creates the clock.
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

extension DeviceClock {
  /// Returns the result of a step, or `nil` when its time is over. The step is cancelled then, but
  /// not waited for.
  func result<Success: Sendable>(
    before end: Date, of step: @escaping @Sendable () async -> Success?
  ) async -> Success? {
    let once = Once<Success?>()
    let timer = call(at: end) { once.call(nil) }
    let task = Task { once.call(await step()) }
    let result = await withCheckedContinuation { continuation in
      once.receive { continuation.resume(returning: $0) }
    }
    timer.cancel()
    task.cancel()
    return result
  }
}

extension Duration {
  package var seconds: TimeInterval {
    TimeInterval(components.seconds) + TimeInterval(components.attoseconds) / 1e18
  }
}
