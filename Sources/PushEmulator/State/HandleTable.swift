/// The identity of a device at a push service.
enum DeviceHandle: Sendable, Hashable {
  case apns(APNsHandle)
  case named(NamedHandle)

  var service: PushService {
    switch self {
    case .apns: .apns
    case .named(let handle): handle.service
    }
  }
}

/// A handle of a service other than APNs.
struct NamedHandle: Sendable, Hashable, Codable {
  let service: PushService
  /// The text by which the service looks the device up: FCM's registration token, the token in a
  /// WNS channel's URI, the id in a Web Push endpoint, ADM's registration id, Baidu's channel id,
  /// Xiaomi's regid.
  let text: String
  /// Web Push only.
  var keys: SubscriptionKeys?
  /// Baidu only: the user id that belongs to the channel id.
  var user: String?
}

/// The keys of a Web Push subscription (RFC 8291), base 64 URL without padding.
///
/// One object per subscription, so that devices without one stay small.
final class SubscriptionKeys: Sendable, Hashable, Codable {
  /// 65 bytes.
  let p256dh: String
  /// 16 bytes.
  let auth: String
  /// 32 bytes, for a device whose payloads the emulator decrypts; `nil` leaves them encrypted.
  let privateKey: String?

  init(p256dh: String, auth: String, privateKey: String?) {
    self.p256dh = p256dh
    self.auth = auth
    self.privateKey = privateKey
  }

  static func == (left: SubscriptionKeys, right: SubscriptionKeys) -> Bool {
    left.p256dh == right.p256dh && left.auth == right.auth && left.privateKey == right.privateKey
  }

  func hash(into hasher: inout Hasher) { hasher.combine(p256dh) }
}

/// A former handle of a device, and the reason that it ended.
struct FormerHandle: Sendable {
  let handle: DeviceHandle
  let registration: Device.Registration
}

/// The devices by handle at each service; former handles are kept.
struct HandleTable: Sendable {
  /// Tokens of APNs, one table for each environment, without a string.
  private var production: [APNsToken: Int32] = [:]
  private var sandbox: [APNsToken: Int32] = [:]
  private var named: [PushService: [String: Int32]] = [:]

  func device(_ token: APNsToken, in environment: APNsEnvironment) -> Int? {
    (environment == .production ? production[token] : sandbox[token]).map(Int.init)
  }

  func device(_ service: PushService, _ text: String) -> Int? {
    named[service]?[text].map(Int.init)
  }

  func device(_ handle: DeviceHandle) -> Int? {
    switch handle {
    case .apns(let handle): device(handle.token, in: handle.environment)
    case .named(let handle): device(handle.service, handle.text)
    }
  }

  /// - Parameter device: `nil` forgets the handle.
  mutating func set(_ handle: DeviceHandle, device: Int?) {
    let device = device.map { Int32($0) }
    switch handle {
    case .named(let handle): named[handle.service, default: [:]][handle.text] = device
    case .apns(let handle):
      switch handle.environment {
      case .production: production[handle.token] = device
      case .sandbox: sandbox[handle.token] = device
      }
    }
  }

  /// Reserves capacity for more handles of the same kind.
  mutating func reserve(_ more: Int, like handle: DeviceHandle) {
    switch handle {
    case .named(let handle):
      let count = named[handle.service]?.count ?? 0
      named[handle.service, default: [:]].reserveCapacity(count + more)
    case .apns(let handle):
      switch handle.environment {
      case .production: production.reserveCapacity(production.count + more)
      case .sandbox: sandbox.reserveCapacity(sandbox.count + more)
      }
    }
  }
}

/// The result of looking up a handle that a request names.
struct FoundHandle: Sendable {
  let device: Int
  let handle: NamedHandle
  /// The registration of the handle, which may be a former one of the device.
  let registration: Device.Registration
  /// The device's current handle, for services that return it when a former one is used.
  let current: NamedHandle

  /// Whether the service accepts messages for it: it is registered, or its end has not been noticed
  /// yet.
  let isAlive: Bool
}

extension EmulatorState {
  /// Looks up a handle at a service other than APNs; `nil` for one that the service has never
  /// issued.
  func find(_ service: PushService, _ text: String, now: Int64) -> FoundHandle? {
    guard let index = handles.device(service, text),
      case .named(let current) = devices[index].handle
    else { return nil }
    if current.text == text {
      let registration = devices[index].registration(at: now)
      if registration == .unknown { return nil }
      return FoundHandle(
        device: index, handle: current, registration: registration, current: current,
        isAlive: registration == .registered || now < devices[index].silentUntil)
    }
    for former in devices.log(of: index)?.formerHandles ?? [] {
      if case .named(let handle) = former.handle, handle.text == text {
        if former.registration == .unknown { return nil }
        return FoundHandle(
          device: index, handle: handle, registration: former.registration, current: current,
          isAlive: false)
      }
    }
    return nil
  }
}
