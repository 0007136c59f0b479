/// A 64-bit hash that is the same in every process and on every machine, unlike `Hasher`.
///
/// FNV-1a with a final mix. It only narrows a search: anyone who looks something up by it compares
/// the thing itself.
/// - SeeAlso: <http://www.isthe.com/chongo/tech/comp/fnv/>
struct StableHash {
  private var state: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func combine(_ byte: UInt8) {
    state = (state ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  mutating func combine(_ number: Int64) {
    withUnsafeBytes(of: number.littleEndian) { for byte in $0 { combine(byte) } }
  }

  mutating func combine(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { combine(byte) }
  }

  /// The hash as a column holds it.
  var value: Int64 {
    var mixed = state
    mixed = (mixed ^ (mixed >> 33)) &* 0xff51_afd7_ed55_8ccd
    mixed = (mixed ^ (mixed >> 33)) &* 0xc4ce_b9fe_1a85_ec53
    return Int64(bitPattern: mixed ^ (mixed >> 33))
  }
}
