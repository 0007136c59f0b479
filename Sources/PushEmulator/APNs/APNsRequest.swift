import HTTP2

/// A push request as APNs reads it: every field read once, nothing judged yet. Slices share the
/// request's own buffers.
struct APNsRequest: Sendable {
  enum Path: Sendable, Equatable {
    case bad
    case missingToken
    /// Not 64 hex digits.
    case notAToken
    case token(APNsToken)
    /// `/4/broadcasts/apps/<bundle id>`, and those of the channel management address,
    /// `/1/apps/<bundle id>/channels` and `/1/apps/<bundle id>/all-channels`.
    case broadcast(ArraySlice<UInt8>)
    case channels(ArraySlice<UInt8>)
    case allChannels(ArraySlice<UInt8>)
  }

  enum Method: Sendable, Equatable {
    case get, post, delete, other
  }

  /// A header field that has a form.
  enum Field<Value: Sendable & Equatable>: Sendable, Equatable {
    case absent
    case malformed
    case value(Value)

    var value: Value? { if case .value(let value) = self { value } else { nil } }
  }

  var method = Method.other
  var path = Path.bad
  var hasDuplicates = false
  var authorization: ArraySlice<UInt8>?
  var id = Field<APNsMessageID>.absent
  var topic: ArraySlice<UInt8>?
  var pushType = Field<APNsPushType>.absent
  /// Unix seconds.
  var expiration = Field<Int64>.absent
  var priority = Field<UInt8>.absent
  var collapseID: ArraySlice<UInt8>?
  /// For requests about channels: the channel, and the field that replaces `apns-id`.
  var channelID: ArraySlice<UInt8>?
  var requestID = Field<APNsMessageID>.absent
  var body: [UInt8] = []
  /// The body was over the limit of the listener, which discarded it.
  var bodyIsOversized = false
  /// The header block was over the limit; fields are missing.
  var headIsOversized = false

  init() {}

  init(_ request: HTTP2ServerRequest) {
    body = request.body
    bodyIsOversized = request.excess == .body
    headIsOversized = request.excess == .header
    if let method = request.pseudoFields.firstBytes(":method") { self.method = Method(method) }
    if let path = request.pseudoFields.firstBytes(":path") { read(path: path) }
    var others: [ArraySlice<UInt8>] = []
    for index in 0..<request.fields.count {
      let name = request.fields.name(at: index)
      guard name.first == UInt8(ascii: "a") else { continue }
      read(name: name, value: request.fields.value(at: index), others: &others)
    }
  }

  /// `/3/device/<something>`, or one of the paths of channels; no query, no further segment.
  mutating func read(path bytes: ArraySlice<UInt8>) {
    let prefix = "/3/device".utf8
    guard bytes.starts(with: prefix) else {
      path = Self.channelPath(bytes)
      return
    }
    let rest = bytes.dropFirst(prefix.count)
    guard let slash = rest.first else {
      path = .missingToken
      return
    }
    guard slash == UInt8(ascii: "/") else {
      path = .bad
      return
    }
    let token = rest.dropFirst()
    if token.isEmpty {
      path = .missingToken
      return
    }
    if token.contains(UInt8(ascii: "/")) {
      path = .bad
      return
    }
    path = APNsToken(token).map(Path.token) ?? .notAToken
  }

  private static func channelPath(_ bytes: ArraySlice<UInt8>) -> Path {
    let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0].isEmpty else { return .bad }
    func isWord(_ index: Int, _ word: String) -> Bool { parts[index].elementsEqual(word.utf8) }
    if isWord(1, "4"), isWord(2, "broadcasts"), isWord(3, "apps") { return .broadcast(parts[4]) }
    guard isWord(1, "1"), isWord(2, "apps") else { return .bad }
    if isWord(4, "channels") { return .channels(parts[3]) }
    return isWord(4, "all-channels") ? .allChannels(parts[3]) : .bad
  }

  mutating func read(
    name: ArraySlice<UInt8>, value: ArraySlice<UInt8>, others: inout [ArraySlice<UInt8>]
  ) {
    func isName(_ word: StaticString) -> Bool {
      name.count == word.utf8CodeUnitCount
        && name.elementsEqual(
          UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
    if isName("authorization") {
      if authorization != nil { hasDuplicates = true }
      authorization = value
    } else if isName("apns-topic") {
      if topic != nil { hasDuplicates = true }
      topic = value
    } else if isName("apns-id") {
      if id != .absent { hasDuplicates = true }
      id = Field(value.withUnsafeBytes { APNsMessageID($0) })
    } else if isName("apns-push-type") {
      if pushType != .absent { hasDuplicates = true }
      pushType = Field(APNsPushType(value))
    } else if isName("apns-priority") {
      if priority != .absent { hasDuplicates = true }
      priority = Field(Self.priority(value))
    } else if isName("apns-expiration") {
      if expiration != .absent { hasDuplicates = true }
      expiration = Field(DecimalText.read(value))
    } else if isName("apns-collapse-id") {
      if collapseID != nil { hasDuplicates = true }
      collapseID = value
    } else if isName("apns-channel-id") {
      if channelID != nil { hasDuplicates = true }
      channelID = value
    } else if isName("apns-request-id") {
      if requestID != .absent { hasDuplicates = true }
      requestID = Field(value.withUnsafeBytes { APNsMessageID($0) })
    } else if name.starts(with: "apns-".utf8) {
      if others.contains(name) { hasDuplicates = true }
      others.append(name)
    }
  }

  private static func priority(_ bytes: ArraySlice<UInt8>) -> UInt8? {
    switch DecimalText.read(bytes) {
    case 1: 1
    case 5: 5
    case 10: 10
    default: nil
    }
  }
}

extension APNsRequest {
  /// The app of a request about channels.
  var bundleID: ArraySlice<UInt8>? {
    switch path {
    case .broadcast(let bundleID), .channels(let bundleID), .allChannels(let bundleID): bundleID
    case .bad, .missingToken, .notAToken, .token: nil
    }
  }

  var isOfChannels: Bool { bundleID != nil }
}

extension APNsRequest.Field {
  /// The value, or malformed for `nil`.
  init(_ value: Value?) { self = value.map(Self.value) ?? .malformed }
}

extension APNsRequest.Method {
  fileprivate init(_ bytes: ArraySlice<UInt8>) {
    if bytes.elementsEqual("POST".utf8) {
      self = .post
    } else if bytes.elementsEqual("GET".utf8) {
      self = .get
    } else {
      self = bytes.elementsEqual("DELETE".utf8) ? .delete : .other
    }
  }
}
