import Foundation
import HTTPClient
import HubCore

/// What a hub shows WNS: an app's id and secret at one of the two token services (spec `pns/wns.md`
/// sections 2 and 7).
struct WNSCredential: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    /// A Package SID and its secret; all kinds of notification.
    case live
    /// An application of Microsoft Entra; toast and raw only.
    case entra
  }

  let kind: Kind
  let tokenURL: String
  let clientID: String
  /// Secret.
  let clientSecret: String

  private static let liveURL = "https://login.live.com/accesstoken.srf"
  private static let sidScheme = "ms-app://"

  init(_ credential: PushCredential) throws(CredentialError) {
    let url = credential["WindowsLiveEndpoint"].flatMap { Self.trimmed($0) }
    if let tenant = credential["TenantId"].flatMap({ Self.trimmed($0) }) {
      guard tenant.utf8.allSatisfy({ Self.isNameByte($0) }) else {
        throw CredentialError(
          "TenantId is no tenant. Copy the Directory (tenant) ID of the app's registration.")
      }
      kind = .entra
      tokenURL = url ?? "https://login.microsoftonline.com/\(tenant)/oauth2/v2.0/token"
      clientID = try Self.required("ClientId", of: credential)
      clientSecret = try Self.required("ClientSecret", of: credential)
    } else {
      if credential["PackageSid"] == nil, credential["WnsCertificate"] != nil {
        throw CredentialError(
          "WnsCertificate is kept but not used: WNS takes a PackageSid with its SecretKey, or a "
            + "TenantId with ClientId and ClientSecret.")
      }
      kind = .live
      tokenURL = url ?? Self.liveURL
      clientID = try Self.packageSID(try Self.required("PackageSid", of: credential))
      clientSecret = try Self.required("SecretKey", of: credential)
    }
    guard HTTPAddress(tokenURL)?.scheme == "https" else {
      throw CredentialError(
        "WindowsLiveEndpoint is no https address. Leave it out for \(Self.liveURL).")
    }
  }

  /// With or without `ms-app://`; sent with it.
  private static func packageSID(_ text: String) throws(CredentialError) -> String {
    let sid =
      text.lowercased().hasPrefix(sidScheme) ? String(text.dropFirst(sidScheme.count)) : text
    let parts = sid.lowercased().split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 5, parts.prefix(4) == ["s", "1", "15", "2"],
      parts.dropFirst(4).allSatisfy({ !$0.isEmpty && $0.allSatisfy(\.isNumber) })
    else {
      throw CredentialError(
        "PackageSid is no Package SID. It looks like ms-app://s-1-15-2-… and stands in Partner "
          + "Center under the app's identity.")
    }
    return sidScheme + sid
  }

  private static func required(
    _ name: String, of credential: PushCredential
  ) throws(CredentialError) -> String {
    guard let value = credential[name].flatMap({ trimmed($0) }) else {
      throw CredentialError("\(name) is missing.")
    }
    return value
  }

  private static func trimmed(_ text: String) -> String? {
    let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
    return text.isEmpty ? nil : text
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// What the token service is asked with, in the order of the vendor's example.
  var tokenForm: [(name: String, value: String)] {
    let scope =
      switch kind {
      case .live: "notify.windows.com"
      case .entra: "https://wns.windows.com/.default"
      }
    return [
      ("grant_type", "client_credentials"), ("client_id", clientID),
      ("client_secret", clientSecret), ("scope", scope),
    ]
  }
}
