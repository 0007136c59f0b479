/// The name of an XML document's root element, found without reading the document.
struct XMLRoot {
  /// Without its prefix.
  let name: String
  /// Where the XML declaration stands, if there is one.
  let declaration: Range<Int>?

  /// - Returns: `nil` when no element begins where one should.
  init?(_ bytes: [UInt8]) {
    var position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    var declaration: Range<Int>?
    while true {
      while position < bytes.count, Self.isBlank(bytes[position]) { position += 1 }
      let rest = bytes[position...]
      if rest.starts(with: "<?".utf8) {
        guard let end = Self.end(of: "?>", in: rest) else { return nil }
        if rest.starts(with: "<?xml".utf8), declaration == nil { declaration = position..<end }
        position = end
      } else if rest.starts(with: "<!--".utf8) {
        guard let end = Self.end(of: "-->", in: rest.dropFirst(4)) else { return nil }
        position = end
      } else {
        break
      }
    }
    guard position < bytes.count, bytes[position] == UInt8(ascii: "<") else { return nil }
    let name = bytes[(position + 1)...].prefix { byte in
      !Self.isBlank(byte) && byte != UInt8(ascii: ">") && byte != UInt8(ascii: "/")
    }
    guard !name.isEmpty, name.first != UInt8(ascii: "!"), name.count < 100 else { return nil }
    let local = name.split(separator: UInt8(ascii: ":")).last ?? name
    self.name = String(decoding: local, as: UTF8.self)
    self.declaration = declaration
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  private static func end(of mark: String, in bytes: ArraySlice<UInt8>) -> Int? {
    bytes.firstRange(of: Array(mark.utf8))?.upperBound
  }
}
