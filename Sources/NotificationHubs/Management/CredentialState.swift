import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A hub's credential for a push service, without its secrets: Belfry's reply to `GET
/// /{hub}/credentials`.
public struct CredentialState: Hashable, Sendable {
  /// The platform of the push service.
  public var platform: PushPlatform
  /// The kind of credential: `token`, `certificate`, `service account`, `VAPID pair`, `Entra
  /// secret` or `secret`.
  public var kind: String
  /// The identifier of the app at its push service, such as a bundle id or a project.
  public var app: String?
  /// The URL that the hub pushes to, if the credential sets it.
  public var endpoint: String?
  /// The time of the last change.
  public var modifiedAt: Date
  /// The time at which the credential expires; `nil` if it does not.
  public var expiresAt: Date?

  /// Creates a state.
  public init(
    platform: PushPlatform, kind: String, app: String? = nil, endpoint: String? = nil,
    modifiedAt: Date, expiresAt: Date? = nil
  ) {
    self.platform = platform
    self.kind = kind
    self.app = app
    self.endpoint = endpoint
    self.modifiedAt = modifiedAt
    self.expiresAt = expiresAt
  }

  /// `{"credentials":[{"platform":"apns","kind":"token","app":"com.example.app","modifiedAt":"…"}]}`
  package static func json(_ states: [CredentialState]) -> [UInt8] {
    JSONWriter.object { writer in
      writer.objects("credentials", states) { writer, state in
        writer.member("platform", state.platform.rawValue)
        writer.member("kind", state.kind)
        writer.member("app", state.app)
        writer.member("endpoint", state.endpoint)
        writer.member("modifiedAt", state.modifiedAt)
        writer.member("expiresAt", state.expiresAt)
      }
    }
  }

  /// Decodes the reply.
  package static func read(
    json: some Collection<UInt8>
  ) throws(WireFormatError) -> [CredentialState] {
    guard let items = try JSONValue.parse(json).array("credentials") else {
      throw WireFormatError("The reply is no list of credentials.")
    }
    return items.compactMap { item in
      guard let platform = item.platform, let modifiedAt = item.date("modifiedAt")
      else { return nil }
      return CredentialState(
        platform: platform, kind: item.text("kind") ?? "", app: item.text("app"),
        endpoint: item.text("endpoint"), modifiedAt: modifiedAt, expiresAt: item.date("expiresAt"))
    }
  }
}

/// The result of trying a credential with its push service: Belfry's reply to `POST
/// /{hub}/credentials/{platform}/probe`.
public struct CredentialProbe: Hashable, Sendable {
  /// The result of the attempt.
  public enum Verdict: String, Sendable {
    /// The service accepts the credential.
    case accepted
    /// The service does not know the credential or refuses to serve it.
    case refused
    /// No connection or no reply.
    case unreachable
    /// The service's reply allows no conclusion about the credential.
    case undecided
    /// Without a device's address there is no way to try the credential.
    case untried
  }

  /// The result of the attempt.
  public let verdict: Verdict
  /// The service's own reason, such as `InvalidProviderToken`, or the transport's; `nil` on
  /// success.
  public let reason: String?
  /// An explanation for people: the request made, its meaning, and the remedy. Contains no secret.
  public let text: String

  /// Creates a result.
  public init(_ verdict: Verdict, reason: String? = nil, _ text: String) {
    self.verdict = verdict
    self.reason = reason
    self.text = text
  }

  /// `{"verdict":"refused","reason":"InvalidProviderToken","text":"…"}`
  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("verdict", verdict.rawValue)
      writer.member("reason", reason)
      writer.member("text", text)
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let verdict = root.text("verdict").flatMap(Verdict.init) else {
      throw WireFormatError("The reply is no answer of a push service about a credential.")
    }
    self.init(verdict, reason: root.text("reason"), root.text("text") ?? "")
  }
}
