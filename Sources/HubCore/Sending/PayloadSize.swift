package import NotificationHubs

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

/// The upper two levels of a JSON object: enough to tell what kind of payload it is, without
/// decoding what a push service will read byte for byte.
struct PayloadOutline {
  /// The names of its members.
  private(set) var names: Set<String> = []
  /// Of each member that is an object itself, the names of its members; those of a member that
  /// comes more than once are taken together.
  private(set) var objects: [String: Set<String>] = [:]

  /// - Returns: `nil` for what is no JSON object (RFC 8259, read strictly).
  init?(_ json: [UInt8]) {
    var scanner = JSONScanner(json)
    guard (try? scanner.next()) == .objectStart else { return nil }
    var depth = 1
    var member = ""
    while let token = try? scanner.next() {
      switch token {
      case .key(let range) where depth == 1:
        member = String(decoding: JSONScanner.unescaped(json[range]), as: UTF8.self)
        names.insert(member)
      case .key(let range) where depth == 2:
        objects[member, default: []].insert(
          String(decoding: JSONScanner.unescaped(json[range]), as: UTF8.self))
      case .objectStart:
        if depth == 1, objects[member] == nil { objects[member] = [] }
        depth += 1
      case .arrayStart: depth += 1
      case .objectEnd, .arrayEnd: depth -= 1
      case .end: return
      case .key, .string, .scalar, .null: break
      }
    }
    return nil
  }
}
