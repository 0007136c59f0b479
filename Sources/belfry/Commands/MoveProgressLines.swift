import Foundation
import HubStorage
import Synchronization

/// Reports the progress of a move: as a bar on a terminal, otherwise in a line every ten seconds.
final class MoveProgressLines: Sendable {
  private struct State {
    var bar = ProgressBar()
    var next = ContinuousClock.now + .seconds(10)
    var start: (step: MoveProgress.Step, at: ContinuousClock.Instant)?
  }

  private let state = Mutex(State())
  private let context: CommandContext

  init(_ context: CommandContext) { self.context = context }

  func show(_ progress: MoveProgress) {
    let line = state.withLock { state -> String? in
      if state.start?.step != progress.step { state.start = (progress.step, .now) }
      let seconds = (ContinuousClock.now - (state.start?.at ?? .now)) / .seconds(1)
      let rate = Double(progress.rows - progress.earlier) / max(seconds, 0.001)
      let left = Double(max(0, progress.total - progress.rows)) / max(rate, 1)
      let text =
        "\(progress.step == .copying ? "copying" : "comparing") \(progress.table): \(progress.rows) of "
        + "\(progress.total) rows, \(Int(rate)) a second, \(Int(left.rounded(.up))) s left"
      state.bar.show(Double(progress.rows) / Double(max(1, progress.total)), text)
      guard isatty(2) != 1, ContinuousClock.now > state.next else { return nil }
      state.next = .now + .seconds(10)
      return text
    }
    if let line { context.note(line) }
  }

  func clear() { state.withLock { $0.bar.clear() } }
}
