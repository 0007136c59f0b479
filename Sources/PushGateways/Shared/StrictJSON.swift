import Wire

/// JSON as push services read it: without the liberties that our own reader allows.
enum StrictJSON {
  /// - Returns: `nil` for what is no JSON object (RFC 8259).
  static func object(_ bytes: [UInt8]) -> JSONValue? {
    guard let value = try? JSONValue.read(bytes), case .object = value else { return nil }
    return value
  }

  /// Puts members behind those of an object that has some.
  /// - Parameter members: Each with a comma before it.
  static func adding(_ members: String, to object: [UInt8]) -> [UInt8] {
    guard !members.isEmpty, let end = object.lastIndex(of: UInt8(ascii: "}")) else { return object }
    return object[..<end] + Array(members.utf8) + object[end...]
  }
}
