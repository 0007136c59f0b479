/// What happened to a device and what waits for it; made when there is something to keep.
struct DeviceLog: Sendable {
  var lastSeq = 0
  /// The last events, oldest first.
  var events = RingBuffer<DeviceEvent>()
  /// Waiting messages, oldest first.
  var waiting: [Waiting] = []
  /// The due time that stands in the table's queue for this device; `Int64.max` for none.
  var scheduled = Int64.max
  var counters = Counters()
  var formerHandles: [FormerHandle] = []
  /// The open stream of this device alone.
  var reader: EventReader?
  /// For the limit on messages to one device.
  var rate = TokenBucket()

  /// A message that waits: for the device to come online, or, with `heldUntil`, for it to stop
  /// saving power or for the message's own time.
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

  /// When something must happen on its own; `Int64.max` for never.
  var nextDue: Int64 {
    waiting.reduce(.max) { min($0, $1.notification.storableUntil, $1.heldUntil ?? .max) }
  }

  /// The newest delivered notification with this collapse key, looked for in the kept history.
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

/// An open event stream as the model knows it.
struct EventReader: Sendable {
  let id: Int
  /// Tells the stream that there is something to fetch; never blocks.
  let wake: @Sendable () -> Void
  /// Woken and not yet come to fetch.
  var isAwake = false

  mutating func signal() {
    guard !isAwake else { return }
    isAwake = true
    wake()
  }
}
