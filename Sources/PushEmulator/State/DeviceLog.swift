/// The history of a device and its waiting messages; created when there is something to keep.
struct DeviceLog: Sendable {
  var lastSeq = 0
  /// The last events, oldest first.
  var events = RingBuffer<DeviceEvent>()
  /// Size of the events in bytes.
  var eventCost = 0
  /// Waiting messages, oldest first.
  var waiting: [Waiting] = [] {
    didSet { waitingCost = waiting.reduce(0) { $0 + $1.notification.cost } }
  }
  /// Size of the waiting messages in bytes.
  private(set) var waitingCost = 0
  /// The due time in the table's queue for this device; `Int64.max` for none.
  var scheduled = Int64.max
  var counters = Counters()
  var formerHandles: [FormerHandle] = []
  /// The open stream of this device alone.
  var reader: EventReader?
  /// The rate limit on messages to one device.
  var rate = TokenBucket()

  /// A waiting message: until the device comes online, or, with `heldUntil`, until it leaves
  /// low-power mode or the message is due.
  struct Waiting: Sendable {
    let notification: Notification
    /// In ms; `nil` while the device is offline.
    var heldUntil: Int64? = nil
  }

  struct Counters: Sendable, Codable, Equatable {
    var accepted = 0
    var delivered = 0
    var discarded = 0
    var replaced = 0
    var expired = 0
  }

  /// The time of the next action without a request; `Int64.max` for never.
  var nextDue: Int64 {
    waiting.reduce(.max) { min($0, $1.notification.storableUntil, $1.heldUntil ?? .max) }
  }

  /// The newest delivered notification with this collapse key, searched for in the kept history.
  func delivered(collapseKey: String) -> MessageID? {
    for index in stride(from: events.count - 1, through: 0, by: -1) {
      if case .notification(let delivery) = events[index].body,
        delivery.notification.collapseKey == collapseKey
      {
        return delivery.notification.id
      }
    }
    return nil
  }
}

/// An open event stream as the state sees it.
struct EventReader: Sendable {
  let id: Int
  /// Notifies the stream that there are events to fetch; never blocks.
  let wake: @Sendable () -> Void
  /// Whether it was woken and has not fetched yet.
  var isAwake = false

  mutating func signal() {
    guard !isAwake else { return }
    isAwake = true
    wake()
  }
}

/// The events of all devices of one app in the order they happened, for the app's own stream; its
/// ids come from one counter. It contains references only: the events are in the devices' logs.
struct AppFeed: Sendable {
  struct Entry: Sendable {
    let device: UInt32
    /// The event's number within the device.
    let seq: UInt32
  }

  /// Maximum number of entries; older ones are forgotten.
  static let capacity = 100_000

  private(set) var entries = RingBuffer<Entry>()
  /// The id of the newest entry; ids count from 1.
  private(set) var lastID = 0
  var reader: EventReader?

  /// - Parameter lastID: The last id of a saved feed.
  init(lastID: Int = 0) { self.lastID = lastID }

  mutating func append(_ entry: Entry) {
    if entries.count == Self.capacity { entries.popFirst() }
    entries.append(entry)
    lastID += 1
    reader?.signal()
  }

  /// Entries after `id` with their ids, at most `limit`.
  func entries(after id: Int, limit: Int) -> [(id: Int, entry: Entry)] {
    let firstID = lastID - entries.count + 1
    let start = max(id + 1, firstID)
    let end = min(lastID, start + limit - 1)
    guard start <= end else { return [] }
    return (start...end).map { ($0, entries[$0 - firstID]) }
  }
}

/// A first-in, first-out buffer that grows as needed; adding at the end, taking from the front and
/// reading by index cost the same at any length.
struct RingBuffer<Element> {
  private var slots: [Element?] = []
  private var head = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  var first: Element? { isEmpty ? nil : self[0] }

  /// - Precondition: `0 <= index < count`; 0 is the oldest.
  subscript(index: Int) -> Element {
    precondition(index >= 0 && index < count)
    // A slot inside `count` is always filled.
    return slots[(head + index) & (slots.count - 1)].unsafelyUnwrapped
  }

  mutating func append(_ element: Element) {
    if count == slots.count { grow() }
    slots[(head + count) & (slots.count - 1)] = element
    count += 1
  }

  @discardableResult
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = slots[head]
    slots[head] = nil
    head = (head + 1) & (slots.count - 1)
    count -= 1
    return element
  }

  mutating func removeAll() { self = Self() }

  private mutating func grow() {
    var larger: [Element?] = []
    let capacity = max(1, slots.count * 2)
    larger.reserveCapacity(capacity)
    for index in 0..<count { larger.append(self[index]) }
    larger.append(contentsOf: repeatElement(nil, count: capacity - count))
    (slots, head) = (larger, 0)
  }
}

extension RingBuffer: Sendable where Element: Sendable {}
