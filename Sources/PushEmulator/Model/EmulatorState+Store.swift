/// Store and forward, the same for every push service: what differs between them comes with each
/// message (emulator.md, section 3).
extension EmulatorState {
  /// Takes an accepted message: delivers, holds, stores or discards it.
  ///
  /// - Parameter isBadPayload: The service took it, and no device could read it.
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

  /// Keeps a message for a device that is offline.
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
      devices.withLog(of: device) { $0.waiting.append(.init(notification: notification)) }
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
    devices.withLog(of: device) { $0.waiting.append(.init(notification: notification)) }
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

  /// Most messages held back for one device.
  private static let heldLimit = 100

  /// Keeps a message for a device that saves power, or one whose time has not come.
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
        let oldest = log.waiting.count >= Self.heldLimit ? log.waiting.removeFirst() : nil
        log.waiting.append(.init(notification: notification, heldUntil: until))
        return oldest?.notification.id
      }
      if let full { devices.discard(full, for: device, why: .storeFull) }
    }
    devices.schedule(device)
    return .held
  }

  /// Until when a message is held at most, in ms: APNs has a window, the others wait for the device.
  private func holdLimit(of notification: Notification, now: Int64) -> Int64 {
    notification.service == .apns ? now + settings.apns.groupWindow * 1000 : .max
  }

  /// Does what is due for one device: drops what is past its time, and delivers what it may have.
  mutating func settle(_ device: Int, now: Int64) {
    let window = settings.apns.groupWindow * 1000
    devices.settle(device, now: now) { notification in
      notification.service == .apns ? now + window : .max
    }
  }
}
