import Wire

/// The hub's source of randomness, passed in wherever a ``HubClock`` is; tests pass their own.
package struct HubRandom: RandomNumberGenerator, Sendable {
  private let bits: @Sendable () -> UInt64

  /// - Parameter bits: 64 random bits at each call; keys of access policies are made of them.
  package init(_ bits: @escaping @Sendable () -> UInt64) { self.bits = bits }

  /// The operating system's generator, which is suitable for keys.
  package static let system = HubRandom {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }

  package func next() -> UInt64 { bits() }

  /// A uniform number from 0 up to but not including 1.
  package func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

  package func number<Value: FixedWidthInteger>(in range: ClosedRange<Value>) -> Value {
    var generator = self
    return .random(in: range, using: &generator)
  }

  /// - Parameter count: Number of bytes, from 0.
  package func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count {
      withUnsafeBytes(of: next()) { bytes += $0.prefix(count - bytes.count) }
    }
    return bytes
  }

  /// A UUID of version 4, in lower case.
  package func uuid() -> String {
    var bytes = bytes(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = Hex.encode(bytes)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append("-") }
      text.append(digit)
    }
    return text
  }
}
