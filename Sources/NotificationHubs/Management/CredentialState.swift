import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A hub's credential of a push service without its secrets: Belfry's answer to
/// `GET /{hub}/credentials`.
public struct CredentialState: Hashable, Sendable {
  public var platform: PushPlatform
  /// What proves who the hub is: `token`, `certificate`, `service account`, `VAPID pair`, `Entra
  /// secret` or `secret`.
  public var kind: String
  /// What names the app at its push service, such as a bundle id or a project.
  public var app: String?
  /// Where the hub pushes to, if the credential says so.
  public var endpoint: String?
  public var modifiedAt: Date
  /// When it stops working by itself; `nil` when it does not.
  public var expiresAt: Date?

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

  /// Reads the reply.
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

/// What a push service said about a credential that was tried with it: Belfry's answer to
/// `POST /{hub}/credentials/{platform}/probe`.
public struct CredentialProbe: Hashable, Sendable {
  public enum Verdict: String, Sendable {
    /// The service knows the credential.
    case accepted
    /// It does not, or will not serve it.
    case refused
    /// No connection, or no answer.
    case unreachable
    /// It answered something that says nothing about the credential.
    case undecided
    /// There is nobody to ask without a device's address.
    case untried
  }

  public let verdict: Verdict
  /// The service's own word (`InvalidProviderToken`), or the transport's; `nil` on success.
  public let reason: String?
  /// For people: what was tried, what that says, what to do. Holds no secret.
  public let text: String

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

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let verdict = root.text("verdict").flatMap(Verdict.init) else {
      throw WireFormatError("The reply is no answer of a push service about a credential.")
    }
    self.init(verdict, reason: root.text("reason"), root.text("text") ?? "")
  }
}
