/// One request of a server session and its reply; reused for later streams. For one thread.
final class ServerStream {
  /// The index in the session's table; the stream's user data is one more.
  let position: Int
  var id: Int32 = 0
  var isLive = false
  var pseudoFields = HTTP2FieldList()
  var fields = HTTP2FieldList()
  var body: [UInt8] = []
  /// Bytes of the body that its session counts; see `ServerSession.release(_:)`.
  var held = 0
  /// The sender of the body; `nil` for an unauthenticated one.
  var sender: String?
  var headerBytes = 0
  var excess: HTTP2ServerRequest.Excess?
  /// Whether the handler knows the stream and is notified when it ends.
  var isShown = false
  /// Whether the handler has the request, or has replied without it.
  var isDelivered = false
  var isAnswered = false
  /// Whether the client has sent all of the request.
  var isComplete = false
  /// Whether the complete reply was sent.
  var isReplied = false
  /// Number of discarded bytes of the body.
  var discarded = 0
  /// Whether the server wanted the stream reset: the client is not to blame.
  var isResetByUs = false
  /// The time by which the request must be complete or, once it is, the reply must have been read.
  var deadline = UInt64.max
  var reply: [UInt8] = []
  /// The source of a streamed reply, in place of `reply`.
  var source: (any HTTP2BodySource)?
  var replyNext = 0
  /// The position at which a truncation fault cuts the reply.
  var replyCut: Int?

  init(position: Int) { self.position = position }

  func begin(_ id: Int32, deadline: UInt64) {
    self.id = id
    self.deadline = deadline
    isResetByUs = false
    isLive = true
    pseudoFields.removeAll()
    fields.removeAll()
    body.removeAll(keepingCapacity: true)
    held = 0
    sender = nil
    headerBytes = 0
    excess = nil
    isShown = false
    isDelivered = false
    isAnswered = false
    isComplete = false
    isReplied = false
    discarded = 0
    replyNext = 0
    replyCut = nil
  }

  func end() {
    isLive = false
    reply = []
    source = nil
    if body.capacity > 4096 { body = [] }
    if fields.bytes.capacity > 4096 { fields = HTTP2FieldList() }
    if pseudoFields.bytes.capacity > 4096 { pseudoFields = HTTP2FieldList() }
  }

  var request: HTTP2ServerRequest {
    HTTP2ServerRequest(
      stream: id, pseudoFields: pseudoFields, fields: fields, body: body, excess: excess)
  }
}
