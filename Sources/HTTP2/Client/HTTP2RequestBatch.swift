/// Many requests for one connection, laid out so that a request costs its bytes and nothing else:
/// no object, closure, `String` or copy of its own.
///
/// Everything is in one byte buffer and is referred to by ranges. Requests may share a body and a
/// field set. A page of pushes is written like this:
///
///     var batch = HTTP2RequestBatch(authority: "api.push.apple.com")
///     let fields = batch.addFieldSet([HTTP2Field("apns-topic", "com.example.app")])
///     let body = batch.write { $0 += payload }
///     for token in tokens {
///       let path = batch.write { $0 += "/3/device/".utf8; $0 += token }
///       batch.addRequest(path: path, fields: fields, body: body)
///     }
///     let replies = await connection.send(batch)
package struct HTTP2RequestBatch: Sendable {
  /// Names a set of fields that `addFieldSet` stored in this batch.
  package struct FieldSet: Sendable {
    let index: UInt16
  }

  /// Names a field name that `addFieldName` stored in this batch.
  package struct FieldName: Sendable {
    let index: UInt16
  }

  struct Request {
    var path: HTTP2ByteRange
    var body: HTTP2ByteRange
    var firstExtra: UInt32
    var extraCount: UInt16
    var fieldSet: UInt16
  }

  struct ExtraField {
    var value: HTTP2ByteRange
    var name: UInt16
  }

  struct Name {
    var range: HTTP2ByteRange
    var indexing: HTTP2Field.Indexing
  }

  struct FixedField {
    var name: HTTP2ByteRange
    var value: HTTP2ByteRange
    var indexing: HTTP2Field.Indexing
  }

  private(set) var bytes: [UInt8] = []
  private(set) var requests: [Request] = []
  private(set) var extras: [ExtraField] = []
  private(set) var names: [Name] = []
  private(set) var fieldSets: [[FixedField]] = []
  /// Maximum number of extra fields of any request in the batch.
  private(set) var extraCapacity = 0
  let method: HTTP2ByteRange
  let scheme: HTTP2ByteRange
  let authority: HTTP2ByteRange

  /// Lower-case names of reply headers whose values the caller wants; keep the list short, because
  /// every reply header is compared with it. At most 16.
  package let replyHeaders: [String]
  /// Whether the bodies of 2xx replies are kept; those of other replies always are.
  package let keepsSuccessBodies: Bool

  /// - Parameter authority: Host, and port unless it is 443, as `:authority`.
  package init(
    method: String = "POST", scheme: String = "https", authority: String,
    replyHeaders: [String] = [], keepsSuccessBodies: Bool = false
  ) {
    func place(_ text: String, _ bytes: inout [UInt8]) -> HTTP2ByteRange {
      let start = bytes.count
      bytes += text.utf8
      return HTTP2ByteRange(offset: UInt32(start), count: UInt32(bytes.count - start))
    }
    var bytes: [UInt8] = []
    self.method = place(method, &bytes)
    self.scheme = place(scheme, &bytes)
    self.authority = place(authority, &bytes)
    self.bytes = bytes
    self.replyHeaders = Array(replyHeaders.prefix(16))
    self.keepsSuccessBodies = keepsSuccessBodies
  }

  /// Number of requests in the batch.
  package var count: Int { requests.count }

  /// Reserves capacity, so that appending does not move the buffer.
  package mutating func reserve(requests: Int, bytes: Int) {
    self.requests.reserveCapacity(requests)
    self.bytes.reserveCapacity(self.bytes.count + bytes)
  }

  /// Appends to the buffer and returns the range of the new bytes.
  ///
  /// - Parameter body: May only append.
  package mutating func write(_ body: (inout [UInt8]) -> Void) -> HTTP2ByteRange {
    let start = bytes.count
    body(&bytes)
    return HTTP2ByteRange(offset: UInt32(start), count: UInt32(bytes.count - start))
  }

  /// Appends text to the buffer and returns its range.
  package mutating func write(_ text: String) -> HTTP2ByteRange {
    write { $0 += text.utf8 }
  }

  /// Stores fields that many requests share. Pseudo-header fields are added by the batch itself.
  package mutating func addFieldSet(_ fields: [HTTP2Field]) -> FieldSet {
    let fixed = fields.map {
      FixedField(name: write($0.name), value: write($0.value), indexing: $0.indexing)
    }
    fieldSets.append(fixed)
    return FieldSet(index: UInt16(fieldSets.count - 1))
  }

  /// Stores the name of a field whose value differs from request to request, such as `apns-id`.
  package mutating func addFieldName(
    _ name: String, indexing: HTTP2Field.Indexing = .never
  ) -> FieldName {
    names.append(Name(range: write(name), indexing: indexing))
    return FieldName(index: UInt16(names.count - 1))
  }

  /// Adds a request; its index is `count` before the call, and so is that of its reply.
  ///
  /// - Parameters:
  ///   - path: With the leading slash.
  ///   - body: `.empty` sends no DATA frame.
  package mutating func addRequest(
    path: HTTP2ByteRange, fields: FieldSet, body: HTTP2ByteRange = .empty
  ) {
    precondition(
      Int(fields.index) < fieldSets.count && isInside(path) && isInside(body),
      "a request is made of parts of its own batch")
    requests.append(
      Request(
        path: path, body: body, firstExtra: UInt32(extras.count), extraCount: 0,
        fieldSet: fields.index))
  }

  /// Adds a field to the last request.
  package mutating func addField(_ name: FieldName, value: HTTP2ByteRange) {
    precondition(!requests.isEmpty, "a field needs a request: call addRequest first")
    precondition(
      Int(name.index) < names.count && isInside(value), "a field is made of parts of its own batch")
    extras.append(ExtraField(value: value, name: name.index))
    requests[requests.count - 1].extraCount += 1
    extraCapacity = max(extraCapacity, Int(requests[requests.count - 1].extraCount))
  }
  private func isInside(_ range: HTTP2ByteRange) -> Bool { range.indices.upperBound <= bytes.count }
}

extension HTTP2RequestBatch {
  /// A request as text and bytes, for sending it by other means.
  package struct Plain: Sendable {
    package let path: String
    /// Without the pseudo-header fields.
    package let fields: [(name: String, value: String)]
    package let body: [UInt8]
  }

  /// - Parameter index: From 0 to ``count`` - 1.
  package func plain(_ index: Int) -> Plain {
    let request = requests[index]
    let fixed = fieldSets[Int(request.fieldSet)].map { (text($0.name), text($0.value)) }
    let first = Int(request.firstExtra)
    let added = extras[first..<(first + Int(request.extraCount))].map {
      (text(names[Int($0.name)].range), text($0.value))
    }
    return Plain(
      path: text(request.path), fields: fixed + added, body: Array(bytes[request.body.indices]))
  }

  private func text(_ range: HTTP2ByteRange) -> String {
    String(decoding: bytes[range.indices], as: UTF8.self)
  }
}
