#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A target of notifications: a device's channel with its tags, for native sends or for one
/// template (docs/protocol/rest.md, section 3).
///
/// ```swift
/// let native = Registration(platform: .apns, channel: .apns(token), tags: ["news"])
/// let template = Registration(
///   platform: .fcmv1, channel: .handle(id),
///   kind: .template(PushTemplate(body: #"{"message":{…}}"#), name: "main"))
/// let stored = try await client.create(template)
/// ```
/// An ``Installation`` is simpler for new apps; the hub also stores it as registrations.
public struct Registration: Hashable, Sendable {
  /// The kind of notifications that a registration receives.
  public enum Kind: Hashable, Sendable {
    /// Native notifications of its platform.
    case native
    /// Template notifications. The tags of the template are ignored; those of the registration
    /// apply.
    case template(PushTemplate, name: String?)
  }

  /// The push service of the device.
  public var platform: PushPlatform
  /// The address of the device at its push service.
  public var channel: PushChannel
  /// The kind of notifications that the registration receives.
  public var kind: Kind
  /// The tags, at most 60.
  public var tags: [Tag]
  /// Values for templates, in addition to those of the message.
  public var pushVariables: [String: String]
  /// The secondary tile that the channel belongs to; Windows and Windows Phone only.
  public var secondaryTileName: String?

  /// The id, assigned by the hub or chosen by the caller for create-or-update.
  public var registrationID: String?
  /// The version of the registration, which increases with every change; set by the hub.
  public var etag: String?
  /// The time at which the hub deletes the registration, `nil` for never; set by the hub.
  public var expirationTime: Date?

  /// Creates a registration; ``validated()`` checks it.
  public init(
    platform: PushPlatform, channel: PushChannel, kind: Kind = .native, tags: [Tag] = [],
    pushVariables: [String: String] = [:], secondaryTileName: String? = nil,
    registrationID: String? = nil, etag: String? = nil, expirationTime: Date? = nil
  ) {
    self.platform = platform
    self.channel = channel
    self.kind = kind
    self.tags = tags
    self.pushVariables = pushVariables
    self.secondaryTileName = secondaryTileName
    self.registrationID = registrationID
    self.etag = etag
    self.expirationTime = expirationTime
  }

  /// The template, if the registration has one.
  public var template: PushTemplate? {
    if case .template(let template, _) = kind { template } else { nil }
  }

  /// The name of the template, if it has one.
  public var templateName: String? {
    if case .template(_, let name) = kind { name } else { nil }
  }

  /// Whether the hub created the registration for an installation: only such registrations have the
  /// tag.
  public var isFromInstallation: Bool {
    tags.contains { $0.isImplicit && $0.folded.hasPrefix("$installationid:") }
  }
}

extension PushTemplate {
  /// The priority of an Apple template apart from its headers: 0 to 255, or an expression. It is
  /// stored as the header `X-Apns-Priority`; a header `apns-priority` takes precedence.
  public var applePriority: String? {
    get { header(WireName.olderApnsPriority) }
    set { setHeader(WireName.olderApnsPriority, newValue) }
  }

  /// The message type of a Baidu template: 0 for a message, 1 for a notification. It is stored as
  /// the header `X-Baidu-Message-Type`.
  public var baiduMessageType: String? {
    get { header(WireName.baiduMessageType) }
    set { setHeader(WireName.baiduMessageType, newValue) }
  }

  /// The value of the header with that name, in any letter case.
  package func header(_ name: String) -> String? {
    let folded = name.lowercased()
    return headers[name] ?? headers.first { $0.key.lowercased() == folded }?.value
  }

  private mutating func setHeader(_ name: String, _ value: String?) {
    let folded = name.lowercased()
    headers = headers.filter { $0.key.lowercased() != folded }
    headers[name] = value
  }
}
