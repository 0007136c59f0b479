import Foundation
import HTTPClient
import HubCore

/// What a hub shows Baidu Cloud Push (spec `pns/baidu.md`).
struct BaiduCredential: Hashable, Sendable {
  /// The two forms of the interface.
  enum Version: Hashable, Sendable {
    case rest2
    case rest3
  }

  let apiKey: String
  /// Secret.
  let secretKey: String
  /// Where pushes go, without query.
  let url: String
  let version: Version

  private static let standardURL = "https://channel.api.duapp.com/rest/2.0/channel/channel"
  private static let rest3Path = "/rest/3.0"
  private static let singleDevice = "/push/single_device"

  init(_ credential: PushCredential) throws(CredentialError) {
    apiKey = try Self.text("BaiduApiKey", of: credential)
    secretKey = try Self.text("BaiduSecretKey", of: credential)
    var url = Self.trimmed(credential["BaiduEndPoint"]) ?? Self.standardURL
    while url.hasSuffix("/") { url.removeLast() }
    guard let address = HTTPAddress(url), address.scheme == "https", address.query == nil else {
      throw CredentialError(
        "BaiduEndPoint is no https address. Leave it out for \(Self.standardURL), or name "
          + "https://api.tuisong.baidu.com/rest/3.0.")
    }
    if address.path.hasPrefix(Self.rest3Path) {
      version = .rest3
      if !url.hasSuffix(Self.singleDevice) { url += Self.singleDevice }
    } else {
      version = .rest2
      if address.path == "/" || address.path.isEmpty { url += "/rest/2.0/channel/channel" }
    }
    self.url = url
  }

  private static func text(
    _ name: String, of credential: PushCredential
  ) throws(CredentialError) -> String {
    guard let value = trimmed(credential[name]) else {
      throw CredentialError("\(name) is missing. It stands in the app's page of Baidu's console.")
    }
    return value
  }

  private static func trimmed(_ text: String?) -> String? {
    let text = text?.trimmingCharacters(in: .whitespacesAndNewlines)
    return text == "" ? nil : text
  }
}
