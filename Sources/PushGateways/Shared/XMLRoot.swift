import Wire

/// The name of an XML document's root element, found without reading the document.
struct XMLRoot {
  /// Without its prefix.
  let name: String
  /// Where the XML declaration stands, if there is one.
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
