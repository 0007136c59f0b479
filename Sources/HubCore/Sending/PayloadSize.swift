package import NotificationHubs
import Wire

/// How large a payload the push services take (spec `rest-api.md` section 9).
package enum PayloadSize {
  /// The most bytes of payload that the push service takes, as far as its documents say (spec `pns`);
  /// `nil` where they do not. The gateways and the services themselves have the last word.
  ///
  /// - Parameter headers: For the push service, names in lower case.
  package static func limit(
    for platform: PushPlatform, headers: [String: String] = [:]
  ) -> Int? {
    switch platform {
    case .apns: isVoIP(headers) ? 5120 : 4096
    case .wns: 5000
    case .browser: 3993
    case .adm: 6144
    case .fcmv1, .baidu: 4096
    case .mpns: 3072
    case .gcm, .xiaomi: nil
    }
  }

  /// The size of a payload that its push service is sure to refuse for it, and the limit, in bytes.
  ///
  /// Where the service counts in a way of its own this is the least that it can count; near the edge
  /// the service decides.
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

  /// Whether Apple gives the push the room of a call: its kind says so or, where none is given, its
  /// topic. In the older form of the headers, too.
  private static func isVoIP(_ headers: [String: String]) -> Bool {
    func given(_ name: String) -> String? { headers[name] ?? headers["x-" + name] }
    if let type = given("apns-push-type") { return type == "voip" }
    return given("apns-topic")?.hasSuffix(".voip") ?? false
  }

  /// The names and texts inside `data` and `notification` of an FCM message: whatever Google counts,
  /// it counts these.
  private static func messageSize(_ json: [UInt8]) -> Int {
    json.withUnsafeBufferPointer { bytes in
      var scanner = JSONScanner(bytes)
      return messageSize(&scanner)
    }
  }

  private static func messageSize(_ scanner: inout JSONScanner) -> Int {
    // Of the members that we are in, the outer two.
    var names = ["", ""]
    var total = 0
    while let token = try? scanner.next(), token != .end {
      switch token {
      case .key(let text) where scanner.depth <= 2:
        names[scanner.depth - 1] = String(decoding: scanner.unescaped(text), as: UTF8.self)
      case .key(let text), .string(let text):
        if scanner.depth >= 3, names == ["message", "data"] || names == ["message", "notification"]
        {
          total += scanner.unescaped(text).count
        }
      default: break
      }
    }
    return total
  }
}
