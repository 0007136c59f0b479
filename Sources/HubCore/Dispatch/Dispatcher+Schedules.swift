import Foundation

extension Dispatcher {
  /// How many scheduled notifications are taken up at once.
  private static let releaseLimit = 100
  /// The longest sleep before a schedule, in seconds: the machine's clock may be set meanwhile, or
  /// the machine suspended.
  static let longestScheduleSleep = 30.0

  /// A notification that the store keeps until its time.
  func submitScheduled(_ due: Date) {
    scheduleDue = min(scheduleDue ?? due, due)
    if isReleasing { submittedWhileReleasing = min(submittedWhileReleasing ?? due, due) }
  }

  /// Takes up the notifications whose time has come.
  func releaseSchedules(at now: Date) {
    guard !isReleasing, let due = scheduleDue, due <= now else { return }
    isReleasing = true
    spawn { [self] in
      let released = await ask { [store] in
        try await store.releaseSchedules(asOf: now, limit: Self.releaseLimit)
      }
      guard case .value(let found) = released else { return .nothing }
      // Apart from the release: to try both again would lose what has been released.
      let next = await ask { [store] in try await store.nextSchedule() }
      guard case .value(let next) = next else { return .nothing }
      return .released(found, next: next)
    }
  }

  func takeReleased(_ found: FoundNotifications, next: Date?) {
    isReleasing = false
    scheduleDue = [next, submittedWhileReleasing].compactMap { $0 }.min()
    submittedWhileReleasing = nil
    guard phase == .running else { return }
    for record in found { add(record, retryRows: 0) }
    note(unreadable: found.unreadable)
  }
}
