package import NotificationHubs
import Wire

/// The push services' limits on payloads (docs/protocol/rest.md, section 9).
package enum PayloadSize {
  /// Maximum payload in bytes that the push service accepts, as far as it is documented
  /// (docs/protocol/push-services); `nil` where it is not. The gateways and the services themselves
  /// have the last word.
  ///
  /// - Parameter headers: For the push service, names in lower case.
  package static func limit(
    for platform: PushPlatform, headers: [String: String] = [:]
  ) -> Int? {
    let usual = platform.traits.payloadLimit
    return platform == .apns ? pushType(headers)?.payloadLimit ?? usual : usual
  }

  /// The size of a payload that is certainly too large for its push service, and the limit, in
  /// bytes.
  ///
  /// If the service has its own way of counting, this is the minimum that it can count; near the
  /// limit the service decides.
  ///
  /// - Parameter headers: For the push service, names in lower case.
  /// - Returns: `nil` when the payload fits, or may fit.
  package static func excess(
    of body: [UInt8], for platform: PushPlatform, headers: [String: String] = [:]
  ) -> (size: Int, limit: Int)? {
    guard let limit = limit(for: platform, headers: headers), body.count > limit else { return nil }
    let size = platform == .fcmv1 ? messageSize(body) : body.count
    return size > limit ? (size, limit) : nil
  }

  /// The push type that Apple infers: from the header or, if it is missing, from the topic. The
  /// older form of the headers is also considered.
  private static func pushType(_ headers: [String: String]) -> APNsPayload.PushType? {
    func given(_ name: String) -> String? { headers[name] ?? headers["x-" + name] }
    if let type = given("apns-push-type") { return APNsPayload.PushType(rawValue: type) }
    return given("apns-topic").flatMap { APNsPayload.PushType(topic: $0) }
  }

  /// The size of names and texts inside `data` and `notification` of an FCM message: however Google
  /// counts, these are included.
  private static func messageSize(_ json: [UInt8]) -> Int {
    json.withUnsafeBufferPointer { bytes in
      var scanner = JSONScanner(bytes)
      return messageSize(&scanner)
    }
  }

  private static func messageSize(_ scanner: inout JSONScanner) -> Int {
    // The outer two of the members on the path.
    var names = ["", ""]
    var total = 0
    while let token = try? scanner.next(), token != .end {
      switch token {
      case .key(let text) where scanner.depth <= 2:
        names[scanner.depth - 1] = String(decoding: scanner.unescaped(text), as: UTF8.self)
      case .key(let text), .string(let text):
        if scanner.depth >= 3,
          names == ["message", "data"] || names == ["message", "notification"]
        {
          total += scanner.unescaped(text).count
        }
      default: break
      }
    }
    return total
  }
}

/// The upper two levels of a JSON object: enough to determine the kind of payload, without decoding
/// what a push service will read byte for byte.
struct PayloadOutline {
  /// The names of its members.
  private(set) var names: Set<String> = []
  /// For each member that is an object, the names of its members; those of a repeated member are
  /// merged.
  private(set) var objects: [String: Set<String>] = [:]

  /// - Returns: `nil` for anything but a JSON object (RFC 8259, parsed strictly).
  init?(_ json: [UInt8]) {
    let isWhole = json.withUnsafeBufferPointer { bytes in
      var scanner = JSONScanner(bytes)
      return (try? read(&scanner)) ?? false
    }
    guard isWhole else { return nil }
  }

  private mutating func read(_ scanner: inout JSONScanner) throws(SyntaxFault) -> Bool {
    guard try scanner.next() == .objectStart else { return false }
    var member = ""
    while true {
      switch try scanner.next() {
      case .key(let text) where scanner.depth == 1:
        member = String(decoding: scanner.unescaped(text), as: UTF8.self)
        names.insert(member)
      case .key(let text) where scanner.depth == 2:
        objects[member, default: []].insert(
          String(decoding: scanner.unescaped(text), as: UTF8.self))
      case .objectStart where scanner.depth == 2:
        if objects[member] == nil { objects[member] = [] }
      case .end: return true
      default: break
      }
    }
  }
}
