import Foundation
package import NotificationHubs

/// The identity of a user, in the normalized spelling used for all comparisons.
///
/// Names that people type and subjects of an OpenID provider are two name spaces: the user `carol`
/// in the user file and the subject `carol` in a token are different people. Typed names are
/// lower-cased, so that two of them never differ only in letter case; subjects are compared
/// exactly.
package struct UserName: Hashable, Sendable, CustomStringConvertible {
  /// The origin of a name.
  package enum Kind: String, Sendable, CaseIterable {
    /// Typed by a person, in the user file.
    case name
    /// The subject of a token of the OpenID provider.
    case subject
    /// An email address that the provider has verified. Only operators of the hub can have one: an
    /// address can pass to another person, so no device belongs to one.
    case email
    /// A name stored by a version without separate name spaces, which could be of either. No user
    /// signs in as one.
    case old
  }

  /// The prefix of the tutorials' tag.
  package static let tagPrefix = "username:"
  private static let identifierLimit = Tag.maximumLength - tagPrefix.count
  /// A mark with a colon, which no identifier of a typed name contains.
  private static func mark(of kind: Kind) -> String {
    switch kind {
    case .name, .old: ""
    case .subject: "sub:"
    case .email: "mail:"
    }
  }

  package let kind: Kind
  package let text: String
  /// The name in characters that are valid in a tag and a user id, unique per user.
  package let identifier: String

  /// The typed name; others with their kind.
  package var description: String { kind == .name ? text : key }
  /// The form that the store compares: `name:alice`, `subject:auth0|Alice`.
  package var key: String { "\(kind.rawValue):\(text)" }

  /// Creates a name that a person types.
  /// - Returns: `nil` for a name that is empty, too long, or has control characters.
  package init?(typed name: String) {
    // Checked before folding, which costs several times the length.
    guard name.utf8.count <= 4 * Self.identifierLimit else { return nil }
    self.init(Self.folded(name), .name)
  }

  /// Normalizes typed names, since keyboards and systems compose accents differently.
  private static func folded(_ name: String) -> String {
    name.precomposedStringWithCanonicalMapping.lowercased().precomposedStringWithCanonicalMapping
  }

  /// Creates the name for the subject of a token, which is compared exactly.
  package init?(subject: String) { self.init(subject, .subject) }

  /// Creates the name for a verified address, which is compared exactly: the part before the `@`
  /// may be case-sensitive.
  package init?(email: String) {
    guard email.contains("@") else { return nil }
    self.init(email, .email)
  }

  /// Parses ``key``.
  package init?(key: String) {
    guard let colon = key.firstIndex(of: ":"), let kind = Kind(rawValue: String(key[..<colon]))
    else { return nil }
    let text = String(key[key.index(after: colon)...])
    self.init(kind == .name ? Self.folded(text) : text, kind)
  }

  private init?(_ name: String, _ kind: Kind) {
    guard !name.isEmpty, name.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    else { return nil }
    let identifier = Self.mark(of: kind) + Self.escaped(name)
    guard identifier.utf8.count <= Self.identifierLimit, !Self.escaped(name).hasDotSegment else {
      return nil
    }
    self.kind = kind
    text = name
    self.identifier = identifier
  }

  /// Compares bytes: texts that Swift considers equal may be two subjects.
  package static func == (one: UserName, other: UserName) -> Bool {
    one.kind == other.kind && one.identifier == other.identifier
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(identifier)
  }

  /// The tag of the user's devices, `username:alice`.
  package var tag: Tag { Tag(rawValue: Self.tagPrefix + identifier) }

  /// Escapes a name: lower-case letters, digits and `_ @ . -` are kept, every other byte becomes
  /// `#` and two hexadecimal digits.
  private static func escaped(_ name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "_"), UInt8(ascii: "@"), UInt8(ascii: "."), UInt8(ascii: "-"):
        text.unicodeScalars.append(UnicodeScalar(byte))
      default:
        let digits = String(byte, radix: 16)
        text += "#" + (digits.count == 1 ? "0" : "") + digits
      }
    }
    return text
  }
}

/// The reason why a name is ambiguous or invalid.
package enum UserReferenceFault: Error, Hashable, CustomStringConvertible {
  case notAName(String)
  case ambiguous(String)
  case unknownKind(String)

  package var description: String {
    switch self {
    case .notAName(let text): "'\(text)' is not a user's name"
    case .ambiguous(let text):
      "'\(text)' may be a name of the user file or a subject of a token: write 'name:\(text)' or "
        + "'subject:\(text)'"
    case .unknownKind(let text): "'\(text)' is of a kind that nobody signs in with here"
    }
  }
}

extension UserName {
  /// Resolves the name in a request or an option: `name:carol`, `subject:Carol`, or the bare name
  /// if only one kind of user can sign in.
  ///
  /// - Parameter kinds: The kinds of users that can sign in.
  /// - Throws: ``UserReferenceFault``; ambiguous names are never guessed.
  package init(reference: String, kinds: Set<Kind>) throws(UserReferenceFault) {
    if let user = UserName(key: reference) {
      guard kinds.contains(user.kind) else { throw .unknownKind(reference) }
      self = user
      return
    }
    guard kinds.count == 1, let kind = kinds.first else { throw .ambiguous(reference) }
    let user = kind == .name ? UserName(typed: reference) : UserName(subject: reference)
    guard let user else { throw .notAName(reference) }
    self = user
  }
}
