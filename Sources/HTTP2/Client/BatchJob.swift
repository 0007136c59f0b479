import CNghttp2
import Synchronization

/// A batch on the connection's thread: its bytes at a fixed address, its name/value pairs prepared
/// for nghttp2, and the replies as they arrive. For one thread.
///
/// nghttp2 keeps pointers into `bytes` and `pairs` (NO_COPY) until a stream's HEADERS are packed,
/// so a job is freed only when none of its streams is left, even if the caller was resumed long
/// before.
struct BatchJob {
  typealias Pointer = UnsafeMutablePointer<BatchJob>

  /// The position of a field set's pairs: pseudo-header fields, the set's fields, room for extras.
  struct PairRun {
    var first: Int
    var fixedCount: Int
  }

  /// `:path` is the fourth of every run.
  private static let pathIndex = 3

  let pending: Unmanaged<PendingBatch>
  let bytes: UnsafeMutablePointer<UInt8>
  let requests: UnsafeMutablePointer<HTTP2RequestBatch.Request>
  let extras: UnsafeMutablePointer<HTTP2RequestBatch.ExtraField>
  let names: UnsafeMutablePointer<HTTP2RequestBatch.Name>
  let pairs: UnsafeMutablePointer<nghttp2_nv>
  let runs: UnsafeMutablePointer<PairRun>
  let replies: UnsafeMutablePointer<HTTP2Reply>
  let wanted: [[UInt8]]
  let keepsSuccessBodies: Bool
  let count: Int
  var headerValues: [HTTP2ByteRange]
  var replyBytes: [UInt8] = []
  /// The first request without a stream.
  var next = 0
  /// Time at which requests without a stream fail; never, once they have.
  var deadline: UInt64
  /// Requests without a reply or failure.
  var remaining: Int
  /// Number of its streams that nghttp2 still knows.
  var openStreams = 0

  /// Maximum number of reply bytes kept for one batch; beyond it, bodies and headers are dropped.
  private static let maxReplyBytes = 256 << 20

  static func make(_ pending: PendingBatch, deadline: UInt64) -> Pointer {
    let job = Pointer.allocate(capacity: 1)
    job.initialize(to: BatchJob(pending, deadline: deadline))
    return job
  }

  private init(_ pending: PendingBatch, deadline: UInt64) {
    let batch = pending.batch
    self.deadline = deadline
    self.pending = .passRetained(pending)
    bytes = Self.copy(batch.bytes)
    requests = Self.copy(batch.requests)
    extras = Self.copy(batch.extras)
    names = Self.copy(batch.names)
    count = batch.requests.count
    remaining = count
    replies = .allocate(capacity: count)
    replies.initialize(repeating: HTTP2Reply(), count: count)
    wanted = batch.replyHeaders.map { Array($0.utf8) }
    headerValues = Array(repeating: .empty, count: wanted.count * count)
    keepsSuccessBodies = batch.keepsSuccessBodies
    (pairs, runs) = Self.preparePairs(batch, bytes)
  }

  /// Frees a job that no stream refers to any more.
  static func destroy(_ job: Pointer) {
    job.pointee.pending.release()
    job.pointee.bytes.deallocate()
    job.pointee.requests.deallocate()
    job.pointee.extras.deallocate()
    job.pointee.names.deallocate()
    job.pointee.pairs.deallocate()
    job.pointee.runs.deallocate()
    job.pointee.replies.deallocate()
    job.deinitialize(count: 1)
    job.deallocate()
  }

  private static func copy<T>(_ array: [T]) -> UnsafeMutablePointer<T> {
    let memory = UnsafeMutablePointer<T>.allocate(capacity: max(1, array.count))
    array.withUnsafeBufferPointer {
      if let base = $0.baseAddress { memory.initialize(from: base, count: $0.count) }
    }
    return memory
  }

  private static func flags(_ indexing: HTTP2Field.Indexing) -> UInt8 {
    let kept = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
    return UInt8(indexing == .never ? kept | NGHTTP2_NV_FLAG_NO_INDEX.rawValue : kept)
  }

  /// Static, so that their bytes stay where they are.
  private static let pseudoNames: [StaticString] = [":method", ":scheme", ":authority", ":path"]

  private static func preparePairs(
    _ batch: HTTP2RequestBatch, _ bytes: UnsafeMutablePointer<UInt8>
  ) -> (UnsafeMutablePointer<nghttp2_nv>, UnsafeMutablePointer<PairRun>) {
    let total = batch.fieldSets.reduce(0) { $0 + 4 + $1.count + batch.extraCapacity }
    let pairs = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: max(1, total))
    pairs.initialize(repeating: nghttp2_nv(), count: max(1, total))
    let runs = UnsafeMutablePointer<PairRun>.allocate(capacity: max(1, batch.fieldSets.count))
    var first = 0
    for (index, set) in batch.fieldSets.enumerated() {
      var at = first
      for (pseudo, value) in [batch.method, batch.scheme, batch.authority, .empty].enumerated() {
        pairs[at] = nghttp2_nv(
          name: UnsafeMutablePointer(mutating: pseudoNames[pseudo].utf8Start),
          value: bytes + Int(value.offset), namelen: pseudoNames[pseudo].utf8CodeUnitCount,
          valuelen: Int(value.count), flags: flags(pseudo == pathIndex ? .never : .allowed))
        at += 1
      }
      for field in set {
        pairs[at] = nghttp2_nv(
          name: bytes + Int(field.name.offset), value: bytes + Int(field.value.offset),
          namelen: Int(field.name.count), valuelen: Int(field.value.count),
          flags: flags(field.indexing))
        at += 1
      }
      (runs + index).initialize(to: PairRun(first: first, fixedCount: at - first))
      first = at + batch.extraCapacity
    }
    return (pairs, runs)
  }

  /// Sets the pairs that differ between requests. They are valid until the next call.
  @inline(__always)
  func pairs(
    of request: HTTP2RequestBatch.Request
  ) -> (UnsafeMutablePointer<nghttp2_nv>, Int) {
    let run = runs[Int(request.fieldSet)]
    let first = pairs + run.first
    first[Self.pathIndex].value = bytes + Int(request.path.offset)
    first[Self.pathIndex].valuelen = Int(request.path.count)
    for extra in 0..<Int(request.extraCount) {
      let field = extras[Int(request.firstExtra) + extra]
      let name = names[Int(field.name)]
      first[run.fixedCount + extra] = nghttp2_nv(
        name: bytes + Int(name.range.offset), value: bytes + Int(field.value.offset),
        namelen: Int(name.range.count), valuelen: Int(field.value.count),
        flags: Self.flags(name.indexing))
    }
    return (first, run.fixedCount + Int(request.extraCount))
  }

  /// Keeps reply bytes; returns an empty range when the limit is reached.
  mutating func keep(_ new: UnsafeBufferPointer<UInt8>) -> HTTP2ByteRange {
    guard replyBytes.count + new.count <= Self.maxReplyBytes else { return .empty }
    let range = HTTP2ByteRange(offset: UInt32(replyBytes.count), count: UInt32(new.count))
    replyBytes.append(contentsOf: new)
    return range
  }

  /// Keeps the value of a reply header if the caller has requested it.
  mutating func keepIfWanted(
    _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, request: Int
  ) {
    for index in wanted.indices
    where wanted[index].count == name.count && wanted[index].elementsEqual(name) {
      headerValues[request * wanted.count + index] = keep(value)
    }
  }

  /// Fails every request that has no stream yet.
  mutating func failUnsent(_ failure: HTTP2Failure) {
    for index in next..<count { replies[index].failure = failure }
    remaining -= count - next
    next = count
  }

  /// Resumes the caller with its replies.
  mutating func resume(status: HTTP2ConnectionStatus) {
    var result = HTTP2ReplyBatch(
      replies: Array(UnsafeBufferPointer(start: replies, count: count)),
      wantedHeaders: wanted.count)
    result.bytes = replyBytes
    result.headerValues = headerValues
    result.goAway = status.goAway
    result.connectionError = status.error
    pending.takeUnretainedValue().resume(result)
  }
}

/// A batch in progress, shared by the caller and the connection's thread.
///
/// It is in exactly one place at a time: the mailbox (the core's lock) or the thread. The one that
/// removes it from there resumes it.
final class PendingBatch: Sendable {
  let batch: HTTP2RequestBatch
  let isCancelled = Atomic<Bool>(false)
  private let continuation = Mutex<CheckedContinuation<HTTP2ReplyBatch, Never>?>(nil)

  init(_ batch: HTTP2RequestBatch) { self.batch = batch }

  func await(_ waiter: CheckedContinuation<HTTP2ReplyBatch, Never>) {
    continuation.withLock { $0 = waiter }
  }

  /// Resumes the caller with its replies; a second call does nothing.
  func resume(_ replies: HTTP2ReplyBatch) {
    let waiter = continuation.withLock { $0.take() }
    waiter?.resume(returning: replies)
  }

  /// Resumes the caller with the same failure for every request, none of which was sent.
  func fail(_ failure: HTTP2Failure, status: HTTP2ConnectionStatus) {
    var reply = HTTP2Reply()
    reply.failure = failure
    var replies = HTTP2ReplyBatch(
      replies: Array(repeating: reply, count: batch.count),
      wantedHeaders: batch.replyHeaders.count)
    replies.goAway = status.goAway
    replies.connectionError = status.error
    resume(replies)
  }
}
