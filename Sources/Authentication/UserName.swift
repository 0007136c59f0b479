import Foundation
package import NotificationHubs

/// Who somebody is, in the one spelling that everything here compares.
///
/// Names that people type and subjects of an OpenID provider are two name spaces: the user `carol`
/// of the user file and the subject `carol` of a token are different people. Typed names are
/// lower-cased, so that two of them never differ in letter case only; subjects are compared
/// exactly.
package struct UserName: Hashable, Sendable, CustomStringConvertible {
  /// Where a name comes from.
  package enum Kind: String, Sendable, CaseIterable {
    /// Typed by a person, in the user file.
    case name
    /// The subject of a token of the OpenID provider.
    case subject
    /// An e-mail address that the provider says is the bearer's. Operators of the hub only: an
    /// address can pass to somebody else, and no device belongs to one.
    case email
    /// Stored by a version that kept no name spaces apart, and could be either. Nobody signs in as
    /// one.
    case old
  }

  /// What the tutorials' tag begins with.
  package static let tagPrefix = "username:"
  private static let identifierLimit = Tag.maximumLength - tagPrefix.count
  /// No typed name's identifier holds a colon.
  private static func mark(of kind: Kind) -> String {
    switch kind {
    case .name, .old: ""
    case .subject: "sub:"
    case .email: "mail:"
    }
  }

  package let kind: Kind
  package let text: String
  /// The name in characters that a tag and a user id can hold, different for different users.
  package let identifier: String

  /// A typed name as it is; others with their kind.
  package var description: String { kind == .name ? text : key }
  /// What the store compares: `name:alice`, `subject:auth0|Alice`.
  package var key: String { "\(kind.rawValue):\(text)" }

  /// A name that a person types.
  /// - Returns: `nil` for a name that is empty, too long, or has control characters.
  package init?(typed name: String) {
    // Before it is folded, which costs its length several times.
    guard name.utf8.count <= 4 * Self.identifierLimit else { return nil }
    self.init(Self.folded(name), .name)
  }

  /// One spelling of what people type: keyboards and systems compose accents differently.
  private static func folded(_ name: String) -> String {
    name.precomposedStringWithCanonicalMapping.lowercased().precomposedStringWithCanonicalMapping
  }

  /// The subject of a token, compared exactly.
  package init?(subject: String) { self.init(subject, .subject) }

  /// A verified address, compared exactly: what stands before the `@` may tell letter cases apart.
  package init?(email: String) {
    guard email.contains("@") else { return nil }
    self.init(email, .email)
  }

  /// Reads ``key``.
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

  /// By bytes: texts that look alike may be two subjects, and Swift takes them for one.
  package static func == (one: UserName, other: UserName) -> Bool {
    one.kind == other.kind && one.identifier == other.identifier
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(identifier)
  }

  /// The tag of the user's devices, `username:alice`.
  package var tag: Tag { Tag(rawValue: Self.tagPrefix + identifier) }

  /// Lower-case letters, digits and `_ @ . -` stand for themselves, every other byte for `#` and
  /// two hexadecimal digits.
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

/// Why a name does not say who is meant.
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
  /// Finds out who is meant by a name in a request or an option: `name:carol`, `subject:Carol`, or
  /// the bare name where only one kind of user signs in.
  ///
  /// - Parameter kinds: The kinds of users who sign in.
  /// - Throws: ``UserReferenceFault``; nobody is guessed.
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
