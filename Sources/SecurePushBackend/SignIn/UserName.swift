package import NotificationHubs

/// Who somebody is, in the one spelling that everything here compares.
///
/// Tags do not tell letter cases apart, so a name that does would share its pushes with another. Names
/// that people type are therefore lower-cased; subjects of a token keep their case, and the tag
/// spells out what it cannot hold.
package struct UserName: Hashable, Sendable, CustomStringConvertible {
  /// What the tutorials' tag begins with.
  package static let tagPrefix = "username:"
  private static let identifierLimit = Tag.maximumLength - tagPrefix.count

  package let text: String
  /// The name in characters that a tag and a user id can hold, different for different names.
  package let identifier: String

  package var description: String { text }

  /// A name that a person types.
  /// - Returns: `nil` for a name that is empty, too long, or has a colon or control characters.
  package init?(typed name: String) { self.init(exactly: name.lowercased()) }

  /// The subject of a token, compared exactly.
  package init?(subject: String) { self.init(exactly: subject) }

  private init?(exactly name: String) {
    guard !name.isEmpty, name.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    else { return nil }
    let identifier = Self.escaped(name)
    guard identifier.utf8.count <= Self.identifierLimit, !identifier.hasDotSegment else {
      return nil
    }
    text = name
    self.identifier = identifier
  }

  /// The tag of the user's devices, `username:alice`.
  package var tag: Tag { Tag(rawValue: Self.tagPrefix + identifier) }

  /// Lower-case letters, digits and `_ @ . -` stand for themselves, every other byte for `#` and two
  /// hexadecimal digits.
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

/// Somebody who has proved who they are.
package struct Identity: Hashable, Sendable {
  package let user: UserName
  /// May send to any user.
  package let isOperator: Bool

  package init(user: UserName, isOperator: Bool = false) {
    self.user = user
    self.isOperator = isOperator
  }
}
