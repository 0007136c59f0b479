/// Something that happened to a device; what its event stream shows (emulator.md, section 2.3).
struct DeviceEvent: Sendable {
  enum Body: Sendable {
    case notification(Delivery)
    /// A waiting message was replaced by a newer one.
    case replaced(MessageID, by: MessageID)
    /// A waiting message passed its time.
    case expired(MessageID)
    case discarded(MessageID, DiscardReason)
    /// The store overflowed and all that waited is gone; FCM only.
    case deletedMessages
    case state(DeviceStateWord)
  }

  /// Counts from 1 within the device.
  let seq: Int
  let body: Body

  /// The memory it holds on to, in bytes and roughly, for the budget of the history.
  var cost: Int {
    if case .notification(let delivery) = body {
      240 + delivery.notification.payload.count
    } else {
      80
    }
  }
}

/// A notification shown on a device.
struct Delivery: Sendable {
  enum Source: String, Sendable, Codable {
    case live, store
  }

  let notification: Notification
  let source: Source
  /// In ms since the Unix epoch.
  let deliveredAt: Int64
  /// The notification on the device whose place it took.
  let replaces: MessageID?
}
