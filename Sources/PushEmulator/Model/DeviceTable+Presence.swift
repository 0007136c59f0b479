/// Coming and going: what the store does when a device goes online, saves power or goes away
/// (emulator.md, section 3). The rules are the same for every push service.
extension DeviceTable {
  /// Shows a notification on the device.
  mutating func deliver(
    _ notification: Notification, to index: Int, from source: Delivery.Source, now: Int64
  ) {
    let replaces = notification.collapseKey.flatMap { key in
      log(of: index)?.delivered(collapseKey: key)
    }
    withLog(of: index) { $0.counters.delivered += 1 }
    record(
      .notification(
        Delivery(
          notification: notification, source: source, deliveredAt: now, replaces: replaces)),
      for: index)
  }

  mutating func discard(_ id: MessageID, for index: Int, why: DiscardReason) {
    withLog(of: index) { $0.counters.discarded += 1 }
    record(.discarded(id, why), for: index)
  }

  /// Does what is due for a device: drops what is past its time, and delivers what it may have now.
  ///
  /// - Parameters:
  ///   - groupWindow: How long a device that saves power may be kept waiting, in ms.
  ///   - holds: Whether a message is of the kind that waits while the device saves power.
  mutating func settle(
    _ index: Int, now: Int64, groupWindow: Int64, holds: (Notification) -> Bool
  ) {
    guard let waiting = log(of: index)?.waiting, !waiting.isEmpty else { return }
    let online = isOnline(index)
    let saving = devices[index].flags.contains(.powerSaving)
    var keep: [DeviceLog.Waiting] = []
    var release: [Notification] = []
    for var item in waiting {
      if now >= item.notification.storableUntil {
        withLog(of: index) { $0.counters.expired += 1 }
        record(.expired(item.notification.id), for: index)
      } else if !online {
        item.heldUntil = nil
        keep.append(item)
      } else if saving, holds(item.notification) {
        let until = item.heldUntil ?? (now + groupWindow)
        if now >= until {
          release.append(item.notification)
        } else {
          item.heldUntil = until
          keep.append(item)
        }
      } else {
        release.append(item.notification)
      }
    }
    withLog(of: index) { $0.waiting = keep }
    for notification in release {
      deliver(notification, to: index, from: .store, now: now)
    }
    if !keep.isEmpty { schedule(index) }
  }

  /// Puts a message back that a stream took and could not pass on: the device went offline.
  mutating func takeBack(_ notification: Notification, for index: Int, now: Int64) {
    guard notification.storableUntil > now else {
      return discard(notification.id, for: index, why: .offlineNoStore)
    }
    if let newer = log(of: index)?.waiting.last {
      withLog(of: index) { $0.counters.replaced += 1 }
      return record(.replaced(notification.id, by: newer.notification.id), for: index)
    }
    withLog(of: index) { $0.waiting.insert(.init(notification: notification), at: 0) }
    schedule(index)
  }

  /// Throws away everything that waits.
  mutating func discardWaiting(_ index: Int, why: DiscardReason) {
    guard let waiting = log(of: index)?.waiting, !waiting.isEmpty else { return }
    withLog(of: index) { $0.waiting = [] }
    for item in waiting { discard(item.notification.id, for: index, why: why) }
  }
}
