import Cryptography
import Wire

/// Devices and their events as the control API shows them.
extension EmulatorState {
  /// What the reply says of a new device; short, because a load test makes very many.
  func summary(of index: Int) -> JSON {
    let device = devices[index]
    let desk = device.handle.service.desk
    return [
      "deviceId": .string(Self.deviceID(index)), "appId": .string(Self.appID(device.app)),
      "pns": .string(device.handle.service.rawValue), "kind": JSON(desk.kind(of: device.handle)),
      "handle": desk.handleJSON(device.handle, in: self),
      "online": .bool(devices.isOnline(index)),
    ]
  }

  /// Everything about a device but its history.
  func details(of index: Int) -> JSON {
    let device = devices[index]
    let now = clock.now
    let log = devices.log(of: index)
    var members = summary(of: index).members ?? []
    func add(_ name: String, _ value: JSON) { members.append(.init(name: name, value: value)) }
    let desk = device.handle.service.desk
    let registration = device.registration(at: now)
    let presence: Presence = device.flags.contains(.followsStream) ? .stream : .flag
    add("presence", .string(presence.rawValue))
    add("powerSaving", .bool(device.flags.contains(.powerSaving)))
    if let channels = subscriptions(of: index) {
      add("channels", .array(channels.map(JSON.string)))
    }
    if device.handle.service == .webpush { add("minUrgency", .string(device.minUrgency.word)) }
    add("disabled", .bool(device.flags.contains(.disabled)))
    add("state", .string(registration.word))
    add("at", JSON(optional: registration.at))
    add("silentUntil", device.silentUntil > now ? .int(device.silentUntil) : nil)
    add("expiresAt", device.expiresAt == .max ? nil : .int(device.expiresAt))
    let former = (log?.formerHandles ?? []).map { former -> JSON in
      [
        "handle": desk.handleJSON(former.handle, in: self),
        "state": .string(former.registration.word),
        "at": JSON(optional: former.registration.at),
      ]
    }
    let present: JSON = [
      "handle": desk.handleJSON(device.handle, in: self), "state": .string(registration.word),
      "at": JSON(optional: registration.at),
    ]
    add("handles", .array(former + [present]))
    let counters = log?.counters ?? .init()
    add(
      "counters",
      [
        "accepted": JSON(counters.accepted), "delivered": JSON(counters.delivered),
        "discarded": JSON(counters.discarded), "replaced": JSON(counters.replaced),
        "expired": JSON(counters.expired), "stored": JSON(log?.waiting.count ?? 0),
      ])
    add("lastSeq", JSON(log?.lastSeq ?? 0))
    return .object(members)
  }

  /// What waits for a device.
  func stored(of index: Int) -> JSON {
    let waiting = devices.log(of: index)?.waiting ?? []
    return .array(
      waiting.map { item in
        let common = item.notification.members
        let more: [JSON.Member] = [
          .init(name: "expiresAt", value: .int(item.notification.storableUntil)),
          .init(name: "heldUntil", value: JSON(optional: item.heldUntil)),
        ]
        return .object(common + more)
      })
  }
}

extension Device.Registration {
  var word: String {
    switch self {
    case .registered: "registered"
    case .unregistered: "unregistered"
    case .expired: "expired"
    case .unknown: "unknown"
    }
  }

  /// Since when, in ms.
  var at: Int64? {
    switch self {
    case .unregistered(let at), .expired(let at): at
    case .registered, .unknown: nil
    }
  }
}

extension Notification {
  /// Id, times, headers and payload.
  fileprivate var members: [JSON.Member] {
    let isJSON = payload.withUnsafeBufferPointer { JSONScanner.isObject($0) }
    // Line ends in JSON text are white space only; an event stream could not carry them.
    let text = payload.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
    let fields: [JSON.Member]
    switch headers {
    case .apns(let headers):
      fields = headers.fields.map { .init(name: $0.name, value: .string($0.value)) }
    case .fields(_, let list):
      fields = list.map { .init(name: $0.name, value: .string($0.value)) }
    }
    var decrypted: [JSON.Member]
    switch decryption {
    case .none: decrypted = [.init(name: "decrypted", value: nil)]
    case .succeeded: decrypted = [.init(name: "decrypted", value: true)]
    case .failed(let reason):
      decrypted = [
        .init(name: "decrypted", value: false), .init(name: "reason", value: .string(reason)),
      ]
    }
    decrypted.append(.init(name: "requestSeq", value: JSON(requestSeq)))
    return [
      .init(name: "id", value: .string(id.text)),
      .init(name: "receivedAt", value: .int(receivedAt)),
      .init(name: "headers", value: .object(fields)),
      .init(name: "payload", value: isJSON ? .raw(text) : nil),
      .init(name: "payloadBase64", value: .string(Base64.encode(payload))),
    ] + decrypted
  }
}

extension DeviceEvent {
  /// The SSE event's name.
  var name: String {
    switch body {
    case .notification: "notification"
    case .replaced: "replaced"
    case .expired: "expired"
    case .discarded: "discarded"
    case .deletedMessages: "deleted-messages"
    case .state: "state"
    }
  }

  /// The SSE event's data; every event names its device, for an app's stream.
  func json(device: Int) -> JSON {
    let id = JSON.Member(name: "deviceId", value: .string(EmulatorState.deviceID(device)))
    let seq = JSON.Member(name: "seq", value: JSON(seq))
    switch body {
    case .notification(let delivery):
      let rest: [JSON.Member] = [
        .init(name: "pns", value: .string(delivery.notification.service.rawValue)), id,
        .init(name: "deliveredAt", value: .int(delivery.deliveredAt)),
        .init(name: "from", value: .string(delivery.source.rawValue)),
        .init(name: "replaces", value: JSON(delivery.replaces?.text)),
      ]
      return .object([seq] + rest + delivery.notification.members)
    case .replaced(let old, let new):
      return .object([
        seq, id, .init(name: "id", value: .string(old.text)),
        .init(name: "by", value: .string(new.text)),
      ])
    case .expired(let old):
      return .object([seq, id, .init(name: "id", value: .string(old.text))])
    case .discarded(let old, let why):
      return .object([
        seq, id, .init(name: "id", value: .string(old.text)),
        .init(name: "why", value: .string(why.rawValue)),
      ])
    case .deletedMessages:
      return .object([seq, id])
    case .state(let word):
      return .object([seq, id, .init(name: "state", value: .string(word.rawValue))])
    }
  }
}
