/// A dictionary of numbers by number, none of them `Int64.min`. A look-up costs a fraction of that in a
/// `Dictionary`, which counts where the writing thread makes several for each device.
///
/// Open addressing with linear probing. The hash is a multiplication by a random number, so that
/// nobody can choose keys that collide.
struct NumberTable {
  private struct Slot {
    var key: Int64
    /// ``free`` in a free slot.
    var number: Int64

    static let free = Int64.min
    var isFree: Bool { number == Self.free }
  }

  private static let factor = UInt64.random(in: .min ... .max) | 1
  private static let minimumCapacity = 8

  /// None, or a power of two; at most two thirds are taken.
  private var slots: [Slot] = []
  private var shift: UInt64 = 64
  private(set) var count = 0

  subscript(key: Int64) -> Int64? {
    guard count > 0, case let slot = slots[place(of: key)], !slot.isFree else { return nil }
    return slot.number
  }

  mutating func set(_ key: Int64, to number: Int64) {
    assert(number != Slot.free)
    if (count + 1) * 3 > slots.count * 2 { grow() }
    let place = place(of: key)
    if slots[place].isFree { count += 1 }
    slots[place] = Slot(key: key, number: number)
  }

  mutating func remove(_ key: Int64) {
    guard count > 0 else { return }
    var free = place(of: key)
    guard !slots[free].isFree else { return }
    // Those behind it that could be nearer to their first place move up.
    var next = free
    while true {
      next = (next + 1) & (slots.count - 1)
      guard !slots[next].isFree else { break }
      let distance = (next - home(of: slots[next].key)) & (slots.count - 1)
      guard distance >= (next - free) & (slots.count - 1) else { continue }
      slots[free] = slots[next]
      free = next
    }
    slots[free].number = Slot.free
    count -= 1
  }

  func visit(_ body: (_ key: Int64, _ number: Int64) -> Void) {
    for slot in slots where !slot.isFree { body(slot.key, slot.number) }
  }

  private func home(of key: Int64) -> Int {
    Int(truncatingIfNeeded: (UInt64(bitPattern: key) &* Self.factor) >> shift)
  }

  /// The slot of a key, or the free one in which it would be.
  private func place(of key: Int64) -> Int {
    var place = home(of: key)
    while !slots[place].isFree, slots[place].key != key {
      place = (place + 1) & (slots.count - 1)
    }
    return place
  }

  private mutating func grow() {
    let old = slots
    let capacity = max(Self.minimumCapacity, old.count * 2)
    slots = [Slot](repeating: Slot(key: 0, number: Slot.free), count: capacity)
    shift = UInt64(64 - capacity.trailingZeroBitCount)
    for slot in old where !slot.isFree { slots[place(of: slot.key)] = slot }
  }
}
