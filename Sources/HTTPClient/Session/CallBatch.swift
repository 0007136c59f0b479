/// Calls that were handed over together. Belongs to the caller until it is submitted, to the
/// session's thread from then on.
final class CallBatch: @unchecked Sendable {  // see above: one owner at a time
  let id: UInt64
  let calls: [HTTPCall]
  let lane: HTTPLane
  /// The first call that has not been begun.
  private(set) var next = 0
  private(set) var isStopped = false
  private let goesOn: @Sendable (Int, Result<HTTPReply, HTTPFailure>) -> Bool
  private let continuation: CheckedContinuation<[Result<HTTPReply, HTTPFailure>], Never>
  private var results: [Result<HTTPReply, HTTPFailure>?]
  private var open: Int

  init(
    id: UInt64, calls: [HTTPCall], lane: HTTPLane,
    goesOn: @escaping @Sendable (Int, Result<HTTPReply, HTTPFailure>) -> Bool,
    continuation: CheckedContinuation<[Result<HTTPReply, HTTPFailure>], Never>
  ) {
    self.id = id
    self.calls = calls
    self.lane = lane
    self.goesOn = goesOn
    self.continuation = continuation
    results = Array(repeating: nil, count: calls.count)
    open = calls.count
  }

  /// Takes the next call to begin; `nil` when all are.
  func take() -> Int? {
    guard next < calls.count else { return nil }
    defer { next += 1 }
    return next
  }

  /// Notes an answer; the last one resumes the caller.
  func answer(_ index: Int, _ result: Result<HTTPReply, HTTPFailure>) {
    if !goesOn(index, result), !isStopped {
      isStopped = true
      answerUnbegun(HTTPFailure(.notSent, "not sent after what was answered before"))
    }
    set(index, result)
  }

  /// Answers all that has not been begun.
  func answerUnbegun(_ failure: HTTPFailure) {
    while let index = take() { set(index, .failure(failure)) }
  }

  private func set(_ index: Int, _ result: Result<HTTPReply, HTTPFailure>) {
    guard results[index] == nil else { return }
    results[index] = result
    open -= 1
    if open == 0 { continuation.resume(returning: results.compactMap { $0 }) }
  }
}
