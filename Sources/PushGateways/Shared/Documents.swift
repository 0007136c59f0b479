import Wire

/// JSON as push services read it: without the liberties that our own reader allows.
enum StrictJSON {
  /// - Returns: `nil` for anything but a JSON object (RFC 8259).
  static func object(_ bytes: [UInt8]) -> JSONValue? {
    guard let value = try? JSONValue.read(bytes), case .object = value else { return nil }
    return value
  }

  /// Appends members to those of a non-empty object.
  /// - Parameter members: Each with a comma before it.
  static func adding(_ members: String, to object: [UInt8]) -> [UInt8] {
    guard !members.isEmpty, let end = object.lastIndex(of: UInt8(ascii: "}")) else { return object }
    return object[..<end] + Array(members.utf8) + object[end...]
  }
}

/// The name of an XML document's root element, found without parsing the document.
struct XMLRoot {
  /// Without its prefix.
  let name: String
  /// The range of the XML declaration, if there is one.
  let declaration: Range<Int>?

  /// - Returns: `nil` when no element begins where one should.
  init?(_ bytes: [UInt8]) {
    let root = bytes.withUnsafeBufferPointer { bytes -> (name: String, declaration: Range<Int>?)? in
      var scanner = XMLScanner(bytes)
      var declaration: Range<Int>?
      while let token = try? scanner.next() {
        switch token {
        case .instruction(let range):
          if declaration == nil, bytes[range].starts(with: "<?xml".utf8) { declaration = range }
        case .startTag(let name):
          let local = bytes[name].split(separator: UInt8(ascii: ":")).last ?? bytes[name]
          return (String(decoding: local, as: UTF8.self), declaration)
        default: break
        }
      }
      return nil
    }
    guard let root else { return nil }
    (name, declaration) = root
  }
}
