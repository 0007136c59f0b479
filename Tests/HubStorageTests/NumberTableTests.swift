import Testing

@testable import HubStorage

@Suite("A table of numbers")
struct NumberTableTests {
  @Test("has what a dictionary has after the same changes", arguments: 0..<10 as Range<UInt64>)
  func sameAsDictionary(seed: UInt64) {
    var table = NumberTable()
    var wanted: [Int64: Int64] = [:]
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    func roll(_ bound: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % bound
    }
    // Few keys, some of them neighbours or far apart, so that many are set and removed again.
    func key() -> Int64 {
      let number = Int64(roll(400)) - 200
      return roll(2) == 0 ? number : number << 55
    }
    for step in 1...20_000 {
      let key = key()
      // More are added at first, then more removed.
      if roll(20_000) > UInt64(step) || roll(3) == 0 {
        table.set(key, to: Int64(step))
        wanted[key] = Int64(step)
      } else {
        table.remove(key)
        wanted[key] = nil
      }
      let other = self.other(key)
      #expect(table[key] == wanted[key] && table[other] == wanted[other])
    }
    #expect(table.count == wanted.count)
    var found: [Int64: Int64] = [:]
    table.visit { found[$0] = $1 }
    #expect(found == wanted)
    for key in wanted.keys { table.remove(key) }
    #expect(table.count == 0)
    #expect(wanted.keys.allSatisfy { table[$0] == nil })
  }

  private func other(_ key: Int64) -> Int64 { key ^ 1 }
}
