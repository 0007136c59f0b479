import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The devices that a handle belongs to: Belfry's reply to `POST /{hub}/devices/search`.
public struct DeviceSearch: Hashable, Sendable {
  /// A registration that uses the handle, native or for one template.
  public struct Registration: Hashable, Sendable {
    /// The id of the registration.
    public var registrationID: String
    /// The platform of the registration.
    public var platform: PushPlatform
    /// The id of the installation; `nil` if a client created the registration directly.
    public var installationID: String?
    /// The tags of the registration.
    public var tags: [Tag]
    /// The template's name, empty if it has none; `nil` for a native registration.
    public var template: String?
    /// The time at which the registration expires; `nil` for never.
    public var expirationTime: Date?
    /// The host that the next push is sent to first. APNs has one host for builds from Xcode and
    /// one for all others: this is the one where the token last worked, and before that the
    /// credential's. `nil` for other platforms, and in a hub without a credential.
    public var endpoint: String?
    /// The time when an app last wrote the registration or confirmed it unchanged, or somebody else
    /// changed it; `nil` from a hub that does not report it.
    public var confirmedTime: Date?

    /// Creates a registration.
    public init(
      registrationID: String, platform: PushPlatform, installationID: String? = nil,
      tags: [Tag] = [], template: String? = nil, expirationTime: Date? = nil,
      endpoint: String? = nil, confirmedTime: Date? = nil
    ) {
      self.registrationID = registrationID
      self.platform = platform
      self.installationID = installationID
      self.tags = tags
      self.template = template
      self.expirationTime = expirationTime
      self.endpoint = endpoint
      self.confirmedTime = confirmedTime
    }
  }

  /// The installations, including for a week those whose handle the push service has reported dead.
  public var installations: [Installation]
  /// The registrations.
  public var registrations: [Registration]
  /// Whether the handle has more devices than are listed.
  public var hasMore: Bool

  /// Creates a search result.
  public init(
    installations: [Installation] = [], registrations: [Registration] = [], hasMore: Bool = false
  ) {
    self.installations = installations
    self.registrations = registrations
    self.hasMore = hasMore
  }
}

extension DeviceSearch {
  private static let handle = "handle"

  /// `{"handle":"…"}`
  package static func request(_ handle: String) -> [UInt8] {
    JSONWriter.object { $0.member(Self.handle, handle) }
  }

  /// Reads the handle from the request: a string, or a subscription as a JSON object as pages have
  /// it.
  package static func handle(
    in body: some Collection<UInt8>
  ) throws(WireFormatError) -> String {
    switch try JSONValue.parse(body)[handle] {
    case .string(let text)?: return text
    case .object(let members)?: return JSONValue.object(members).jsonText
    default:
      throw .body("A search has the member handle: a token, a channel or a subscription.")
    }
  }

  /// `{"installations":[…],"registrations":[…]}`, with `"more":true` if the lists are truncated.
  package var json: [UInt8] {
    var out = InstallationList.json(installations)
    out.removeLast()
    out.append(UInt8(ascii: ","))
    let rest = JSONWriter.object(capacity: 256 * registrations.count) { writer in
      writer.objects("registrations", registrations) { writer, one in
        writer.member("registrationId", one.registrationID)
        writer.member("platform", one.platform.rawValue)
        writer.member("installationId", one.installationID)
        writer.array("tags", one.tags) { $0.string($1.rawValue) }
        writer.member("template", one.template)
        writer.member("expirationTime", one.expirationTime)
        writer.member("endpoint", one.endpoint)
        writer.member("confirmedTime", one.confirmedTime)
      }
      if hasMore { writer.member("more", true) }
    }
    return out + rest.dropFirst()
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let installations = root.array("installations") else {
      throw WireFormatError("The reply is no result of a search.")
    }
    self.init(hasMore: root.flag("more") ?? false)
    for item in installations { self.installations.append(try Installation.decode(item)) }
    registrations = root.items("registrations").compactMap { item in
      // A platform newer than this build is skipped.
      guard let id = item.text("registrationId"), let platform = item.platform else { return nil }
      return Registration(
        registrationID: id, platform: platform, installationID: item.text("installationId"),
        tags: item.items("tags").compactMap { $0.scalarText.map(Tag.init(rawValue:)) },
        template: item.text("template"), expirationTime: item.date("expirationTime"),
        endpoint: item.text("endpoint"), confirmedTime: item.date("confirmedTime"))
    }
  }

  /// Creates the entry for a registration as stored by the hub.
  package static func registration(
    _ one: NotificationHubs.Registration, id: String, installationID: String?, endpoint: String?,
    confirmedTime: Date
  ) -> Registration {
    Registration(
      registrationID: id, platform: one.platform, installationID: installationID, tags: one.tags,
      template: one.template.map { _ in one.templateName ?? "" },
      expirationTime: one.expirationTime, endpoint: endpoint, confirmedTime: confirmedTime)
  }
}
