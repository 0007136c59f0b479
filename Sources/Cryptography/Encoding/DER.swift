/// The few shapes of DER (X.690) that are read and written here: definite lengths, one-byte tags.
struct DERReader {
  enum Tag {
    static let integer: UInt8 = 0x02
    static let octetString: UInt8 = 0x04
    static let utf8String: UInt8 = 0x0C
    static let sequence: UInt8 = 0x30
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: some Collection<UInt8>) { rest = ArraySlice(bytes) }

  var isAtEnd: Bool { rest.isEmpty }

  /// The contents of the next element if it has this tag; otherwise `nil`, and nothing is consumed.
  mutating func read(_ tag: UInt8) -> ArraySlice<UInt8>? {
    var ahead = rest
    guard ahead.popFirst() == tag, let first = ahead.popFirst() else { return nil }
    var length = Int(first)
    if first >= 0x80 {
      let digits = Int(first & 0x7F)
      guard (1...3).contains(digits), ahead.count >= digits else { return nil }
      length = ahead.prefix(digits).reduce(0) { $0 << 8 | Int($1) }
      ahead = ahead.dropFirst(digits)
      // Only the shortest form, so that a value has one encoding.
      guard length >= 0x80, digits == 1 || length >> (8 * (digits - 1)) != 0 else { return nil }
    }
    guard ahead.count >= length else { return nil }
    rest = ahead.dropFirst(length)
    return ahead.prefix(length)
  }

  /// One element around contents of less than 16 MiB.
  static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    var length: [UInt8]
    switch count {
    case ..<0x80: length = [UInt8(count)]
    case ..<0x100: length = [0x81, UInt8(count)]
    case ..<0x1_0000: length = [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
    default:
      length = [0x83, UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
    }
    length.insert(tag, at: 0)
    return length + contents
  }
}
