import HTTP2
import Wire

/// A host of a push service on the internet, for which the proxy puts a stand-in.
struct PublicHost: Sendable {
  /// In lower case; a leading `*.` stands for one label.
  let name: String
  let ports: Set<UInt16>
  /// The stand-in for clients that offer `h2` by ALPN, and the one for others.
  let listeners: (http2: EmulatorListener, http1: EmulatorListener)

  private init(
    _ name: String, _ http2: EmulatorListener, _ http1: EmulatorListener? = nil,
    ports: Set<UInt16> = [443]
  ) {
    self.name = name
    self.ports = ports
    listeners = (http2, http1 ?? http2)
  }

  /// The hosts of WNS's channels.
  static let channels = "*.notify.windows.com"

  static let all: [PublicHost] = [
    // Apple takes pushes on both ports (docs/protocol/push-services/apns.md, section 1).
    .init("api.push.apple.com", .apnsProduction, ports: [443, 2197]),
    .init("api.sandbox.push.apple.com", .apnsSandbox, ports: [443, 2197]),
    .init("api.development.push.apple.com", .apnsSandbox, ports: [443, 2197]),
    .init("api-manage-broadcast.push.apple.com", .apnsChannelsProduction, ports: [2196]),
    .init("api-manage-broadcast.sandbox.push.apple.com", .apnsChannelsSandbox, ports: [2195]),
    // Google's Web Push is at FCM's host, too; `StandIn.guest(for:)` tells them apart.
    .init("fcm.googleapis.com", .fcm, .fcmHTTP1),
    .init("oauth2.googleapis.com", .fcm, .fcmHTTP1),
    .init("iid.googleapis.com", .fcm, .fcmHTTP1),
    // Of the token service, too: key files that Google issued years ago have these.
    .init("accounts.google.com", .fcm, .fcmHTTP1),
    .init("www.googleapis.com", .fcm, .fcmHTTP1),
    .init(channels, .wns),
    .init("login.live.com", .wns),
    .init("login.microsoftonline.com", .wns),
    .init("updates.push.services.mozilla.com", .webPush, .webPushHTTP1),
    .init("web.push.apple.com", .webPush, .webPushHTTP1),
  ]

  /// The entry for a host in lower case.
  static func named(_ host: String) -> PublicHost? {
    all.first { entry in
      guard entry.name.hasPrefix("*.") else { return entry.name == host }
      let (label, rest) = (host.prefix { $0 != "." }, host.drop { $0 != "." })
      return !label.isEmpty && rest == entry.name.dropFirst()
    }
  }

  /// The domains that the emulator's authority is limited to, so that its key opens nothing else.
  static let domains = all.map { $0.name.hasPrefix("*.") ? String($0.name.dropFirst(2)) : $0.name }

  /// The names for the certificate of a service's stand-in.
  static func names(of service: PushService) -> [String] {
    all.filter { $0.listeners.http2.service == service }.map(\.name)
  }
}

extension HTTP2ServerRequest {
  /// The host of `:authority`, without its port.
  private var host: ProxyHost? {
    let authority = authority
    return ProxyHost(authority)
      ?? authority.lastIndex(of: ":").flatMap { ProxyHost(authority[..<$0]) }
  }

  /// The push service's host that it names, rather than the stand-in's own address.
  var publicHost: PublicHost? {
    if case .name(let name)? = host { PublicHost.named(name) } else { nil }
  }

  /// Whether it names a host of the service, or an address.
  func isFor(_ service: PushService) -> Bool {
    guard case .name(let name)? = host, name != "localhost" else { return true }
    return PublicHost.named(name)?.listeners.http2.service == service
  }
}

extension EmulatorOptions {
  /// Whether requests to a service must name one of its hosts: the proxy leads to it by the tunnel,
  /// and sees no request. Remote clients may have names of their own for this machine.
  var limitsHosts: Bool { proxy != nil && !allowsRemoteClients }
}

/// Web Push at the vendors' own addresses.
extension WebPushFlavor {
  var publicHost: String {
    switch self {
    case .rfc, .mozilla: "updates.push.services.mozilla.com"
    case .google: "fcm.googleapis.com"
    case .apple: "web.push.apple.com"
    }
  }

  /// The address of a subscription as a browser of the vendor would be given it.
  func publicEndpoint(_ id: String) -> String {
    let path =
      switch self {
      case .rfc, .mozilla: "/wpush/v2/"
      case .google: "/fcm/send/"
      case .apple: "/"
      }
    return "https://" + publicHost + path + id
  }
}
