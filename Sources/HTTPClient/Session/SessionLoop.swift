import CCurl

/// The session's thread: starts calls as their lanes allow, lets libcurl transfer them, and
/// completes them. Everything here is used on that thread only.
final class SessionLoop {
  private struct Lane {
    var inFlight = 0
    var waiting: [CallBatch] = []
  }

  /// The time by which a started call must have its result.
  private struct Deadline {
    let moment: UInt64
    let transfer: Transfer
  }

  private let core: SessionCore
  private let multi: UnsafeMutableRawPointer
  private let anchors: TrustAnchors
  private var lanes: [UInt64: Lane] = [:]
  private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
  /// In order, because all calls have the same time limit; those before `nextDeadline` are done.
  private var deadlines: [Deadline] = []
  private var nextDeadline = 0
  /// Easy handles for reuse.
  private var idle: [EasyHandle] = []

  init(_ core: SessionCore, _ multi: UnsafeMutableRawPointer) {
    self.core = core
    self.multi = multi
    anchors = TrustAnchors(extraPEM: core.configuration.extraAnchorsPEM)
    _ = belfry_curl_multi_set_long(
      multi, CURLMOPT_MAXCONNECTS, core.configuration.maxIdleConnections)
  }

  func run() {
    while true {
      let mail = core.takeMail()
      for batch in mail.batches { enter(batch) }
      for id in mail.cancelled { cancel(id) }
      if mail.isClosed { return end() }
      var running: Int32 = 0
      curl_multi_perform(multi, &running)
      // A result may let waiting calls start, which requires another turn at once.
      let (hasAnswered, pause) = (collect(), expire())
      if !hasAnswered, pause > 0 { curl_multi_poll(multi, nil, 0, pause, nil) }
    }
  }

  /// Fails the calls that have timed out.
  ///
  /// - Returns: Milliseconds until the next timeout, 60 000 at most.
  private func expire() -> Int32 {
    let now = core.configuration.monotonicClock()
    while nextDeadline < deadlines.count {
      let next = deadlines[nextDeadline]
      let isOver = next.transfer.handle == nil
      guard isOver || next.moment <= now else {
        return Int32(min(60_000, (next.moment - now) / 1_000_000 + 1))
      }
      nextDeadline += 1
      if !isOver {
        stop(HTTPFailure(.timeout, "no reply in time"), next.transfer)
        return 0  // others may begin
      }
    }
    deadlines.removeAll(keepingCapacity: true)
    nextDeadline = 0
    return 60_000
  }

  private func setDeadline(_ transfer: Transfer) {
    if nextDeadline > 1000, nextDeadline > deadlines.count / 2 {
      deadlines.removeFirst(nextDeadline)
      nextDeadline = 0
    }
    let timeout = max(0, min(core.configuration.totalTimeout / .nanoseconds(1), 1e18))
    deadlines.append(
      Deadline(
        moment: core.configuration.monotonicClock() + UInt64(timeout), transfer: transfer))
  }

  private func enter(_ batch: CallBatch) {
    lanes[batch.lane.id, default: Lane()].waiting.append(batch)
    fill(batch.lane)
  }

  /// Starts calls of a lane until it is full or empty.
  private func fill(_ lane: HTTPLane) {
    guard var present = lanes.removeValue(forKey: lane.id) else { return }
    while present.inFlight < lane.limit, let batch = present.waiting.first {
      guard let index = batch.take() else {
        present.waiting.removeFirst()
        continue
      }
      if begin(index, of: batch) { present.inFlight += 1 }
    }
    present.waiting.removeAll { $0.next >= $0.calls.count }
    if present.inFlight > 0 || !present.waiting.isEmpty { lanes[lane.id] = present }
  }

  private func begin(_ index: Int, of batch: CallBatch) -> Bool {
    guard let easy = idle.popLast() ?? EasyHandle() else {
      batch.answer(index, .failure(HTTPFailure(.connect, "libcurl cannot start")))
      return false
    }
    let transfer = Transfer(batch, index: index, easy: easy, configuration: core.configuration)
    do throws(HTTPFailure) {
      try transfer.prepare(anchors: anchors)
    } catch {
      batch.answer(index, .failure(error))
      return false
    }
    guard curl_multi_add_handle(multi, easy.pointer) == CURLM_OK else {
      batch.answer(index, .failure(HTTPFailure(.connect, "libcurl cannot start")))
      return false
    }
    transfers[easy.pointer] = transfer
    // A reply that is read piece by piece may last for days.
    if batch.calls[index].receive == nil { setDeadline(transfer) }
    batch.lane.began()
    return true
  }

  /// Completes the calls that have ended. True when there were any.
  private func collect() -> Bool {
    var left: Int32 = 0
    var any = false
    while let message = curl_multi_info_read(multi, &left)?.pointee {
      guard message.msg == CURLMSG_DONE, let easy = message.easy_handle else { continue }
      let code = message.data.result
      any = true
      if let transfer = remove(easy) {
        transfer.batch.answer(transfer.index, transfer.result(code))
        leave(transfer)
      }
    }
    return any
  }

  /// Removes a transfer from libcurl; its handle is kept for reuse.
  private func remove(_ easy: UnsafeMutableRawPointer) -> Transfer? {
    guard let transfer = transfers.removeValue(forKey: easy) else { return nil }
    transfer.batch.lane.ended()
    curl_multi_remove_handle(multi, easy)
    return transfer
  }

  private func leave(_ transfer: Transfer) {
    if let easy = transfer.release(), idle.count < 64 { idle.append(easy) }
    let lane = transfer.batch.lane
    lanes[lane.id]?.inFlight -= 1
    fill(lane)
  }

  private func cancel(_ id: UInt64) {
    let failure = HTTPFailure(.cancelled, "cancelled")
    for lane in lanes.values {
      for batch in lane.waiting where batch.id == id { batch.answerUnbegun(failure) }
    }
    stop(failure) { $0.batch.id == id }
  }

  /// Ends a single call; the others of its batch continue.
  private func stop(_ failure: HTTPFailure, _ transfer: Transfer) {
    guard let easy = transfer.handle, remove(easy) != nil else { return }
    transfer.batch.answer(transfer.index, .failure(failure))
    leave(transfer)
  }

  private func stop(_ failure: HTTPFailure, _ isMeant: (Transfer) -> Bool) {
    for (easy, transfer) in transfers where isMeant(transfer) {
      _ = remove(easy)
      transfer.batch.answerUnbegun(failure)
      transfer.batch.answer(transfer.index, .failure(failure))
      leave(transfer)
    }
  }

  private func end() {
    let failure = HTTPFailure(.closed, "the session is closed")
    let left = core.ended()
    for batch in left.batches { batch.answerUnbegun(failure) }
    for lane in lanes.values { for batch in lane.waiting { batch.answerUnbegun(failure) } }
    stop(failure) { _ in true }
    idle = []
    curl_multi_cleanup(multi)
  }
}

/// Calls that were submitted together. Belongs to the caller until it is submitted, to the
/// session's thread from then on.
final class CallBatch: @unchecked Sendable {  // see above: one owner at a time
  let id: UInt64
  let calls: [HTTPCall]
  let lane: HTTPLane
  /// The first call that has not been started.
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

  /// Takes the next call to start; `nil` when there is none.
  func take() -> Int? {
    guard next < calls.count else { return nil }
    defer { next += 1 }
    return next
  }

  /// Records a result; the last one resumes the caller.
  func answer(_ index: Int, _ result: Result<HTTPReply, HTTPFailure>) {
    if !goesOn(index, result), !isStopped {
      isStopped = true
      answerUnbegun(HTTPFailure(.notSent, "not sent after what was answered before"))
    }
    set(index, result)
  }

  /// Completes all calls that have not been started.
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
