import Cryptography
import Foundation

/// Taking up a snapshot.
extension Snapshot {
  /// Why a state file cannot be taken up.
  struct Damage: Error {
    let reason: String
  }

  /// Fills a fresh state.
  func restore(into state: inout EmulatorState) throws {
    guard version == Self.currentVersion else {
      throw Damage(reason: "has version \(version); this program reads \(Self.currentVersion)")
    }
    state.generator = generator
    state.lastApp = lastApp
    for app in apps {
      state.apps[app.number] = .apns
      state.apns.add(
        APNsApp(
          number: app.number, bundleID: app.bundleID, teamID: app.teamID,
          environment: app.environment, certificates: app.certificates,
          hasBroadcasts: app.hasBroadcasts ?? true))
    }
    for key in keys {
      state.apns.add(
        APNsKey(
          kid: key.kid, teamID: key.teamID, app: key.app,
          publicKey: try P256PublicKey(pem: key.publicKeyPEM), privateKeyPEM: key.privateKeyPEM,
          scope: key.scope, topics: key.topics, environment: key.environment,
          isRevoked: key.isRevoked))
    }
    for app in fcm ?? [] {
      state.apps[app.number] = .fcm
      try state.fcm.add(app)
    }
    for app in webPush ?? [] {
      state.apps[app.number] = .webpush
      state.webPush.add(app)
    }
    for app in wns ?? [] {
      state.apps[app.number] = .wns
      state.wns.add(app)
    }
    for app in adm ?? [] {
      state.apps[app.number] = .adm
      state.adm.add(app)
    }
    for app in baidu ?? [] {
      state.apps[app.number] = .baidu
      state.baidu.add(app)
    }
    for app in xiaomi ?? [] {
      state.apps[app.number] = .xiaomi
      state.xiaomi.add(app)
    }
    for (app, lastID) in feeds {
      state.devices.withFeed(of: app) { $0 = AppFeed(lastID: lastID) }
    }
    for device in devices { try restore(device, into: &state) }
    for channel in channels ?? [] {
      guard channel.subscribers.allSatisfy({ state.devices.devices.indices.contains($0) }) else {
        throw Damage(reason: "holds a channel with a subscriber that is no device")
      }
      state.channels.add(
        id: channel.id, at: .init(app: channel.app, environment: channel.environment),
        policy: channel.policy, now: channel.createdAt, subscribers: Set(channel.subscribers))
    }
  }

  private func restore(_ saved: SavedDevice?, into state: inout EmulatorState) throws {
    guard let saved else {
      _ = state.devices.add(Device(app: 0, handle: .apns(.none), flags: .deleted))
      return
    }
    let handle = try saved.handle.handle()
    var device = Device(app: saved.app, handle: handle, flags: .init(rawValue: saved.flags))
    device.minUrgency = saved.minUrgency ?? .veryLow
    device.registration = saved.handle.registration
    device.silentUntil = saved.silentUntil ?? 0
    device.expiresAt = saved.expiresAt ?? .max
    let index = state.devices.add(device)
    state.set(handle, device: index)
    guard let lastSeq = saved.lastSeq else { return }
    state.devices.restore(
      try (saved.events ?? []).map { try $0.event() }, lastSeq: lastSeq, of: index)
    let former = try (saved.former ?? []).map {
      FormerHandle(handle: try $0.handle(), registration: $0.registration)
    }
    for item in former { state.set(item.handle, device: index) }
    let waiting = try (saved.waiting ?? []).map {
      DeviceLog.Waiting(notification: try $0.notification(), heldUntil: $0.heldUntil)
    }
    state.devices.withLog(of: index) { log in
      log.formerHandles = former
      log.counters = saved.counters ?? .init()
      log.waiting = waiting
    }
    if !waiting.isEmpty { state.devices.schedule(index) }
  }
}

extension Snapshot.SavedHandle {
  fileprivate func handle() throws -> DeviceHandle {
    if let service {
      return .named(NamedHandle(service: service, text: token, keys: keys, user: user))
    }
    guard let token = APNsToken(token.utf8), let environment, let kind else {
      throw Snapshot.Damage(reason: "holds a device token that is none")
    }
    return .apns(APNsHandle(token: token, environment: environment, kind: kind))
  }

  fileprivate var registration: Device.Registration {
    switch state {
    case "unregistered": .unregistered(at: at ?? 0)
    case "expired": .expired(at: at ?? 0)
    case "unknown": .unknown
    default: .registered
    }
  }
}

extension Snapshot.SavedNotification {
  fileprivate func notification() throws -> Notification {
    let apns = APNsHeaders(
      topic: topic ?? "", pushType: pushType.flatMap { APNsPushType(rawValue: $0) },
      priority: priority, expiration: expiration, collapseID: collapseID, channelID: channelID)
    let decryption: Notification.Decryption =
      switch isDecrypted {
      case nil: .none
      case true?: .succeeded
      case false?: .failed(reason: decryptionFault ?? "")
      }
    return Notification(
      id: MessageID(id), receivedAt: receivedAt,
      headers: service.map { .fields($0, fields ?? []) } ?? .apns(apns), payload: Array(payload),
      decryption: decryption, urgency: urgency ?? apns.urgency, collapseKey: collapseID,
      storeKey: storeKey, storableUntil: storableUntil, notBefore: notBefore ?? 0,
      shelf: shelf ?? Shelf(number: 0, limit: 1, overflow: .replacesOldest),
      requestSeq: requestSeq)
  }
}

extension Snapshot.SavedEvent {
  fileprivate func event() throws -> DeviceEvent {
    DeviceEvent(seq: seq, body: try body())
  }

  private func body() throws -> DeviceEvent.Body {
    switch name {
    case "notification":
      guard let notification, let source, let deliveredAt else { break }
      return .notification(
        Delivery(
          notification: try notification.notification(), source: source, deliveredAt: deliveredAt,
          replaces: try other.map { try Snapshot.messageID($0) }))
    case "replaced":
      return .replaced(try Snapshot.messageID(id), by: try Snapshot.messageID(other))
    case "expired":
      return .expired(try Snapshot.messageID(id))
    case "discarded":
      guard let why = word.flatMap(DiscardReason.init) else { break }
      return .discarded(try Snapshot.messageID(id), why)
    case "deleted-messages":
      return .deletedMessages
    case "state":
      guard let word = word.flatMap(DeviceStateWord.init) else { break }
      return .state(word)
    default: break
    }
    throw Snapshot.Damage(reason: "holds an event that cannot be read")
  }
}

extension Snapshot {
  fileprivate static func messageID(_ text: String?) throws -> MessageID {
    guard let text else { throw Damage(reason: "holds an event without a message id") }
    return MessageID(text)
  }
}
