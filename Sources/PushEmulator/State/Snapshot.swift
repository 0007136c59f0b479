import Cryptography
import Foundation

/// The persistent state in the state file: apps with their keys, devices with their tokens, their
/// waiting messages and last events. Journal, statistics, faults and clock restart with each run.
///
/// The services' own parts are stored beside the common ones, under the services' keys.
struct Snapshot: Codable, Sendable {
  static let currentVersion = 1
  /// Events kept per device.
  static let eventsPerDevice = 100

  /// The reason that a state file cannot be restored.
  struct Damage: Error {
    let reason: String
  }

  struct Key: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ text: String) { stringValue = text }
    init(stringLiteral text: String) { stringValue = text }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// The key under which a decoder finds the services that restore their parts.
  static let services = CodingUserInfoKey(rawValue: "services").unsafelyUnwrapped

  private let version: Int
  private let generator: SeededGenerator
  private let lastApp: UInt32
  /// The devices as they are in the state, for saving; encoding takes long and is done without the
  /// lock.
  private var table: DeviceTable?
  /// The devices as read, in the order of their numbers; `nil` for a deleted one.
  private var devices: [SavedDevice?] = []
  /// By app number: the newest id of the app's event stream.
  private let feeds: [UInt32: Int]
  private var parts: [(key: String, value: any Encodable & Sendable)] = []
  private var restorers: [@Sendable (inout EmulatorState) throws -> Void] = []

  init(_ state: EmulatorState) {
    version = Self.currentVersion
    generator = state.generator
    lastApp = state.lastApp
    table = state.devices
    feeds = state.devices.feedIDs
    parts = state.services.flatMap { $0.saved(in: state) }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(version, forKey: "version")
    try container.encode(generator, forKey: "generator")
    try container.encode(lastApp, forKey: "lastApp")
    try container.encode(feeds, forKey: "feeds")
    if let table {
      let devices = table.devices.indices.map { SavedDevice(table, index: $0) }
      try container.encode(devices, forKey: "devices")
    }
    for part in parts { try container.encode(part.value, forKey: Key(part.key)) }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    version = try container.decode(Int.self, forKey: "version")
    guard version == Self.currentVersion else {
      throw Damage(reason: "has version \(version); this program reads \(Self.currentVersion)")
    }
    generator = try container.decode(SeededGenerator.self, forKey: "generator")
    lastApp = try container.decode(UInt32.self, forKey: "lastApp")
    feeds = try container.decode([UInt32: Int].self, forKey: "feeds")
    devices = try container.decode([SavedDevice?].self, forKey: "devices")
    // The services read their parts now and restore them after the devices.
    for service in decoder.userInfo[Self.services] as? [any StandIn] ?? [] {
      restorers.append(try service.restorer(container))
    }
  }

  /// Restores into a fresh state.
  func restore(into state: inout EmulatorState) throws {
    state.generator = generator
    state.lastApp = lastApp
    for (app, lastID) in feeds {
      state.devices.withFeed(of: app) { $0 = AppFeed(lastID: lastID) }
    }
    for device in devices { try restore(device, into: &state) }
    for restore in restorers { try restore(&state) }
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
    state.handles.set(handle, device: index)
    guard let lastSeq = saved.lastSeq else { return }
    state.devices.restore(
      try (saved.events ?? []).map { try $0.event() }, lastSeq: lastSeq, of: index)
    let former = try (saved.former ?? []).map {
      FormerHandle(handle: try $0.handle(), registration: $0.registration)
    }
    for item in former { state.handles.set(item.handle, device: index) }
    let waiting = try (saved.waiting ?? []).map {
      DeviceLog.Waiting(notification: try $0.notification(), heldUntil: $0.heldUntil)
    }
    state.devices.withLog(of: index) { log in
      log.formerHandles = former
      log.counters = saved.counters ?? .init()
    }
    for item in waiting { state.devices.shelve(item, for: index) }
    if !waiting.isEmpty { state.devices.schedule(index) }
  }

  struct SavedDevice: Codable, Sendable {
    let app: UInt32
    let handle: SavedHandle
    let flags: UInt8
    let silentUntil: Int64?
    let expiresAt: Int64?
    let minUrgency: Urgency?
    let former: [SavedHandle]?
    let lastSeq: Int?
    let counters: DeviceLog.Counters?
    let events: [SavedEvent]?
    let waiting: [SavedNotification]?
  }

  struct SavedHandle: Codable, Sendable {
    /// The handle's text.
    let token: String
    /// Of a token of APNs, which has no `service`.
    let environment: APNsEnvironment?
    let kind: APNsKind?
    let service: PushService?
    let keys: SubscriptionKeys?
    /// Of a Baidu device.
    let user: String?
    let state: String?
    let at: Int64?
  }

  struct SavedNotification: Codable, Sendable {
    let id: String
    let receivedAt: Int64
    /// Of APNs, which has no `service`.
    var topic: String?
    var pushType: String?
    var priority: UInt8?
    var expiration: Int64?
    /// Of a broadcast.
    var channelID: String?
    /// The collapse key, of every service.
    var collapseID: String?
    let storableUntil: Int64
    let requestSeq: Int
    let payload: Data
    let heldUntil: Int64?
    var notBefore: Int64?
    /// Of the other services.
    var service: PushService?
    var fields: [Notification.Field]?
    let urgency: Urgency?
    let storeKey: String?
    let shelf: Shelf?
    var isDecrypted: Bool?
    var decryptionFault: String?
  }

  struct SavedEvent: Codable, Sendable {
    let seq: Int
    /// The event's name on the stream.
    let name: String
    var id: String?
    /// For `replaced` the newer message, for a notification the one it replaces.
    var other: String?
    /// For `discarded` the reason, for `state` the word.
    var word: String?
    var notification: SavedNotification?
    var source: Delivery.Source?
    var deliveredAt: Int64?
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
      guard let word = word.flatMap(DeviceStateName.init) else { break }
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
