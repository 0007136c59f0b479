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
    var headerBytes: UInt32 = 0
    /// Neighbours in the order of age; -1 at the ends.
    var older: Int32 = -1
    var younger: Int32 = -1
    var status: UInt16 = 0
    /// Whether the request has its outcome (timed out, cancelled) and only the stream's end is
    /// awaited.
    var isAnswered = false
    /// Whether RST_STREAM came before the end of the reply.
    var isCutShort = false
    /// Whether the reply's body exceeded the limit and we reset the stream.
    var isTruncated = false
  }

  let slots: UnsafeMutablePointer<Slot>
  /// Bodies of replies as they arrive, one per slot; reused for their capacity.
  let bodies: UnsafeMutablePointer<[UInt8]>
  let capacity: Int
  private let free: UnsafeMutablePointer<Int32>
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
  }

  func deallocate() {
    slots.deallocate()
    bodies.deinitialize(count: capacity)
    bodies.deallocate()
    free.deallocate()
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
    return Int(index)
  }

  /// Frees a slot.
  @inline(__always)
  mutating func close(_ index: Int) {
    if !slots[index].isAnswered { forgetAge(index) }
    slots[index].job = nil
    count -= 1
    free[capacity - count - 1] = Int32(index)
  }

  /// Marks the request as completed; the slot no longer counts for timeouts.
  mutating func answer(_ index: Int) {
    guard !slots[index].isAnswered else { return }
    forgetAge(index)
    slots[index].isAnswered = true
  }

  /// Calls `body` with every open slot.
  func forEachOpen(_ body: (Int) -> Void) {
    guard count > 0 else { return }
    for index in 0..<capacity where slots[index].job != nil { body(index) }
  }

  /// Calls `body` with the slots without a reply, the youngest first, until it returns false.
  func forEachYoungest(_ body: (Int) -> Bool) {
    var index = youngest
    while index >= 0, body(Int(index)) { index = slots[Int(index)].older }
  }

  @inline(__always)
  private mutating func forgetAge(_ index: Int) {
    let (older, younger) = (slots[index].older, slots[index].younger)
    if older >= 0 { slots[Int(older)].younger = younger } else { oldest = younger }
    if younger >= 0 { slots[Int(younger)].older = older } else { youngest = older }
  }
}
