import Synchronization

/// A batch on the connection's thread: its bytes at a fixed address, and the replies as they arrive.
/// For one thread; freed when each request has its reply or failure.
struct BatchJob {
  typealias Pointer = UnsafeMutablePointer<BatchJob>

  let pending: Unmanaged<PendingBatch>
  let bytes: UnsafeMutablePointer<UInt8>
  let requests: UnsafeMutablePointer<HTTP2RequestBatch.Request>
  let extras: UnsafeMutablePointer<HTTP2RequestBatch.ExtraField>
  /// The names of extra fields, encoded.
  let names: [[UInt8]]
  /// The fields of each field set with the pseudo-header fields, and their block as last encoded.
  let fieldSets: [[FieldEncoder.Field]]
  var blocks: [FieldEncoder.CachedBlock]
  let replies: UnsafeMutablePointer<HTTP2Reply>
  let wanted: [ReplyDecoder.WantedHeader]
  let keepsSuccessBodies: Bool
  /// Whether the replies have the bodies whose length they tell.
  let repliesHaveBodies: Bool
  let count: Int
  var headerValues: [HTTP2ByteRange]
  var replyBytes: [UInt8] = []
  /// The first request without a stream.
  var next = 0
  /// Time at which requests without a stream fail; never, once they have.
  var deadline: UInt64
  /// Requests without a reply or failure.
  var remaining: Int

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
    count = batch.requests.count
    remaining = count
    replies = .allocate(capacity: count)
    replies.initialize(repeating: HTTP2Reply(), count: count)
    wanted = batch.replyHeaders.map(ReplyDecoder.WantedHeader.init)
    headerValues = Array(repeating: .empty, count: wanted.count * count)
    keepsSuccessBodies = batch.keepsSuccessBodies
    repliesHaveBodies = !batch.bytes[batch.method.indices].elementsEqual("HEAD".utf8)
    func text(_ range: HTTP2ByteRange) -> [UInt8] { Array(batch.bytes[range.indices]) }
    let pseudo: [FieldEncoder.Field] = [
      (":method", batch.method), (":scheme", batch.scheme), (":authority", batch.authority),
    ].map { FieldEncoder.Field(name: Array($0.utf8), value: text($1), indexing: .allowed) }
    fieldSets = batch.fieldSets.map { set in
      pseudo
        + set.map {
          FieldEncoder.Field(name: text($0.name), value: text($0.value), indexing: $0.indexing)
        }
    }
    blocks = fieldSets.map { _ in FieldEncoder.CachedBlock() }
    names = batch.names.map { FieldEncoder.literalName(text($0.range), $0.indexing) }
  }

  /// Frees a job that has no open stream.
  static func destroy(_ job: Pointer) {
    job.pointee.pending.release()
    job.pointee.bytes.deallocate()
    job.pointee.requests.deallocate()
    job.pointee.extras.deallocate()
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

  /// The most bytes that the header block of a request has.
  @inline(__always)
  func mostBlockBytes(of request: HTTP2RequestBatch.Request) -> Int {
    var count =
      blocks[Int(request.fieldSet)].bytes.count + Int(request.path.count)
      + ClientSession.pathName.count + FieldEncoder.mostLengthBytes
    for extra in 0..<Int(request.extraCount) {
      let field = extras[Int(request.firstExtra) + extra]
      count +=
        names[Int(field.name)].count + Int(field.value.count) + FieldEncoder.mostLengthBytes
    }
    return count
  }

  /// Keeps reply bytes; returns an empty range when the limit is reached.
  mutating func keep(_ new: UnsafeBufferPointer<UInt8>) -> HTTP2ByteRange {
    guard replyBytes.count + new.count <= Self.maxReplyBytes else { return .empty }
    let range = HTTP2ByteRange(offset: UInt32(replyBytes.count), count: UInt32(new.count))
    replyBytes.append(contentsOf: new)
    return range
  }

  /// Keeps the value of a wanted reply header.
  mutating func keep(_ value: UnsafeBufferPointer<UInt8>, ofHeader header: Int, request: Int) {
    headerValues[request * wanted.count + header] = keep(value)
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
