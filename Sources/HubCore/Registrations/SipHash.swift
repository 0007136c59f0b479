/// SipHash-2-4: a short keyed hash that cannot be predicted without its key.
/// - SeeAlso: <https://www.aumasson.jp/siphash/siphash.pdf>
package struct SipHash: Sendable {
  private var (v0, v1, v2, v3): (UInt64, UInt64, UInt64, UInt64)
  private var length: UInt64 = 0

  package init(key: (UInt64, UInt64)) {
    v0 = key.0 ^ 0x736f_6d65_7073_6575
    v1 = key.1 ^ 0x646f_7261_6e64_6f6d
    v2 = key.0 ^ 0x6c79_6765_6e65_7261
    v3 = key.1 ^ 0x7465_6462_7974_6573
  }

  package mutating func combine(_ word: UInt64) {
    length += 8
    compress(word)
  }

  /// Combines bytes, the last of all.
  package mutating func finish(with bytes: [UInt8]) -> UInt64 {
    bytes.withUnsafeBytes { bytes in
      let whole = bytes.count & ~7
      for start in stride(from: 0, to: whole, by: 8) {
        combine(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)))
      }
      var rest: UInt64 = 0
      for byte in bytes[whole...].reversed() { rest = rest << 8 | UInt64(byte) }
      length += UInt64(bytes.count - whole)
      return finish(rest: rest)
    }
  }

  package mutating func finish() -> UInt64 { finish(rest: 0) }

  /// - Parameter rest: The last bytes, fewer than eight.
  private mutating func finish(rest: UInt64) -> UInt64 {
    compress(length << 56 | rest)
    v2 ^= 0xff
    for _ in 0..<4 { round() }
    return v0 ^ v1 ^ v2 ^ v3
  }

  private mutating func compress(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  private mutating func round() {
    v0 = v0 &+ v1
    v1 = v1 << 13 | v1 >> 51
    v1 ^= v0
    v0 = v0 << 32 | v0 >> 32
    v2 = v2 &+ v3
    v3 = v3 << 16 | v3 >> 48
    v3 ^= v2
    v0 = v0 &+ v3
    v3 = v3 << 21 | v3 >> 43
    v3 ^= v0
    v2 = v2 &+ v1
    v1 = v1 << 17 | v1 >> 47
    v1 ^= v2
    v2 = v2 << 32 | v2 >> 32
  }
}
