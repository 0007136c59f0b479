import Foundation
package import HubCore

/// Where a credential's pushes go.
package struct APNsEndpoint: Hashable, Sendable {
  package enum Environment: Sendable {
    case development
    case production
  }

  package let host: String
  package let port: UInt16
  /// `nil` for a host that is not Apple's: an emulator may be either.
  package let environment: Environment?

  /// Host, and port unless it is 443, as `:authority` wants it.
  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  private static let hosts: [String: Environment] = [
    "api.push.apple.com": .production,
    "api.sandbox.push.apple.com": .development,
    "api.development.push.apple.com": .development,
  ]

  /// The hosts of the binary protocol, which ended in 2021; stored credentials still name them.
  private static let retired: [String: String] = [
    "gateway.push.apple.com": "api.push.apple.com",
    "feedback.push.apple.com": "api.push.apple.com",
    "gateway.sandbox.push.apple.com": "api.sandbox.push.apple.com",
    "feedback.sandbox.push.apple.com": "api.sandbox.push.apple.com",
  ]

  /// The same service's other environment; `nil` for a host that is not Apple's.
  var counterpart: APNsEndpoint? {
    switch environment {
    case .production: APNsEndpoint(host: "api.sandbox.push.apple.com", port: port)
    case .development: APNsEndpoint(host: "api.push.apple.com", port: port)
    case nil: nil
    }
  }

  /// Where the channels of this environment are managed
  /// (https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns);
  /// `nil` for a host that is not Apple's.
  var channelManagement: APNsEndpoint? {
    switch environment {
    case .production: APNsEndpoint(host: "api-manage-broadcast.push.apple.com", port: 2196)
    case .development:
      APNsEndpoint(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195)
    case nil: nil
    }
  }

  private init(host: String, port: UInt16) {
    self.host = host
    self.port = port
    environment = Self.hosts[host]
  }

  /// Reads the property `Endpoint`: a host with or without `https://`, port and `/3/device`.
  package init(_ text: String) throws(CredentialError) {
    let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
    let url = trimmed.contains("://") ? trimmed : "https://" + trimmed
    guard let parts = URLComponents(string: url), let name = parts.host?.lowercased(),
      !name.isEmpty, parts.user == nil, parts.query == nil, parts.fragment == nil
    else { throw Self.error("is not an address") }
    guard parts.scheme?.lowercased() == "https" else {
      throw Self.error("must begin with https://, because APNs speaks TLS only")
    }
    guard ["", "/", "/3/device", "/3/device/"].contains(parts.path) else {
      throw Self.error("may have no path other than /3/device")
    }
    let host = name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name
    if let successor = Self.retired[host] {
      (self.host, port) = (successor, 443)
    } else {
      guard let port = UInt16(exactly: parts.port ?? 443), port > 0 else {
        throw Self.error("has no possible port")
      }
      (self.host, self.port) = (host, port)
    }
    environment = Self.hosts[self.host]
  }

  private static func error(_ what: String) -> CredentialError {
    CredentialError(
      """
      Endpoint \(what). Set it to https://api.push.apple.com (production) or \
      https://api.sandbox.push.apple.com (development).
      """)
  }
}
