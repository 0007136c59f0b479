/// A stream of draws that one number decides (splitmix64).
package struct RandomStream: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(_ seed: UInt64) { state = seed }

  /// A stream of its own for each set of keys: leaving one out shifts no other.
  package init(_ seed: UInt64, _ keys: UInt64...) {
    state = seed
    for key in keys {
      state ^= key &* 0xD6E8_FEB8_6659_FD93
      state = next()
    }
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// 0 up to a limit, which is above 0.
  package mutating func below(_ limit: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(limit)).high)
  }

  /// Both ends included.
  package mutating func between(_ low: Int, _ high: Int) -> Int { low + below(high - low + 1) }

  /// 0 up to 1.
  package mutating func unit() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }

  package mutating func between(_ low: Double, _ high: Double) -> Double {
    low + unit() * (high - low)
  }

  /// True in one of so many draws.
  package mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

  package mutating func pick<Value>(_ values: [Value]) -> Value { values[below(values.count)] }

  /// By weights that need not add up to anything.
  package mutating func pick<Value>(_ values: [(Value, Double)]) -> Value {
    var left = unit() * values.reduce(0) { $0 + $1.1 }
    for (value, weight) in values {
      left -= weight
      if left < 0 { return value }
    }
    return values[values.count - 1].0
  }
}

extension UInt64 {
  /// Key of a stream of ``RandomStream`` for a name: the same in each process, as a hash value is not.
  package init(keyOf name: String) {
    self = name.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}
