import Foundation
import HTTPClient
import HubCore
import NotificationHubs

/// What a hub shows Amazon Device Messaging (spec `pns/adm.md` sections 2 and 5).
struct ADMCredential: Hashable, Sendable {
  let clientID: String
  /// Secret.
  let clientSecret: String
  let tokenURL: String
  /// The address of a push, before and after the registration id.
  let sendURL: [String]

  private static let standardTokenURL = "https://api.amazon.com/auth/O2/token"
  private static let standardSendURL = "https://api.amazon.com/messaging/registrations/{0}/messages"

  init(_ credential: PushCredential) throws(CredentialError) {
    clientID = try Self.text("ClientId", of: credential)
    clientSecret = try Self.text("ClientSecret", of: credential)
    let url = Self.trimmed(credential["AuthTokenUrl"])
    tokenURL = url ?? Self.standardTokenURL
    guard HTTPAddress(tokenURL)?.scheme == "https" else {
      throw CredentialError(
        "AuthTokenUrl is no https address. Leave it out for \(Self.standardTokenURL).")
    }
    let template = Self.trimmed(credential["SendUrlTemplate"]) ?? Self.standardSendURL
    let parts = template.components(separatedBy: "{0}")
    guard parts.count == 2, HTTPAddress(parts.joined(separator: "x"))?.scheme == "https" else {
      throw CredentialError(
        "SendUrlTemplate is no https address with {0} where the registration id goes. Leave it out "
          + "for \(Self.standardSendURL).")
    }
    sendURL = parts
  }

  private static func text(
    _ name: String, of credential: PushCredential
  ) throws(CredentialError) -> String {
    guard let value = trimmed(credential[name]) else {
      throw CredentialError("\(name) is missing. It stands in the app's security profile.")
    }
    return value
  }

  private static func trimmed(_ text: String?) -> String? {
    let text = text?.trimmingCharacters(in: .whitespacesAndNewlines)
    return text == "" ? nil : text
  }

  /// What the token service is asked with, in the order of the vendor's example.
  var tokenForm: [(name: String, value: String)] {
    [
      ("grant_type", "client_credentials"), ("scope", "messaging:push"), ("client_id", clientID),
      ("client_secret", clientSecret),
    ]
  }
}
