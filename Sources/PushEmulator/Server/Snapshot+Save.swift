import Cryptography
import Foundation

/// Taking a snapshot.
extension Snapshot {
  init(_ state: EmulatorState) {
    generator = state.generator
    lastApp = state.lastApp
    apps = state.apns.apps.values.sorted { $0.number < $1.number }.map {
      App(
        number: $0.number, bundleID: $0.bundleID, teamID: $0.teamID, environment: $0.environment,
        certificates: $0.certificates, hasBroadcasts: $0.hasBroadcasts)
    }
    channels = state.channels.all.map {
      Channel(
        id: $0.id, app: $0.place.app, environment: $0.place.environment, policy: $0.policy,
        createdAt: $0.createdAt, subscribers: $0.subscribers.sorted())
    }
    keys = state.apns.keys.values.sorted { $0.kid < $1.kid }.map {
      Key(
        kid: $0.kid, teamID: $0.teamID, app: $0.app, publicKeyPEM: $0.publicKey.pem,
        privateKeyPEM: $0.privateKeyPEM, scope: $0.scope, topics: $0.topics,
        environment: $0.environment, isRevoked: $0.isRevoked)
    }
    devices = state.devices.devices.indices.map { SavedDevice(state.devices, index: $0) }
    feeds = state.devices.feedIDs
    fcm = state.fcm.apps.values.sorted { $0.number < $1.number }
    webPush = state.webPush.apps.values.sorted { $0.number < $1.number }
    wns = state.wns.apps.values.sorted { $0.number < $1.number }
    adm = state.adm.apps.values.sorted { $0.number < $1.number }
    baidu = state.baidu.apps.values.sorted { $0.number < $1.number }
    xiaomi = state.xiaomi.apps.values.sorted { $0.number < $1.number }
  }
}

extension Snapshot.SavedDevice {
  fileprivate init?(_ table: DeviceTable, index: Int) {
    let device = table[index]
    guard !device.flags.contains(.deleted) else { return nil }
    let log = table.log(of: index)
    app = device.app
    handle = .init(device.handle, device.registration)
    flags = device.flags.rawValue
    silentUntil = device.silentUntil == 0 ? nil : device.silentUntil
    expiresAt = device.expiresAt == .max ? nil : device.expiresAt
    minUrgency = device.minUrgency == .veryLow ? nil : device.minUrgency
    former = log.map { $0.formerHandles.map { .init($0.handle, $0.registration) } }
    lastSeq = log?.lastSeq
    counters = log?.counters
    events = log.map { log in
      let first = max(0, log.events.count - Snapshot.eventsPerDevice)
      return (first..<log.events.count).map { Snapshot.SavedEvent(log.events[$0]) }
    }
    waiting = log.map { $0.waiting.map { .init($0.notification, heldUntil: $0.heldUntil) } }
  }
}

extension Snapshot.SavedHandle {
  fileprivate init(_ handle: DeviceHandle, _ registration: Device.Registration) {
    switch handle {
    case .apns(let handle):
      token = handle.token.text
      environment = handle.environment
      kind = handle.kind
      (service, keys, user) = (nil, nil, nil)
    case .named(let handle):
      token = handle.text
      (environment, kind) = (nil, nil)
      service = handle.service
      keys = handle.keys
      user = handle.user
    }
    state = registration == .registered ? nil : registration.word
    at = registration.at
  }
}

extension Snapshot.SavedNotification {
  fileprivate init(_ notification: Notification, heldUntil: Int64? = nil) {
    id = notification.id.text
    receivedAt = notification.receivedAt
    switch notification.headers {
    case .apns(let headers):
      topic = headers.topic
      pushType = headers.pushType?.rawValue
      priority = headers.priority
      expiration = headers.expiration
      channelID = headers.channelID
    case .fields(let service, let fields):
      self.service = service
      self.fields = fields
    }
    collapseID = notification.collapseKey
    urgency = notification.urgency
    storeKey = notification.storeKey
    shelf = notification.shelf
    switch notification.decryption {
    case .none: break
    case .succeeded: isDecrypted = true
    case .failed(let reason): (isDecrypted, decryptionFault) = (false, reason)
    }
    storableUntil = notification.storableUntil
    notBefore = notification.notBefore == 0 ? nil : notification.notBefore
    requestSeq = notification.requestSeq
    payload = Data(notification.payload)
    self.heldUntil = heldUntil
  }
}

extension Snapshot.SavedEvent {
  fileprivate init(_ event: DeviceEvent) {
    seq = event.seq
    name = event.name
    switch event.body {
    case .notification(let delivery):
      notification = .init(delivery.notification)
      source = delivery.source
      deliveredAt = delivery.deliveredAt
      other = delivery.replaces?.text
    case .replaced(let old, let new): (id, other) = (old.text, new.text)
    case .expired(let old): id = old.text
    case .discarded(let old, let why): (id, word) = (old.text, why.rawValue)
    case .deletedMessages: break
    case .state(let state): word = state.rawValue
    }
  }
}
