/// Store and forward, the same for every push service: the differences are properties of each
/// message (docs/protocol/emulator.md, section 3).
extension EmulatorState {
  /// Handles an accepted message: delivers, holds, stores or discards it.
  ///
  /// - Parameter isBadPayload: Whether the service accepted a payload that no device could read.
  mutating func take(
    _ notification: Notification, for device: Int, now: Int64, isBadPayload: Bool = false
  ) -> StoreAction {
    devices.withLog(of: device) { $0.counters.accepted += 1 }
    let why: DiscardReason? =
      if devices[device].registration(at: now) != .registered {
        .unregisteredSilent
      } else if devices[device].flags.contains(.disabled) {
        .disabled
      } else if isBadPayload {
        .badPayload
      } else {
        nil
      }
    if let why {
      devices.discard(notification.id, for: device, why: why)
      return .discarded
    }
    guard devices.isOnline(device) else { return store(notification, for: device, now: now) }
    if now < notification.notBefore || devices.holds(notification, for: device) {
      return hold(notification, for: device, now: now)
    }
    if notification.service == .apns, devices[device].flags.contains(.powerSaving) {
      devices.releaseHeld(device, now: now)
    }
    devices.deliver(notification, to: device, from: .live, now: now)
    return .delivered
  }

  /// Stores a message for a device that is offline.
  private mutating func store(
    _ notification: Notification, for device: Int, now: Int64
  ) -> StoreAction {
    guard notification.storableUntil > now else {
      devices.discard(notification.id, for: device, why: .offlineNoStore)
      return .discarded
    }
    if devices.replaceWaiting(notification, for: device, heldUntil: nil) {
      devices.schedule(device)
      return .replaced
    }
    let waiting = devices.log(of: device)?.waiting ?? []
    let shelf = notification.shelf
    let full = waiting.filter { $0.notification.shelf.number == shelf.number }
      .map(\.notification.id)
    guard full.count >= max(1, shelf.limit) else {
      devices.shelve(.init(notification: notification), for: device)
      devices.schedule(device)
      return .stored
    }
    if shelf.overflow == .dropsAll {
      devices.removeWaiting(Set(full), from: device)
      for id in full + [notification.id] { devices.discard(id, for: device, why: .storeFull) }
      devices.record(.deletedMessages, for: device)
      return .discarded
    }
    let fallen = Array(full.prefix(full.count - max(1, shelf.limit) + 1))
    devices.removeWaiting(Set(fallen), from: device)
    devices.shelve(.init(notification: notification), for: device)
    for id in fallen {
      if shelf.overflow == .replacesOldest {
        devices.withLog(of: device) { $0.counters.replaced += 1 }
        devices.record(.replaced(id, by: notification.id), for: device)
      } else {
        devices.discard(id, for: device, why: .storeFull)
      }
    }
    devices.schedule(device)
    return .replaced
  }

  /// Maximum number of messages held for one device.
  private static let heldLimit = 100

  /// Holds a message for a device in low-power mode, or one that is not due yet.
  private mutating func hold(
    _ notification: Notification, for device: Int, now: Int64
  ) -> StoreAction {
    guard notification.storableUntil > now else {
      devices.discard(notification.id, for: device, why: .offlineNoStore)
      return .discarded
    }
    let until =
      now < notification.notBefore
      ? notification.notBefore : holdLimit(of: notification, now: now)
    if !devices.replaceWaiting(notification, for: device, heldUntil: until) {
      let full = devices.withLog(of: device) { log -> MessageID? in
        log.waiting.count >= Self.heldLimit ? log.waiting.removeFirst().notification.id : nil
      }
      devices.shelve(.init(notification: notification, heldUntil: until), for: device)
      if let full { devices.discard(full, for: device, why: .storeFull) }
    }
    devices.schedule(device)
    return .held
  }

  /// The time until which a message is held at most, in ms: APNs has a window, the others wait for
  /// the device.
  private func holdLimit(of notification: Notification, now: Int64) -> Int64 {
    self[notification.service].holdWindow.map { now + $0 * 1000 } ?? .max
  }

  /// Does what is due for one device: drops expired messages, and delivers those that are due.
  mutating func settle(_ device: Int, now: Int64) {
    // The window of one service, the device's.
    let window = self[devices[device].handle.service].holdWindow
    devices.settle(device, now: now, holdLimit: window.map { now + $0 * 1000 } ?? .max)
  }
}

/// The store's reaction when a device goes online, changes its low-power mode or goes away
/// (docs/protocol/emulator.md, section 3). The rules are the same for every push service.
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

  /// Whether a message is held although its device is online: the device is in low-power mode, or
  /// requires a higher urgency.
  func holds(_ notification: Notification, for index: Int) -> Bool {
    if notification.service == .webpush { return notification.urgency < devices[index].minUrgency }
    return devices[index].flags.contains(.powerSaving) && notification.urgency < .high
  }

  /// Does what is due for a device: drops expired messages, and delivers those that are now due.
  ///
  /// - Parameter holdLimit: The time until which a message is held from now on, in ms.
  mutating func settle(_ index: Int, now: Int64, holdLimit: Int64) {
    guard let waiting = log(of: index)?.waiting, !waiting.isEmpty else { return }
    let online = isOnline(index)
    var keep: [DeviceLog.Waiting] = []
    var release: [Notification] = []
    for var item in waiting {
      if now >= item.notification.storableUntil {
        withLog(of: index) { $0.counters.expired += 1 }
        record(.expired(item.notification.id), for: index)
      } else if !online {
        item.heldUntil = nil
        keep.append(item)
      } else if now < item.notification.notBefore {
        item.heldUntil = item.notification.notBefore
        keep.append(item)
      } else if holds(item.notification, for: index) {
        let until = item.heldUntil ?? holdLimit
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

  /// Replaces a waiting message with the same key.
  mutating func replaceWaiting(
    _ notification: Notification, for index: Int, heldUntil: Int64?
  ) -> Bool {
    guard let key = notification.storeKey,
      let place = log(of: index)?.waiting.firstIndex(where: { $0.notification.storeKey == key })
    else { return false }
    let old = withLog(of: index) { log in
      log.counters.replaced += 1
      return log.waiting.remove(at: place)
    }
    shelve(
      .init(notification: notification, heldUntil: old.heldUntil ?? heldUntil), for: index,
      at: place)
    record(.replaced(old.notification.id, by: notification.id), for: index)
    return true
  }

  /// Delivers held messages; an urgent message triggers this.
  mutating func releaseHeld(_ index: Int, now: Int64) {
    guard let log = log(of: index), !log.waiting.isEmpty else { return }
    withLog(of: index) { $0.waiting = [] }
    for item in log.waiting where item.notification.storableUntil > now {
      deliver(item.notification, to: index, from: .store, now: now)
    }
  }

  /// Removes messages from the store without an event.
  mutating func removeWaiting(_ ids: Set<MessageID>, from index: Int) {
    withLog(of: index) { $0.waiting.removeAll { ids.contains($0.notification.id) } }
  }

  /// Returns a message to the store that a stream could not deliver: the device went offline.
  mutating func takeBack(_ notification: Notification, for index: Int, now: Int64) {
    guard notification.storableUntil > now else {
      return discard(notification.id, for: index, why: .offlineNoStore)
    }
    let waiting = log(of: index)?.waiting.map(\.notification) ?? []
    let shelf = waiting.filter { $0.shelf.number == notification.shelf.number }
    let isFull = shelf.count >= max(1, notification.shelf.limit)
    let newer =
      waiting.last { $0.storeKey != nil && $0.storeKey == notification.storeKey }
      ?? (isFull && notification.shelf.overflow == .replacesOldest ? shelf.last : nil)
    if let newer {
      withLog(of: index) { $0.counters.replaced += 1 }
      return record(.replaced(notification.id, by: newer.id), for: index)
    }
    if isFull { return discard(notification.id, for: index, why: .storeFull) }
    shelve(.init(notification: notification), for: index, at: 0)
    schedule(index)
  }

  /// Discards all waiting messages.
  mutating func discardWaiting(_ index: Int, why: DiscardReason) {
    guard let waiting = log(of: index)?.waiting, !waiting.isEmpty else { return }
    withLog(of: index) { $0.waiting = [] }
    for item in waiting { discard(item.notification.id, for: index, why: why) }
  }
}
