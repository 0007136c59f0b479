#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// One target of notifications: a device's channel with its tags, for native sends or for one
/// template (docs/protocol/rest.md, section 3).
///
/// ```swift
/// let native = Registration(platform: .apns, channel: .apns(token), tags: ["news"])
/// let template = Registration(
///   platform: .fcmv1, channel: .handle(id),
///   kind: .template(PushTemplate(body: #"{"message":{…}}"#), name: "main"))
/// let stored = try await client.create(template)
/// ```
/// An ``Installation`` is the simpler way for new apps; the hub keeps it as registrations too.
public struct Registration: Hashable, Sendable {
  /// What a registration can be sent.
  public enum Kind: Hashable, Sendable {
    /// Native sends of its platform.
    case native
    /// Template sends. The tags of the template play no part; those of the registration do.
    case template(PushTemplate, name: String?)
  }

  public var platform: PushPlatform
  public var channel: PushChannel
  public var kind: Kind
  /// At most 60.
  public var tags: [Tag]
  /// Values that templates can use beside those of the message.
  public var pushVariables: [String: String]
  /// The secondary tile that the channel belongs to; Windows and Windows Phone only.
  public var secondaryTileName: String?

  /// Given by the hub, or chosen by the caller for create-or-update.
  public var registrationID: String?
  /// Rises with every change; set by the hub.
  public var etag: String?
  /// When the hub forgets the registration, `nil` for never; set by the hub.
  public var expirationTime: Date?

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

  /// The hub has made the registration of an installation: only then it has such a tag.
  public var isFromInstallation: Bool {
    tags.contains { $0.isImplicit && $0.folded.hasPrefix("$installationid:") }
  }
}

extension PushTemplate {
  /// The priority of an Apple template beside its headers: 0 to 255, or an expression. It is kept
  /// as the header `X-Apns-Priority`, over which a header `apns-priority` wins.
  public var applePriority: String? {
    get { header(WireName.olderApnsPriority) }
    set { setHeader(WireName.olderApnsPriority, newValue) }
  }

  /// The message type of a Baidu template: 0 message, 1 notification. It is kept as the header
  /// `X-Baidu-Message-Type`.
  public var baiduMessageType: String? {
    get { header(WireName.baiduMessageType) }
    set { setHeader(WireName.baiduMessageType, newValue) }
  }

  /// The header of that name, letter case aside.
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
