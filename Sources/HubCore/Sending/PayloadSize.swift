package import NotificationHubs

/// How large a payload the push services take (spec `rest-api.md` section 9).
package enum PayloadSize {
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
    let size: Int
    let limit: Int
    switch platform {
    case .apns: (size, limit) = (body.count, isVoIP(headers) ? 5120 : 4096)
    case .wns: (size, limit) = (body.count, 5000)
    case .browser: (size, limit) = (body.count, 3993)
    case .fcmv1: (size, limit) = (body.count > 4096 ? messageSize(body) : body.count, 4096)
    case .adm: (size, limit) = (body.count, 6144)
    case .baidu: (size, limit) = (body.count, 4096)
    case .mpns: (size, limit) = (body.count, 3072)
    case .gcm, .xiaomi: return nil
    }
    return size > limit ? (size, limit) : nil
  }

  private static func isVoIP(_ headers: [String: String]) -> Bool {
    headers["apns-push-type"] == "voip" || headers["apns-topic"]?.hasSuffix(".voip") ?? false
  }

  /// The names and texts inside `data` and `notification` of an FCM message: whatever Google counts,
  /// it counts these.
  private static func messageSize(_ json: [UInt8]) -> Int {
    var scanner = JSONScanner(json)
    // Of the members that we are in, the outer two.
    var names = ["", ""]
    var depth = 0
    var total = 0
    while let token = try? scanner.next(), token != .end {
      switch token {
      case .key(let range) where depth <= 2:
        names[depth - 1] = String(decoding: JSONScanner.unescaped(json[range]), as: UTF8.self)
      case .key(let range), .string(let range):
        if depth >= 3, names == ["message", "data"] || names == ["message", "notification"] {
          total += JSONScanner.unescaped(json[range]).count
        }
      case .objectStart, .arrayStart: depth += 1
      case .objectEnd, .arrayEnd: depth -= 1
      case .scalar, .null, .end: break
      }
    }
    return total
  }
}
