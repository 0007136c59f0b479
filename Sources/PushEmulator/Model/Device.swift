/// A virtual device: one handle of one app at one push service.
///
/// A load test makes a hundred thousand of these, so the history stands elsewhere, and only for
/// devices that have one (`DeviceTable.logs`).
struct Device: Sendable {
  enum Registration: Sendable, Equatable {
    case registered
    /// Since then, in ms since the Unix epoch.
    case unregistered(at: Int64)
    case expired(at: Int64)
    /// The service never heard of the handle.
    case unknown
  }

  struct Flags: OptionSet, Sendable {
    let rawValue: UInt8
    static let online = Flags(rawValue: 1)
    static let followsStream = Flags(rawValue: 2)
    static let powerSaving = Flags(rawValue: 4)
    static let disabled = Flags(rawValue: 8)
    /// The app was deleted and the device with it; the place stays so that numbers do.
    static let deleted = Flags(rawValue: 16)
  }

  /// The app's number.
  let app: UInt32
  /// Less urgent messages wait; Web Push only (RFC 8030, section 5.3).
  var minUrgency = Urgency.veryLow
  /// Place of its log in `DeviceTable.logs`, or -1.
  var log: Int32 = -1
  var handle: DeviceHandle
  var flags: Flags
  var registration: Registration = .registered
  /// Until then (ms) a dead handle is still answered as a live one.
  var silentUntil: Int64 = 0
  /// The handle expires then (ms).
  var expiresAt: Int64 = .max

  /// What the push service knows of the handle at `now`, in ms.
  func registration(at now: Int64) -> Registration {
    if registration == .registered, now >= expiresAt { return .expired(at: expiresAt) }
    return registration
  }
}

/// What a push service calls a device.
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
  /// What the service looks the device up by: FCM's registration token, the token in a WNS channel's
  /// URI, the id in a Web Push endpoint, ADM's registration id, Baidu's channel id, Xiaomi's regid.
  let text: String
  /// Web Push only.
  var keys: SubscriptionKeys?
  /// Baidu only: the id that goes with the channel's.
  var user: String?
}

/// The keys of a Web Push subscription (RFC 8291), base 64 URL without padding.
///
/// One object per subscription, so that the devices without one stay small.
final class SubscriptionKeys: Sendable, Hashable, Codable {
  /// 65 bytes.
  let p256dh: String
  /// 16 bytes.
  let auth: String
  /// 32 bytes, for a device that the emulator decrypts for; `nil` leaves payloads as they are.
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

/// A handle that a device had before, and why it has it no more.
struct FormerHandle: Sendable {
  let handle: DeviceHandle
  let registration: Device.Registration
}
