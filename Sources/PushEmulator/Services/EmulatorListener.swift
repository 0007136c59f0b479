/// The addresses of the emulator beside APNs' two and the control API's (emulator.md, section 1).
/// A service that speaks HTTP/2 and HTTP/1.1 has a port for each.
package enum EmulatorListener: String, CaseIterable, Sendable {
  /// FCM's send and token endpoints, HTTP/2.
  case fcm
  /// The same over HTTP/1.1.
  case fcmHTTP1
  /// Web Push, HTTP/2.
  case webPush
  /// The same over HTTP/1.1.
  case webPushHTTP1
  /// WNS' token services and channels, HTTP/1.1 as at Microsoft; so with the rest.
  case wns
  case adm
  case baidu
  case xiaomi

  /// The port when none is asked for.
  package var standardPort: UInt16 {
    switch self {
    case .fcm: 9450
    case .fcmHTTP1: 9451
    case .webPush: 9470
    case .webPushHTTP1: 9471
    case .wns: 9460
    case .adm: 9480
    case .baidu: 9481
    case .xiaomi: 9482
    }
  }

  /// What the control API calls it.
  var service: PushService {
    switch self {
    case .fcm, .fcmHTTP1: .fcm
    case .webPush, .webPushHTTP1: .webpush
    case .wns: .wns
    case .adm: .adm
    case .baidu: .baidu
    case .xiaomi: .xiaomi
    }
  }

  /// The service's name in the control API; its addresses share it.
  package var serviceName: String { service.rawValue }

  var isHTTP2: Bool {
    switch self {
    case .fcm, .webPush: true
    case .fcmHTTP1, .webPushHTTP1, .wns, .adm, .baidu, .xiaomi: false
    }
  }
}

/// Base URLs of the services, without a slash at the end: what they tell clients and expect in
/// tokens.
struct ServiceOrigins: Sendable {
  private var origins: [PushService: [String]] = [:]

  /// The first is the one to hand out; one over HTTP/1.1 comes after that over HTTP/2.
  func all(_ service: PushService) -> [String] { origins[service] ?? [] }

  func first(_ service: PushService) -> String { all(service).first ?? "" }

  /// - Parameter port: As bound.
  mutating func add(_ listener: EmulatorListener, isSecure: Bool, port: UInt16) {
    let scheme = isSecure ? "https" : "http"
    origins[listener.service, default: []].append("\(scheme)://127.0.0.1:\(port)")
  }

  /// Whether a client that named this origin meant the service: one of its own, by any of this
  /// machine's names.
  func isOwn(_ origin: String, of service: PushService) -> Bool {
    all(service).contains { own in
      origin == own || origin == own.replacing("//127.0.0.1:", with: "//localhost:")
        || origin == own.replacing("//127.0.0.1:", with: "//[::1]:")
    }
  }
}
