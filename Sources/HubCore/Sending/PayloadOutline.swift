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
