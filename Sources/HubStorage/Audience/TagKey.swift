import HubCore
import NotificationHubs

/// What a row of `tag` stands for.
struct TagKey: Hashable, Sendable {
  /// The number in the column `kind`; never reassign one.
  enum Kind: Int64, Sendable {
    /// A tag that clients gave.
    case plain = 0
    /// All native registrations of the platform that the name says.
    case native = 1
    /// All template registrations.
    case template = 2
    /// Native registrations whose handle another one has too.
    case sharedHandle = 3
  }

  let hub: Hub.ID
  let kind: Kind
  /// In lower case.
  let name: String

  static func plain(_ folded: String, hub: Hub.ID) -> TagKey {
    TagKey(hub: hub, kind: .plain, name: folded)
  }
  static func sharedHandle(hub: Hub.ID) -> TagKey {
    TagKey(hub: hub, kind: .sharedHandle, name: "")
  }
  static func everyone(_ kind: AudienceQuery.Kind, hub: Hub.ID) -> TagKey {
    switch kind {
    case .native(let platform): TagKey(hub: hub, kind: .native, name: platform.rawValue)
    case .template: TagKey(hub: hub, kind: .template, name: "")
    }
  }
}

/// A tag that the hub gives to all registrations of an installation (spec `tags.md` 1.1). Its
/// members are found through the installation, so it has no rows of its own.
enum ImplicitTag: Hashable {
  /// The id, exactly.
  case installation(String)
  /// The user's id in lower case.
  case user(String)
  /// Starts like an implicit tag but is none; nobody carries it.
  case unknown

  /// - Parameter folded: ``Tag/folded``; `nil` comes back for a plain one.
  init?(folded: String) {
    guard folded.utf8.first == UInt8(ascii: "$") else { return nil }
    if let id = Self.value(of: folded, keyword: "$installationid:{") {
      self = .installation(id)
    } else if let user = Self.value(of: folded, keyword: "$userid:{") {
      self = .user(user)
    } else {
      self = .unknown
    }
  }

  private static func value(of folded: String, keyword: String) -> String? {
    guard folded.hasPrefix(keyword), folded.utf8.last == UInt8(ascii: "}") else { return nil }
    let value = folded.dropFirst(keyword.count).dropLast()
    return value.isEmpty ? nil : String(value)
  }
}
