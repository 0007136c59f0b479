import Foundation

/// What came of asking the store.
enum StoreAnswer<Value: Sendable>: Sendable {
  case value(Value)
  /// The hub has been deleted.
  case gone
  /// The store is closed, or the dispatcher's tasks are being cancelled.
  case stopped

  var isGone: Bool { if case .gone = self { true } else { false } }
}

extension Dispatcher {
  /// Asks the store until it answers: a full disk or a locked database loses nothing and is tried
  /// again after one second, doubling up to thirty.
  nonisolated func ask<Value: Sendable>(
    _ call: @Sendable () async throws -> Value
  ) async -> StoreAnswer<Value> {
    var pause = 1.0
    while true {
      do {
        return .value(try await call())
      } catch StoreError.noHub {
        return .gone
      } catch StoreError.closed {
        return .stopped
      } catch {
        if Task.isCancelled { return .stopped }
        let what = (error as? StoreError)?.description ?? "unexpected error"
        report(.storeTrouble(what, retryIn: pause))
        guard (try? await clock.sleep(.seconds(pause))) != nil else { return .stopped }
        pause = min(pause * 2, 30)
      }
    }
  }
}
