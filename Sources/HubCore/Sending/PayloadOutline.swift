import Wire

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
