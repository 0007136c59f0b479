import HubCore
import NotificationHubs
import SQLDatabase

/// The identity of a row of `tag`.
struct TagKey: Hashable, Sendable {
  /// The number in the column `kind`; never reassign one.
  enum Kind: Int64, Sendable {
    /// A tag that clients gave.
    case plain = 0
    /// All native registrations of the platform given by the name.
    case native = 1
    /// All template registrations.
    case template = 2
    /// Native registrations whose handle another one has too.
    case sharedHandle = 3
    /// The template registrations of a platform whose template has a name: ``TemplateKey``.
    case namedTemplate = 4
  }

  let hub: Hub.ID
  let kind: Kind
  /// The tag in lower case, for a plain one.
  let name: String

  static func plain(_ folded: String, hub: Hub.ID) -> TagKey {
    TagKey(hub: hub, kind: .plain, name: folded)
  }
  static func sharedHandle(hub: Hub.ID) -> TagKey {
    TagKey(hub: hub, kind: .sharedHandle, name: "")
  }
  static func named(_ template: TemplateKey, hub: Hub.ID) -> TagKey {
    TagKey(
      hub: hub, kind: .namedTemplate, name: template.platform.rawValue + "/" + template.name)
  }
  static func everyone(_ kind: AudienceQuery.Kind, hub: Hub.ID) -> TagKey {
    switch kind {
    case .native(let platform): TagKey(hub: hub, kind: .native, name: platform.rawValue)
    case .template: TagKey(hub: hub, kind: .template, name: "")
    }
  }
}

extension TemplateKey {
  /// - Parameter name: Of a ``TagKey/Kind/namedTemplate``.
  init?(tagName name: String) {
    // A platform's name has no slash; a template's may have.
    let parts = name.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let platform = PushPlatform(rawValue: String(parts[0])) else {
      return nil
    }
    self.init(platform: platform, name: String(parts[1]))
  }
}

/// A tag that the hub gives to all registrations of an installation (docs/protocol/tags.md, section
/// 1.1). Its members are found through the installation, so it has no rows of its own.
enum ImplicitTag: Hashable {
  /// The id, exactly.
  case installation(String)
  /// The user's id in lower case.
  case user(String)
  /// A tag that begins like an implicit one but is none; nobody has it.
  case unknown

  /// - Parameter folded: ``Tag/folded``; a plain tag gives `nil`.
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

/// Tags that devices gain and lose.
struct TagWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Maximum number of remembered tag numbers.
  private static let tagLimit = 50_000

  /// The number of a tag, which gets a row if it has none.
  func tagNumber(_ key: TagKey) throws -> Int64 {
    if let known = session.tagNumbers[key] { return known }
    let number = try connection.tagNumber(key) ?? insertTag(key)
    if session.tagNumbers.count >= Self.tagLimit { session.tagNumbers = [:] }
    session.tagNumbers[key] = number
    return number
  }

  private func insertTag(_ key: TagKey) throws -> Int64 {
    if key.kind == .plain { try VocabularyWriter(session).addTag(to: key.hub) }
    session.state.lastTag += 1
    try connection.change(
      "INSERT INTO tag (id, hub, kind, name) VALUES (?1, ?2, ?3, ?4)", session.state.lastTag,
      key.hub,
      key.kind.rawValue, key.name)
    return session.state.lastTag
  }

  /// The tag of a template registration's name; `nil` for a native one. It is determined by the
  /// row, whose column `tags` does not contain it.
  func nameTag(_ key: RegistrationKey, platform: Int64, hub: Hub.ID) throws -> Int64? {
    // A row with an unknown platform was never counted, and must still be deletable.
    guard !key.isNative, let platform = try? PushPlatform(code: platform) else { return nil }
    return try tagNumber(.named(TemplateKey(platform: platform, name: key.name ?? ""), hub: hub))
  }

  /// Adds a tag to a registration or removes it; repeating either is harmless. The row is written
  /// at the end of the transaction, by ``TagMemberWriter/writeTags()``.
  func setTag(_ tag: Int64, of registration: RegistrationID, isMember: Bool) {
    guard let bit = UInt32(exactly: registration) else { return }
    session.changes.append(TagChange(tag: tag, registration: bit, isMember: isMember))
  }
}

extension SQLConnection {
  /// The number of a tag that has a row.
  func tagNumber(_ key: TagKey) throws -> Int64? {
    let row = try statement("SELECT id FROM tag WHERE hub = ?1 AND kind = ?2 AND name = ?3")
    try row.bind(key.hub, key.kind.rawValue, key.name)
    return try row.step() ? row.integer(0) : nil
  }
}
