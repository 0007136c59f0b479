/// The push services that have a stand-in here, by their names in the control API
/// (docs/protocol/emulator.md, section 2). A new one is a case, a line below, and its folder.
enum PushService: String, CaseIterable, Sendable, Codable {
  case apns, fcm, wns, webpush, adm, baidu, xiaomi

  var standIn: any StandIn.Type {
    switch self {
    case .apns: APNsStandIn.self
    case .fcm: FCMStandIn.self
    case .wns: WNSStandIn.self
    case .webpush: WebPushStandIn.self
    case .adm: ADMStandIn.self
    case .baidu: BaiduStandIn.self
    case .xiaomi: XiaomiStandIn.self
    }
  }
}

/// The name of a service in fault rules, journal and statistics: its own, or one such as
/// `fcm-token` where its token endpoint is distinguished.
struct ServiceName: Sendable, Hashable {
  let service: PushService
  let text: String
  /// The index in `all`.
  let index: Int

  /// In the order of the services.
  static let all: [ServiceName] = {
    var all: [ServiceName] = []
    for service in PushService.allCases {
      let endings = service.standIn.hasTokenName ? ["", "-token"] : [""]
      for ending in endings {
        all.append(.init(service: service, text: service.rawValue + ending, index: all.count))
      }
    }
    return all
  }()

  private init(service: PushService, text: String, index: Int) {
    (self.service, self.text, self.index) = (service, text, index)
  }

  /// - Precondition: With `ofTokens`, the service has a name for its token endpoint.
  init(_ service: PushService, ofTokens: Bool = false) {
    let index = Self.all.firstIndex { $0.service == service } ?? 0
    self = Self.all[ofTokens ? index + 1 : index]
  }

  init?(_ text: String) {
    guard let found = Self.all.first(where: { $0.text == text }) else { return nil }
    self = found
  }

  /// The values of `pns` in a fault rule and in the journal's filter; the star matches any.
  static var list: String { (all.map(\.text) + ["*"]).joined(separator: ", ") }

  static func == (left: Self, right: Self) -> Bool { left.index == right.index }

  func hash(into hasher: inout Hasher) { hasher.combine(index) }
}

/// An address of a service (docs/protocol/emulator.md, section 1). A service with both HTTP/2 and
/// HTTP/1.1 has a port for each.
package struct EmulatorListener: Hashable, Sendable {
  let service: PushService
  /// The name in `GET /v1/info`.
  let name: String
  /// The default port.
  package let standardPort: UInt16

  init(_ service: PushService, _ name: String = "http1", port: UInt16) {
    (self.service, self.name, standardPort) = (service, name, port)
  }

  /// The listeners of all services except APNs.
  package static let besideAPNs = all.filter { $0.service != .apns }

  static let all = PushService.allCases.flatMap { $0.standIn.listeners }

  /// The service's name in the control API; its addresses share it.
  package var serviceName: String { service.rawValue }

  package var isHTTP2: Bool { name != "http1" }
}
