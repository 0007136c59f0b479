/// Slots in the order in which they were added. For one thread.
struct SlotQueue {
  private var slots: [Int32] = []
  private var first = 0

  var isEmpty: Bool { first == slots.count }

  mutating func append(_ slot: Int) { slots.append(Int32(slot)) }

  mutating func popFirst() -> Int? {
    guard first < slots.count else { return nil }
    let slot = Int(slots[first])
    first += 1
    if first == slots.count || first > 1000 {
      slots.removeFirst(first)
      first = 0
    }
    return slot
  }
}

/// The open streams of a client connection in slots of a fixed table, and their order of age.
/// For one thread; `deallocate` frees it.
struct StreamTable {
  struct Slot {
    /// Nil when the slot is free.
    var job: BatchJob.Pointer?
    var openedAt: UInt64 = 0
    var stream: Int32 = 0
    var request: Int32 = 0
    /// The rest of the body, as offsets in the job's bytes.
    var bodyNext: UInt32 = 0
    var bodyEnd: UInt32 = 0
    /// Number of bytes that the peer takes of the body.
    var window = 0
    /// Number of bytes of the reply for which the peer has got no new window yet.
    var received: UInt32 = 0
    /// Neighbours in the order of age; -1 at the ends.
    var older: Int32 = -1
    var younger: Int32 = -1
    /// Number of bytes of the reply's fields so far.
    var headerBytes = 0
    /// The rest of a body whose length the reply has told.
    var contentLeft: Int?
    var status: UInt16 = 0
    /// Whether it stands in the list of bodies that go on.
    var isWaiting = false

    var hasBodyLeft: Bool { bodyNext < bodyEnd }
  }

  let slots: UnsafeMutablePointer<Slot>
  /// Bodies of replies as they arrive, one per slot; reused for their capacity.
  let bodies: UnsafeMutablePointer<[UInt8]>
  let capacity: Int
  private let free: UnsafeMutablePointer<Int32>
  /// The slot of each stream, by the lowest bits of its number.
  private let places: UnsafeMutablePointer<Int32>
  private let placeMask: Int
  /// The slots of streams whose place a younger one has taken: those that stay open for long.
  private var displaced: [Int32: Int32] = [:]
  private(set) var count = 0
  /// The slot whose reply is due first, or -1.
  private(set) var oldest: Int32 = -1
  private var youngest: Int32 = -1

  init(capacity: Int) {
    self.capacity = capacity
    slots = .allocate(capacity: capacity)
    slots.initialize(repeating: Slot(), count: capacity)
    bodies = .allocate(capacity: capacity)
    bodies.initialize(repeating: [], count: capacity)
    free = .allocate(capacity: capacity)
    for index in 0..<capacity { (free + index).initialize(to: Int32(capacity - 1 - index)) }
    var placeCount = 64
    while placeCount < 4 * capacity { placeCount *= 2 }
    places = .allocate(capacity: placeCount)
    places.initialize(repeating: 0, count: placeCount)
    placeMask = placeCount - 1
  }

  func deallocate() {
    slots.deallocate()
    bodies.deinitialize(count: capacity)
    bodies.deallocate()
    free.deallocate()
    places.deallocate()
  }

  var isFull: Bool { count == capacity }

  /// Takes a slot for a newly opened stream. Must not be called when the table is full.
  @inline(__always)
  mutating func open(_ slot: Slot) -> Int {
    let index = free[capacity - count - 1]
    count += 1
    let position = slots + Int(index)
    position.pointee = slot
    position.pointee.older = youngest
    position.pointee.younger = -1
    if youngest >= 0 { slots[Int(youngest)].younger = index } else { oldest = index }
    youngest = index
    let place = places + place(of: slot.stream)
    let former = slots + Int(place.pointee)
    if former.pointee.job != nil, place.pointee != index,
      self.place(of: former.pointee.stream) == self.place(of: slot.stream)
    {
      displaced[former.pointee.stream] = place.pointee
    }
    place.pointee = index
    return Int(index)
  }

  /// The slot of an open stream; `nil` for one that has ended.
  @inline(__always)
  func position(of stream: Int32) -> Int? {
    let index = places[place(of: stream)]
    if slots[Int(index)].stream == stream, slots[Int(index)].job != nil { return Int(index) }
    return displaced.isEmpty ? nil : displaced[stream].map(Int.init)
  }

  private func place(of stream: Int32) -> Int { Int(stream >> 1) & placeMask }

  /// Frees a slot.
  @inline(__always)
  mutating func close(_ index: Int) {
    forgetAge(index)
    slots[index].job = nil
    if !displaced.isEmpty { displaced[slots[index].stream] = nil }
    count -= 1
    free[capacity - count - 1] = Int32(index)
  }

  /// Every open slot.
  var openSlots: [Int] {
    count == 0 ? [] : (0..<capacity).filter { slots[$0].job != nil }
  }

  @inline(__always)
  private mutating func forgetAge(_ index: Int) {
    let (older, younger) = (slots[index].older, slots[index].younger)
    if older >= 0 { slots[Int(older)].younger = younger } else { oldest = younger }
    if younger >= 0 { slots[Int(younger)].older = older } else { youngest = older }
  }
}
