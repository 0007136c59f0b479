import HTTPClient

/// Which hosts subscriptions may point at (spec `pns/web-push.md` section 1): those of the browsers'
/// vendors, and those the operator names.
struct WebPushHosts: Sendable {
  enum Admission: Equatable, Sendable {
    /// Only at an address of the public network, and the usual port.
    case publicOnly
    /// Wherever it is: the operator has named it.
    case anywhere
  }

  /// A name that begins with a dot stands for all below it.
  static let vendors = [
    "updates.push.services.mozilla.com", "fcm.googleapis.com", "web.push.apple.com",
    ".notify.windows.com",
  ]

  /// Where on Google's host push services are; the rest of it is none of a subscription's business.
  private static let googlePaths = ["/fcm/send/", "/wp/"]

  private let named: [String]

  /// - Parameter named: ``PushGatewaysConfiguration/allowedHosts``.
  init(_ named: [String]) { self.named = named.map { $0.lowercased() } }

  /// - Returns: `nil` for a host that is not allowed.
  func admission(of origin: Origin) -> Admission? {
    if HTTPAddress.isHost(origin.host, in: named) { return .anywhere }
    return origin.port == 443 && HTTPAddress.isHost(origin.host, in: Self.vendors)
      ? .publicOnly : nil
  }

  /// Whether a push may go to this path of an origin that is allowed.
  func allows(_ path: ArraySlice<UInt8>, of origin: Origin) -> Bool {
    guard origin.host == "fcm.googleapis.com" else { return true }
    return Self.googlePaths.contains { path.starts(with: $0.utf8) }
  }
}
