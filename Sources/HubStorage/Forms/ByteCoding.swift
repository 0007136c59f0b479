import HubCore
import Wire

/// Lays values out as bytes for a column: numbers as variable-length integers, texts with their
/// length in front. ``ByteReader`` reads them back.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  /// - Parameter capacity: The number of bytes that are expected.
  init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  /// Writes bytes as they are.
  mutating func append(_ bytes: some Collection<UInt8>) { self.bytes.append(contentsOf: bytes) }

  mutating func write(_ byte: UInt8) { bytes.append(byte) }

  mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// Writes seven bits a byte, the lowest first.
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
    // In one piece: the bytes of a text one by one take several times as long.
    text.utf8.withBytes { bytes.append(contentsOf: $0) }
  }

  /// Writes a presence byte, then the value.
  mutating func write(_ text: String?) {
    write(text != nil)
    if let text { write(text) }
  }

  /// Writes the entries in the order of their keys, so that equal dictionaries give equal bytes.
  mutating func write(_ words: [String: String]) {
    write(UInt64(words.count))
    words.forEachInKeyOrder { key, value in
      write(key)
      write(value)
    }
  }
}

/// Reads what ``ByteWriter`` wrote. Damaged bytes throw; they never trap.
struct ByteReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { position == bytes.count }

  private static let damaged = StoreError.corrupt("a stored value cannot be read")

  mutating func byte() throws(StoreError) -> UInt8 {
    guard position < bytes.count else { throw Self.damaged }
    position += 1
    return bytes[position - 1]
  }

  mutating func flag() throws(StoreError) -> Bool { try byte() != 0 }

  mutating func number() throws(StoreError) -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      let byte = try byte()
      number |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return number }
    }
    throw Self.damaged
  }

  mutating func signedNumber() throws(StoreError) -> Int64 { Int64(bitPattern: try number()) }

  /// Reads a number of elements that follow, each at least a byte long.
  mutating func count() throws(StoreError) -> Int {
    let count = try number()
    guard count <= UInt64(bytes.count - position) else { throw Self.damaged }
    return Int(count)
  }

  mutating func text() throws(StoreError) -> String {
    let count = try count()
    defer { position += count }
    return String(decoding: bytes[position..<position + count], as: UTF8.self)
  }

  mutating func optionalText() throws(StoreError) -> String? { try flag() ? try text() : nil }

  mutating func words() throws(StoreError) -> [String: String] {
    let count = try count()
    var words: [String: String] = Dictionary(minimumCapacity: count)
    for _ in 0..<count {
      let key = try text()
      words[key] = try text()
    }
    return words
  }
}

/// A 64-bit hash that is the same in every process and on every machine, unlike `Hasher`.
///
/// FNV-1a with a final mix. It only narrows a search: matches must be compared in full, because other
/// contents with the same hash are easily found.
/// - SeeAlso: <http://www.isthe.com/chongo/tech/comp/fnv/>
struct StableHash {
  private var state: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func combine(_ byte: UInt8) {
    state = (state ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  mutating func combine(_ number: Int64) {
    withUnsafeBytes(of: number.littleEndian) { for byte in $0 { combine(byte) } }
  }

  mutating func combine(_ bytes: some Collection<UInt8>) {
    bytes.withBytes { for byte in $0 { combine(byte) } }
  }

  /// The hash as stored in a column.
  var value: Int64 {
    var mixed = state
    mixed = (mixed ^ (mixed >> 33)) &* 0xff51_afd7_ed55_8ccd
    mixed = (mixed ^ (mixed >> 33)) &* 0xc4ce_b9fe_1a85_ec53
    return Int64(bitPattern: mixed ^ (mixed >> 33))
  }
}
