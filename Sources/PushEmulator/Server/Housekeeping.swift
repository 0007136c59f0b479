/// What happens by itself while the emulator runs: due expirations, idle connections, faults that
/// begin or end, and the state file.
struct Housekeeping: Sendable {
  let core: EmulatorCore
  let listeners: ServiceListeners
  let stateFile: StateFile?
  /// The state's revision that the file holds at the start.
  let savedRevision: Int
  let onProblem: @Sendable (EmulatorError) -> Void

  /// Between two looks at the clock: stored messages must come within a second of their time.
  private static let interval = Duration.milliseconds(100)

  /// Runs until it is cancelled, then saves a last time.
  func run() async {
    var savedRevision = savedRevision
    var round = 0
    while !Task.isCancelled {
      try? await Task.sleep(for: Self.interval)
      core.withState { $0.settleDue() }
      listeners.refresh()
      round += 1
      // Changes come in bursts: at most one save in half a second.
      guard round % 5 == 0, let (snapshot, revision) = snapshot(since: savedRevision) else {
        continue
      }
      // A failure is not tried again until something changes: a full disk would be reported for ever.
      savedRevision = revision
      save(snapshot)
    }
    if let (snapshot, _) = snapshot(since: nil) { save(snapshot) }
  }

  /// - Parameter revision: Nothing has to be saved if the state is still at it.
  private func snapshot(since revision: Int?) -> (Snapshot, revision: Int)? {
    guard stateFile != nil else { return nil }
    return core.withState { $0.revision == revision ? nil : (Snapshot($0), $0.revision) }
  }

  private func save(_ snapshot: Snapshot) {
    do throws(EmulatorError) {
      try stateFile?.save(snapshot)
    } catch {
      onProblem(error)
    }
  }
}
