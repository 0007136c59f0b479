/// One request of a server session and the answer to it; reused for later streams. For one thread.
final class ServerStream {
  /// The place in the session's table; the stream's user data is one more.
  let position: Int
  var id: Int32 = 0
  var isLive = false
  var pseudoFields = HTTP2FieldList()
  var fields = HTTP2FieldList()
  var body: [UInt8] = []
  /// Bytes of the body that its session counts; see `ServerSession.release(_:)`.
  var held = 0
  /// Whose the body is; `nil` is a stranger's.
  var sender: String?
  var headerBytes = 0
  var excess: HTTP2ServerRequest.Excess?
  /// The handler knows of the stream and hears when it ends.
  var isShown = false
  /// The handler has the request, or has answered without.
  var isDelivered = false
  var isAnswered = false
  /// The client has sent all of the request.
  var isComplete = false
  /// The reply has gone whole.
  var isReplied = false
  /// Bytes of the body that were thrown away.
  var discarded = 0
  /// The server wanted the stream reset: the client is not to blame.
  var isResetByUs = false
  /// When the request must be complete or, once there is one, the reply must have been read.
  var deadline = UInt64.max
  var reply: [UInt8] = []
  /// Gives the reply in place of `reply`.
  var source: (any HTTP2BodySource)?
  var replyNext = 0
  /// Where a truncation fault cuts the reply.
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
