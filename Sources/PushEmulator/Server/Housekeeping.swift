/// What happens by itself while the emulator runs: due expirations, idle connections, faults that
/// begin or end, and the state file.
struct Housekeeping: Sendable {
  let core: EmulatorCore
  let listeners: APNsListeners
  let stateFile: StateFile?
  /// The state's revision that the file holds at the start.
  let savedRevision: Int

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
      guard round % 5 == 0, let state = changed(since: savedRevision) else { continue }
      if save(state) { savedRevision = state.revision }
    }
    if stateFile != nil { _ = save(core.withState { $0 }) }
  }

  private func changed(since revision: Int) -> EmulatorState? {
    guard stateFile != nil else { return nil }
    return core.withState { $0.revision == revision ? nil : $0 }
  }

  /// A failure is tried again: the disk may have room later.
  private func save(_ state: EmulatorState) -> Bool {
    do throws(EmulatorError) {
      try stateFile?.save(state)
      return true
    } catch {
      return false
    }
  }
}
