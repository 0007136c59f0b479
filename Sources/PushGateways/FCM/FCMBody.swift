import HTTP2
import HubCore
import NotificationHubs
import Wire

/// The caller's body, split where the device is inserted: a push costs the bytes of both halves and
/// of its handle, without parsing or writing JSON.
struct FCMBody: Sendable {
  /// Everything up to the opening quotation mark of the device, as the value of `token` and of
  /// `fid`.
  private let tokenHead: [UInt8]
  private let fidHead: [UInt8]
  /// Everything from its closing quotation mark on.
  let tail: [UInt8]

  /// The part before a handle. A Firebase installation id is sent as `fid`: `token`, which also
  /// accepts it for now, is deprecated. The syntax only selects the member and is never a reason to
  /// refuse.
  func head(for handle: ArraySlice<UInt8>) -> [UInt8] {
    Self.isInstallationID(handle) ? fidHead : tokenHead
  }

  /// Whether a handle is a Firebase installation id, and not a token that begins with one.
  static func isInstallationID(_ handle: ArraySlice<UInt8>) -> Bool {
    handle.firebaseInstallationID?.count == handle.count
  }

  /// - Throws: ``PushRefusal`` when FCM cannot accept it for one device.
  init(_ body: [UInt8]) throws(PushRefusal) {
    if let excess = PayloadSize.excess(of: body, for: .fcmv1) {
      throw PushRefusal(
        .invalidNotificationSize,
        "the message has at least \(excess.size) bytes, more than \(excess.limit)")
    }
    var place: Int?
    var isEmpty = true
    var fault: String?
    let isObject = body.withUnsafeBufferPointer { bytes in
      var scanner = JSONScanner(bytes)
      guard (try? scanner.next()) == .objectStart else { return false }
      do throws(SyntaxFault) {
        while let name = try scanner.nextMember() {
          guard try scanner.string(name) == "message" else {
            try scanner.skipValue()
            continue
          }
          guard place == nil, try scanner.next() == .objectStart else {
            fault = "'message' is there twice, or is no object"
            return false
          }
          place = scanner.position
          while let name = try scanner.nextMember() {
            isEmpty = false
            // Escapes are decoded: `t\u006fken` is a target as well.
            if NotificationRequest.fcmTargets.contains(try scanner.string(name)) {
              fault = "'message' has a target of its own"
              return false
            }
            try scanner.skipValue()
          }
        }
        try scanner.finish()
        return true
      } catch {
        return false
      }
    }
    if let fault { throw PushRefusal(.invalidNotificationFormat, fault) }
    guard isObject, String(validating: body, as: UTF8.self) != nil else {
      throw PushRefusal(.invalidNotificationFormat, "the body is not a JSON object")
    }
    guard let place else { throw PushRefusal(.invalidNotificationFormat, "'message' is missing") }
    tokenHead = body[..<place] + Array(#""token":""#.utf8)
    fidHead = body[..<place] + Array(#""fid":""#.utf8)
    tail = Array((isEmpty ? "\"" : "\",").utf8) + body[place...]
  }

  /// Whether a handle has only characters that FCM's handles have; stricter checks are up to FCM.
  /// Nothing in it needs escaping.
  static func isToken(_ handle: ArraySlice<UInt8>) -> Bool {
    (1...4096).contains(handle.count)
      && handle.allSatisfy {
        (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
      }
  }
}

extension PushOutbox<FCMBody> {
  init(fcm batch: PushBatch) {
    self.init(
      batch, prepare: { body throws(PushRefusal) in try FCMBody(body.bytes) },
      check: { handle in
        FCMBody.isToken(handle)
          ? nil : PushRefusal(.badChannel, "the handle is no registration token")
      })
  }

  /// Writes requests for the wire, in the order of `indices`.
  func requests(
    _ indices: ArraySlice<Int>, to origin: Origin, path: String, token: AccessToken
  ) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(authority: origin.authority, replyHeaders: ["retry-after"])
    let path = wire.write(path)
    // Google's tokens are a kilobyte long: kept in the connection's header table, which serves this
    // credential alone, they are transmitted once.
    let fields = wire.addFieldSet([
      HTTP2Field("authorization", "Bearer " + token.text),
      HTTP2Field("content-type", "application/json; charset=UTF-8"),
      HTTP2Field("accept", "application/json"),
    ])
    var size = 0
    for index in indices {
      if let message = message(index) {
        let handle = handle(index)
        size += message.head(for: handle).count + handle.count + message.tail.count
      }
    }
    wire.reserve(requests: indices.count, bytes: size)
    for index in indices {
      guard let message = message(index) else { continue }
      let body = wire.write {
        let handle = handle(index)
        $0 += message.head(for: handle)
        $0 += handle
        $0 += message.tail
      }
      wire.addRequest(path: path, fields: fields, body: body)
    }
    return wire
  }
}
