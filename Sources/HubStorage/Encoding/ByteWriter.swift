/// Lays values out as bytes for a column: numbers as variable-length integers, texts with their
/// length in front. ``ByteReader`` reads them back.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func write(_ byte: UInt8) { bytes.append(byte) }

  mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// Seven bits a byte, the lowest first.
  mutating func write(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func write(_ number: Int64) { write(UInt64(bitPattern: number)) }

  mutating func write(_ text: String) {
    write(UInt64(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
  }

  /// A presence byte, then the value.
  mutating func write(_ text: String?) {
    write(text != nil)
    if let text { write(text) }
  }

  /// In the order of the keys, so that equal dictionaries give equal bytes.
  mutating func write(_ words: [String: String]) {
    write(UInt64(words.count))
    if words.count == 1, let only = words.first {
      write(only.key)
      write(only.value)
      return
    }
    for (key, value) in words.sorted(by: { $0.key < $1.key }) {
      write(key)
      write(value)
    }
  }
}
