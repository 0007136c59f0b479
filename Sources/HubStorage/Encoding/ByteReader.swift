import HubCore

/// Reads what ``ByteWriter`` wrote. Damaged bytes throw; they never trap.
struct ByteReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

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

  /// A number of things that follow, each at least a byte long.
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
