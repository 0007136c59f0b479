/// Who waits until a notification, or everything, is delivered.
struct DispatchWaiters {
  private struct Waiter {
    /// `nil` waits for all.
    let notification: NotificationID?
    let continuation: CheckedContinuation<Bool, Never>
  }

  private var waiters: [Int: Waiter] = [:]
  private var next = 0

  /// The number of one who is about to wait.
  mutating func number() -> Int {
    defer { next += 1 }
    return next
  }

  /// - Parameter continuation: Hears `true` when the end has come, `false` when its time is over.
  mutating func add(
    _ number: Int, for notification: NotificationID?,
    _ continuation: CheckedContinuation<Bool, Never>
  ) {
    waiters[number] = Waiter(notification: notification, continuation: continuation)
  }

  /// The time of this one is over, if it still waits.
  mutating func giveUp(_ number: Int) {
    waiters.removeValue(forKey: number)?.continuation.resume(returning: false)
  }

  mutating func resume(where isReached: (NotificationID?) -> Bool) {
    let reached = waiters.keys.filter { isReached(waiters[$0]?.notification) }
    for number in reached.sorted() {
      waiters.removeValue(forKey: number)?.continuation.resume(returning: true)
    }
  }
}
