extension String {
  /// Whether the text is a URI with scheme and host and without blanks, as channel and blob
  /// addresses must be (docs/protocol/rest.md, section 3.11).
  package var isAbsoluteURI: Bool {
    guard let mark = firstRange(of: "://") else { return false }
    let scheme = self[..<mark.lowerBound].utf8
    let rest = self[mark.upperBound...]
    guard let first = scheme.first, Self.isLetter(first),
      scheme.allSatisfy({ Self.isLetter($0) || "0123456789+-.".utf8.contains($0) })
    else { return false }
    let authority = rest.prefix { !"/?#".contains($0) }
    let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    guard let start = host.first, start != ":" else { return false }
    return rest.unicodeScalars.allSatisfy {
      $0.value > 0x20 && $0.value != 0x7F && !"<>\"".unicodeScalars.contains($0)
    }
  }

  /// An absolute URI with a non-empty path: a slash is added after a host without a path, as the
  /// original service does with channels (recorded).
  package var withRootPath: String {
    guard let mark = firstRange(of: "://") else { return self }
    let rest = self[mark.upperBound...]
    let authority = rest.prefix { !"/?#".contains($0) }
    guard rest[authority.endIndex...].first != "/" else { return self }
    return String(self[..<authority.endIndex]) + "/" + rest[authority.endIndex...]
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}
